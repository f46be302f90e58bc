// SPDX-License-Identifier: Apache-2.0
// What foretoken calls of POSIX's <stdio.h>, for Windows: see base/windows/README.md.
#pragma once

#include_next <stdio.h>

namespace foretoken {

int rename(const char* from, const char* to);  // replaces what is there

}  // namespace foretoken
