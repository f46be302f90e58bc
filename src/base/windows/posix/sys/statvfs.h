// SPDX-License-Identifier: Apache-2.0
// The part of POSIX's <sys/statvfs.h> that foretoken calls, for Windows: see base/windows/README.md. What a disk lacks is seen when
// space is reserved.
#pragma once

namespace foretoken {

struct statvfs {
  unsigned long long f_blocks, f_frsize, f_bavail;
};
inline int fstatvfs(int, struct statvfs*) {
  return -1;
}

}  // namespace foretoken
