// SPDX-License-Identifier: Apache-2.0
// What tests call of POSIX's <stdlib.h>, for Windows: see base/windows/README.md.
#pragma once

#include_next <stdlib.h>

namespace foretoken {

char* mkdtemp(char* path);  // path ends with XXXXXX
int setenv(const char* name, const char* value, int replace);
int unsetenv(const char* name);

}  // namespace foretoken
