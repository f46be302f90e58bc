// SPDX-License-Identifier: Apache-2.0
// server/job_queue.h: the bounded hand-over from the workers that read requests to the engine's
// thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "foretoken/request.h"
#include "server/mailbox.h"

namespace foretoken::server {

// One choice of a request. Its prompt is tokens.
struct Job {
  Request request;
  int choice = 0;
  bool first_of_prompt = true;  // of the choices that share a prompt
  std::shared_ptr<Mailbox> mailbox;
  bool wants_rounds = false;  // else only its end
  std::chrono::steady_clock::time_point arrived;
  ByteLedger::Hold held = {};  // for the request
};

class JobQueue {
 public:
  // parallel: jobs that run together; max_waiting: more of them that may wait.
  JobQueue(int parallel, int max_waiting) : parallel_(parallel), max_waiting_(max_waiting) {}

  enum class Outcome { kTaken, kFull, kDraining };
  // All of them or none.
  Outcome Submit(std::vector<Job> jobs);
  // The most that one request may submit.
  int capacity() const { return parallel_ + max_waiting_; }

  // From now on nothing is taken in; what was, will be answered.
  void Drain();
  bool draining() const;
  // All that was taken in has ended, within the time.
  bool AwaitIdle(std::chrono::milliseconds time);
  // Next gives nothing more; jobs that wait are left.
  void Stop();

  struct Load {
    int running = 0, waiting = 0;
  };
  Load load() const;

  // The engine's thread. The next job that is still wanted, if one may run; it runs until Done.
  // Waits for one if `wait` is set. False in `going`: the queue was stopped.
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
