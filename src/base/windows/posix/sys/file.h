// SPDX-License-Identifier: Apache-2.0
// POSIX's <sys/file.h> for Windows: see base/windows/README.md.
#pragma once

#define LOCK_SH 1
#define LOCK_EX 2
#define LOCK_NB 4
#define LOCK_UN 8

namespace foretoken {

int flock(int descriptor, int operation);  // never waits

}  // namespace foretoken
