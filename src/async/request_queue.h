// SPDX-License-Identifier: Apache-2.0
// async/request_queue.h: the bounded queue between the threads that submit requests and the
// engine's thread, and how it ends. Any thread, but for Next, RunCalls and Done.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "async/mailbox.h"
#include "foretoken/async_engine.h"

namespace foretoken::async {

// A choice that waits.
struct Waiting {
  AsyncChoice choice;
  int index = 0;  // among the choices of its request
  std::shared_ptr<Mailbox> mailbox;
  bool wants_rounds = true;
  std::chrono::steady_clock::time_point arrived;
};

class RequestQueue {
 public:
  using Choices = std::list<std::unique_ptr<Waiting>>;

  // parallel: choices that run together; max_waiting: choices that may wait besides.
  RequestQueue(int parallel, int max_waiting) : parallel_(parallel), max_waiting_(max_waiting) {
    running_.reserve(static_cast<std::size_t>(parallel));
  }

  // Takes all of them or none. goes_on: only Stop refuses them. Errors: kBusy, kStopped.
  [[nodiscard]] Status Submit(Choices choices, bool goes_on = false);
  // The most that one request may submit.
  int capacity() const { return parallel_ + max_waiting_; }

  // Accepts nothing more from now on.
  void Drain();
  bool draining() const;
  // Whether all accepted choices have ended within the time.
  bool AwaitIdle(std::chrono::milliseconds time);
  // Fails all requests that have not ended. Next gives nothing more.
  void Stop();
  AsyncLoad load() const;

  // Waits until RunCalls has run the call, which must not throw. False: Stop came first. Any thread but
  // that of RunCalls.
  bool Run(const std::function<void()>& call);
  // Runs the calls that wait. The thread of Next.
  void RunCalls();
  // The next wanted choice, if one may run; it runs until Done. Waits for one, or a call, if `wait` is
  // set.
  // `going` becomes false when the queue was stopped.
  std::unique_ptr<Waiting> Next(bool wait, bool& going);
  // REQUIRES: it runs.
  void Done(const Mailbox& mailbox);

 private:
  Status MayTake(std::size_t n, bool goes_on) const;
  void RemoveUnwanted(Choices& removed);
  bool Idle() const { return n_running_ == 0 && waiting_.empty(); }

  const int parallel_, max_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Choices waiting_;
  struct Call {
    const std::function<void()>& run;
    bool done = false, refused = false;
  };
  std::list<Call*> calls_;  // of threads that wait in Run
  int n_running_ = 0;
  std::vector<std::shared_ptr<Mailbox>> running_;  // of those, until Stop
  bool draining_ = false, stopped_ = false;
};

}  // namespace foretoken::async
