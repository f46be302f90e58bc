// SPDX-License-Identifier: Apache-2.0
// server/job_queue.h: the bounded queue between the workers that read requests and the engine's
// thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "foretoken/prepared_request.h"
#include "server/mailbox.h"

namespace foretoken::server {

// One choice of a request.
struct Job {
  PreparedRequest request;
  int choice = 0;
  bool first_of_prompt = true;  // first of the choices that share a prompt
  std::shared_ptr<Mailbox> mailbox;
  bool wants_rounds = false;  // false: it only wants its end
  std::chrono::steady_clock::time_point arrived;
  ByteLedger::Hold held = {};  // for the request
};

class JobQueue {
 public:
  // parallel: jobs that run together; max_waiting: jobs that may wait besides.
  JobQueue(int parallel, int max_waiting) : parallel_(parallel), max_waiting_(max_waiting) {}

  enum class Outcome { kTaken, kFull, kDraining };
  // Accepts all of them or none.
  Outcome Submit(std::vector<Job> jobs);
  // The most that one request may submit.
  int capacity() const { return parallel_ + max_waiting_; }

  // Accepts nothing more from now on; accepted jobs will be answered.
  void Drain();
  bool draining() const;
  // Whether all accepted jobs have ended within the time.
  bool AwaitIdle(std::chrono::milliseconds time);
  // Next gives nothing more; waiting jobs are left.
  void Stop();

  struct Load {
    int running = 0, waiting = 0;
  };
  Load load() const;

  // For the engine's thread: the next wanted job, if one may run; it runs until Done. Waits for one
  // if `wait` is set. `going` becomes false when the queue was stopped.
  std::unique_ptr<Job> Next(bool wait, bool& going);
  void Done();

 private:
  void DropCancelled();
  bool Idle() const { return running_ == 0 && waiting_.empty(); }

  const int parallel_, max_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> waiting_;
  int running_ = 0;
  bool draining_ = false, stopped_ = false;
};

}  // namespace foretoken::server
