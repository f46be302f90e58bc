// SPDX-License-Identifier: Apache-2.0
#include "server/mailbox.h"

namespace foretoken::server {
namespace {

std::size_t BytesOf(const std::vector<TokenLogprobs>& logprobs) {
  std::size_t bytes = 0;
  for (const TokenLogprobs& token : logprobs)
    bytes += sizeof(token) + token.top.capacity() * sizeof(token.top.front());
  return bytes;
}

std::size_t BytesOf(const Event& event) {
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
         BytesOf(completion.logprobs) + BytesOf(completion.prompt_logprobs);
}

}  // namespace

void Mailbox::Push(Event event) noexcept {
  const Status pushed = CatchNoMemory("request", [&]() -> Status {
    event.held = ByteLedger::Hold(account_, BytesOf(event));
    const std::lock_guard lock(mutex_);
    if (no_memory_) return {};
    events_.push_back(std::move(event));
    if (ready_) ready_();
    return {};
  });
  if (!pushed) FailForMemory();
}

void Mailbox::FailForMemory() noexcept {
  Cancel();
  static_cast<void>(CatchNoMemory("request", [&]() -> Status {
    const std::lock_guard lock(mutex_);
    no_memory_ = true;
    if (ready_) ready_();
    return {};
  }));
}

}  // namespace foretoken::server
