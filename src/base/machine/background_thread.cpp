// SPDX-License-Identifier: Apache-2.0
#include "base/machine/background_thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <utility>

namespace foretoken {
namespace {

// A new thread has the signals of the one that starts it.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

std::thread BackgroundThread(std::function<void()> work) {
  const SignalsBlocked blocked;
  return std::thread(std::move(work));
}

// On Linux this concerns only the thread.
void RunWhenIdle() noexcept {
  const struct sched_param parameters = {};
  sched_setscheduler(0, SCHED_IDLE, &parameters);
}

}  // namespace foretoken
