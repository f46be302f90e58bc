// SPDX-License-Identifier: Apache-2.0
#include "server/job_queue.h"

#include <utility>

namespace foretoken::server {

JobQueue::Outcome JobQueue::Submit(std::vector<Job> jobs) {
  {
    const std::lock_guard lock(mutex_);
    if (draining_ || stopped_) return Outcome::kDraining;
    DropCancelled();
    const std::size_t taken = static_cast<std::size_t>(running_) + waiting_.size();
    if (taken + jobs.size() > static_cast<std::size_t>(capacity())) return Outcome::kFull;
    for (Job& job : jobs) waiting_.push_back(std::make_unique<Job>(std::move(job)));
  }
  changed_.notify_all();
  return Outcome::kTaken;
}

// Jobs whose clients have gone.
void JobQueue::DropCancelled() {
  std::erase_if(waiting_, [](const auto& job) { return job->mailbox->cancelled(); });
}

void JobQueue::Drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
}

bool JobQueue::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

bool JobQueue::AwaitIdle(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] {
    DropCancelled();
    return Idle();
  });
}

void JobQueue::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

JobQueue::Load JobQueue::load() const {
  const std::lock_guard lock(mutex_);
  return {running_, static_cast<int>(waiting_.size())};
}

std::unique_ptr<Job> JobQueue::Next(bool wait, bool& going) {
  std::unique_lock lock(mutex_);
  if (wait) changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
  going = !stopped_;
  DropCancelled();
  if (stopped_ || waiting_.empty() || running_ >= parallel_) return nullptr;
  auto job = std::move(waiting_.front());
  waiting_.pop_front();
  ++running_;
  return job;
}

void JobQueue::Done() {
  {
    const std::lock_guard lock(mutex_);
    --running_;
  }
  changed_.notify_all();
}

}  // namespace foretoken::server
