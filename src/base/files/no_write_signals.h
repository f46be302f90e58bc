// SPDX-License-Identifier: Apache-2.0
// base/files/no_write_signals.h: while it lives, writes of this thread fail with EFBIG and EPIPE where
// the system would also send a signal that ends the program. Other threads are not affected.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <ctime>

namespace foretoken {

class NoWriteSignals {
 public:
  NoWriteSignals() noexcept {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGXFSZ);
    sigaddset(&signals_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1 || sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~NoWriteSignals() {
    const int number = errno;
    const struct timespec at_once = {};
    while (!was_pending_ && sigtimedwait(&signals_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = number;
  }
  NoWriteSignals(const NoWriteSignals&) = delete;
  NoWriteSignals& operator=(const NoWriteSignals&) = delete;

 private:
  sigset_t signals_, before_;
  bool was_pending_ = false;
};

}  // namespace foretoken
