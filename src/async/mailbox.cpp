// SPDX-License-Identifier: Apache-2.0
#include "async/mailbox.h"

#include <string_view>
#include <utility>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::async {
namespace {

std::size_t BytesOf(const std::vector<TokenLogprobs>& logprobs) {
  std::size_t bytes = 0;
  for (const TokenLogprobs& token : logprobs)
    bytes += sizeof(token) + token.top.capacity() * sizeof(token.top.front());
  return bytes;
}

std::size_t BytesOf(const StreamEvent& event) {
  const RoundRecord& round = event.round;
  std::size_t bytes = sizeof(event) + round.text.capacity() + round.drafter.capacity() +
                      round.rejected.capacity() * sizeof(std::int32_t) +
                      round.tokens.capacity() * sizeof(RoundToken) + BytesOf(round.prompt_logprobs);
  for (const RoundToken& token : round.tokens)
    if (token.logprobs) bytes += token.logprobs->top.capacity() * sizeof(token.logprobs->top[0]);
  if (!event.end) return bytes;
  const Completion& completion = event.end->completion;
  const std::size_t ids = completion.token_ids.capacity() + completion.prompt_token_ids.capacity();
  return bytes + completion.text.capacity() + ids * sizeof(std::int32_t) +
         completion.embedding.capacity() * sizeof(float) + BytesOf(completion.logprobs) +
         BytesOf(completion.prompt_logprobs);
}

Error ErrorOf(Failure failure) noexcept {
  auto made = CatchNoMemory("request", [&]() -> Result<Error> {
    if (failure == Failure::kDeadline)
      return Error{ErrorCode::kDeadline,
                   "request: it did not end before its deadline; ask for less, or set a later one"};
    if (failure == Failure::kStopped)
      return Error{ErrorCode::kStopped, "request: the engine was stopped; submit it to another"};
    return Error{NoMemory("request")};
  });
  return made ? *std::move(made) : std::move(made).error();  // a copy could throw
}

}  // namespace

void Mailbox::Push(StreamEvent event) noexcept {
  const Status pushed = CatchNoMemory("request", [&]() -> Status {
    if (counter_) event.held = ByteHold(counter_, BytesOf(event));
    const std::lock_guard lock(mutex_);
    if (failure_ != Failure::kNone) return {};
    events_.push_back(std::move(event));
    Tell();
    return {};
  });
  if (!pushed) Fail(Failure::kNoMemory);
}

void Mailbox::Fail(Failure why) noexcept {
  Cancel();
  static_cast<void>(CatchNoMemory("request", [&]() -> Status {
    const std::lock_guard lock(mutex_);
    if (failure_ != Failure::kNone) return {};
    failure_ = why;
    Tell();
    return {};
  }));
}

// REQUIRES: the mutex is held.
void Mailbox::Tell() {
  came_.notify_all();
  if (ready_) ready_();
}

bool Mailbox::Wanted(Clock::time_point now) noexcept {
  if (cancelled()) return false;
  if (now < deadline_) return true;
  Fail(Failure::kDeadline);
  return false;
}

std::optional<StreamEvent> Mailbox::Take() {
  const std::lock_guard lock(mutex_);
  if (!events_.empty()) {
    StreamEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
  }
  if (failure_ == Failure::kNone || std::exchange(failure_was_read_, true)) return std::nullopt;
  return StreamEvent{.kind = StreamEvent::Kind::kFailed, .choice = -1, .error = ErrorOf(failure_)};
}

void Mailbox::Await(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  came_.wait_until(lock, until, [this] {
    return !events_.empty() || (failure_ != Failure::kNone && !failure_was_read_);
  });
}

void Mailbox::Watch(std::function<void()> ready) {
  const std::lock_guard lock(mutex_);
  ready_.swap(ready);
}

}  // namespace foretoken::async
