// SPDX-License-Identifier: Apache-2.0
// The part of POSIX's <poll.h> that foretoken calls, for Windows: see base/windows/README.md. foretoken::poll
// is for descriptors, ::poll for sockets.
#pragma once

#include <winsock2.h>

inline int poll(struct pollfd* sockets, unsigned long n, int ms) {
  return WSAPoll(sockets, n, ms);
}

namespace foretoken {

struct pollfd {
  int fd;
  short events, revents;
};
// Pipes and files. A console is never ready to read.
int poll(struct pollfd* entries, std::size_t n, int ms);

}  // namespace foretoken
