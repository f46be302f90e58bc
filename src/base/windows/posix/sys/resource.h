// SPDX-License-Identifier: Apache-2.0
// The part of POSIX's <sys/resource.h> that foretoken calls, for Windows, which has no such limits: see base/windows/README.md.
#pragma once

#define RLIMIT_NOFILE 7

namespace foretoken {

using rlim_t = unsigned long long;
struct rlimit {
  rlim_t rlim_cur, rlim_max;
};
inline int getrlimit(int, struct rlimit*) {
  return -1;
}
inline int setrlimit(int, const struct rlimit*) {
  return -1;
}

}  // namespace foretoken
