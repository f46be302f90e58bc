// SPDX-License-Identifier: Apache-2.0
// The part of POSIX's <sys/socket.h> that foretoken calls, for Windows: see base/windows/README.md.
#pragma once

#include <winsock2.h>
#include <ws2tcpip.h>

#ifndef TCP_KEEPIDLE
#define TCP_KEEPIDLE 3
#endif
#ifndef TCP_KEEPCNT
#define TCP_KEEPCNT 16
#endif
#ifndef TCP_KEEPINTVL
#define TCP_KEEPINTVL 17
#endif
#define TCP_NOTSENT_LOWAT (-1)  // unknown, so refused

namespace foretoken {

// SO_REUSEADDR would let others listen on the same port, which Windows must be asked to forbid.
inline int setsockopt(SOCKET socket, int level, int name, const void* value, int size) {
  if (level == SOL_SOCKET && name == SO_REUSEADDR) name = SO_EXCLUSIVEADDRUSE;
  return ::setsockopt(socket, level, name, static_cast<const char*>(value), size);
}

}  // namespace foretoken
