// SPDX-License-Identifier: Apache-2.0
#include "async/request_queue.h"

#include <algorithm>
#include <utility>

namespace foretoken::async {
namespace {

// Tells the readers of choices that nobody wants any more. Not under the queue's mutex, because it
// may call a program's function.
void EndUnwanted(RequestQueue::Choices& choices) noexcept {
  for (const auto& waiting : choices) {
    if (!waiting->mailbox->cancelled()) {
      waiting->mailbox->Fail(Failure::kDeadline);
      continue;
    }
    ChoiceEnd end;
    end.completion.finish_reason = FinishReason::kCancelled;
    end.first_of_prompt = waiting->choice.first_of_prompt;
    waiting->mailbox->Push(
        {.kind = StreamEvent::Kind::kEnd, .choice = waiting->index, .end = std::move(end)});
  }
}

}  // namespace

Status RequestQueue::Submit(Choices choices, bool goes_on) {
  Choices removed;
  Status status;
  {
    const std::lock_guard lock(mutex_);
    RemoveUnwanted(removed);
    status = MayTake(choices.size(), goes_on);
    if (status) waiting_.splice(waiting_.end(), choices);
  }
  changed_.notify_all();
  EndUnwanted(removed);
  return status;
}

// REQUIRES: the mutex is held.
Status RequestQueue::MayTake(std::size_t n, bool goes_on) const {
  if (stopped_ || (draining_ && !goes_on))
    return Fail(ErrorCode::kStopped,
                "engine: it accepts no more requests; submit this one to another");
  const std::size_t taken = static_cast<std::size_t>(n_running_) + waiting_.size();
  if (!goes_on && taken + n > static_cast<std::size_t>(capacity()))
    return Fail(ErrorCode::kBusy, "queue: it is full; try again later");
  return {};
}

// Those that were cancelled, or whose time has passed. REQUIRES: the mutex is held.
void RequestQueue::RemoveUnwanted(Choices& removed) {
  const auto now = Mailbox::Clock::now();
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto waiting = next++;
    if ((*waiting)->mailbox->cancelled() || now >= (*waiting)->mailbox->deadline())
      removed.splice(removed.end(), waiting_, waiting);
  }
}

void RequestQueue::Drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
}

bool RequestQueue::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

bool RequestQueue::AwaitIdle(std::chrono::milliseconds time) {
  Choices removed;
  bool idle = false;
  {
    std::unique_lock lock(mutex_);
    idle = changed_.wait_for(lock, time, [&] {
      RemoveUnwanted(removed);
      return Idle();
    });
  }
  EndUnwanted(removed);
  return idle;
}

void RequestQueue::Stop() {
  Choices waiting;
  std::vector<std::shared_ptr<Mailbox>> running;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    waiting.swap(waiting_);
    running.swap(running_);
    for (Call* const call : calls_) call->refused = true;
    calls_.clear();
  }
  changed_.notify_all();
  for (const auto& choice : waiting) choice->mailbox->Fail(Failure::kStopped);
  for (const auto& mailbox : running) mailbox->Fail(Failure::kStopped);
}

AsyncLoad RequestQueue::load() const {
  const std::lock_guard lock(mutex_);
  return {n_running_, static_cast<int>(waiting_.size())};
}

std::unique_ptr<Waiting> RequestQueue::Next(bool wait, bool& going) {
  Choices removed;
  std::unique_ptr<Waiting> next;
  {
    std::unique_lock lock(mutex_);
    if (wait)
      changed_.wait(lock, [this] { return stopped_ || !waiting_.empty() || !calls_.empty(); });
    going = !stopped_;
    RemoveUnwanted(removed);
    if (!stopped_ && !waiting_.empty() && n_running_ < parallel_) {
      next = std::move(waiting_.front());
      waiting_.pop_front();
      running_.push_back(next->mailbox);
      ++n_running_;
    }
  }
  if (!removed.empty()) changed_.notify_all();
  EndUnwanted(removed);
  return next;
}

bool RequestQueue::Run(const std::function<void()>& call) {
  Call mine{call};
  std::unique_lock lock(mutex_);
  if (stopped_) return false;
  calls_.push_back(&mine);
  changed_.notify_all();
  changed_.wait(lock, [&mine] { return mine.done || mine.refused; });
  return mine.done;
}

void RequestQueue::RunCalls() {
  std::unique_lock lock(mutex_);
  while (!calls_.empty()) {
    Call& call = *calls_.front();
    calls_.pop_front();
    lock.unlock();
    call.run();
    lock.lock();
    call.done = true;
    changed_.notify_all();
  }
}

void RequestQueue::Done(const Mailbox& mailbox) {
  {
    const std::lock_guard lock(mutex_);
    --n_running_;
    const auto found = std::find_if(running_.begin(), running_.end(),
                                    [&](const auto& one) { return one.get() == &mailbox; });
    if (found != running_.end()) running_.erase(found);
  }
  changed_.notify_all();
}

}  // namespace foretoken::async
