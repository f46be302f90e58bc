// SPDX-License-Identifier: Apache-2.0
// The part of POSIX's <signal.h> that foretoken calls, for Windows: see base/windows/README.md.
#pragma once

#include_next <signal.h>

#include <pthread.h>
#include <time.h>

// What the system sends when the console is closed, the user logs off, or at Ctrl-Break.
#define SIGHUP SIGBREAK
// Never sent: writes fail.
#define SIGPIPE 13
#define SIGXFSZ 25

#define SA_RESTART 1
#define SA_RESETHAND 2
#define SIG_BLOCK 0
#define SIG_SETMASK 2
#undef pthread_sigmask

namespace foretoken {

struct sigaction {
  void (*sa_handler)(int);
  int sa_flags;
};
// Handlers run in a thread of their own.
int sigaction(int number, const struct sigaction* action, struct sigaction* before);

// No thread gets a signal, so there are none to block.
using sigset_t = unsigned long long;
inline int sigemptyset(sigset_t*) {
  return 0;
}
inline int sigaddset(sigset_t*, int) {
  return 0;
}
inline int sigpending(sigset_t*) {
  return 0;
}
inline int sigismember(const sigset_t*, int) {
  return 0;
}
inline int pthread_sigmask(int, const sigset_t*, sigset_t*) {
  return 0;
}
inline int sigtimedwait(const sigset_t*, void*, const struct timespec*) {
  return -1;
}

}  // namespace foretoken
