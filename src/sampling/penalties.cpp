// SPDX-License-Identifier: Apache-2.0
#include "sampling/penalties.h"

#include <algorithm>
#include <utility>

namespace foretoken::sampling {

Penalties::Penalties(const SamplingParameters& p, int vocabulary)
    : repetition_(p.repetition_penalty),
      frequency_(p.frequency_penalty),
      presence_(p.presence_penalty),
      window_(p.repetition_window),
      active_(p.repetition_penalty != 1.0f || p.frequency_penalty != 0.0f ||
              p.presence_penalty != 0.0f) {
  if (!active_) return;
  const auto n = static_cast<std::size_t>(vocabulary);
  seen_.resize(n), generated_.resize(n), stamp_.resize(n);
}

void Penalties::Begin(std::span<const Token> prompt, int max_new_tokens) {
  if (!active_) return;
  std::fill(seen_.begin(), seen_.end(), 0);
  std::fill(generated_.begin(), generated_.end(), 0);
  distinct_.clear(), distinct_generated_.clear();
  const std::size_t room = prompt.size() + static_cast<std::size_t>(max_new_tokens);
  distinct_.reserve(std::min(room, seen_.size())),
      distinct_generated_.reserve(std::min(room, seen_.size()));
  for (const Token t : prompt)
    if (Known(t) && seen_[static_cast<std::size_t>(t)]++ == 0) distinct_.push_back(t);
}

bool Penalties::Known(Token token) const noexcept {
  return token >= 0 && static_cast<std::size_t>(token) < seen_.size();
}

void Penalties::Push(Token token) noexcept {
  if (!Known(token)) return;
  if (seen_[static_cast<std::size_t>(token)]++ == 0) distinct_.push_back(token);
  if (generated_[static_cast<std::size_t>(token)]++ == 0) distinct_generated_.push_back(token);
}

// Tokens leave in the reverse order of their arrival, so a token whose count falls to zero is the
// last of its list.
void Penalties::Pop(Token token) noexcept {
  if (!Known(token)) return;
  if (--seen_[static_cast<std::size_t>(token)] == 0) distinct_.pop_back();
  if (--generated_[static_cast<std::size_t>(token)] == 0) distinct_generated_.pop_back();
}

void Penalties::Repeat(Token token, float* logits) const noexcept {
  float& x = logits[token];
  x = x > 0 ? x / repetition_ : x * repetition_;
}

void Penalties::Apply(std::span<const Token> text, float* logits) noexcept {
  if (repetition_ != 1.0f && window_ < 0) {
    for (const Token t : distinct_) Repeat(t, logits);
  } else if (repetition_ != 1.0f) {
    ++now_;
    for (const Token t : text.last(std::min(text.size(), static_cast<std::size_t>(window_)))) {
      if (Known(t) && std::exchange(stamp_[static_cast<std::size_t>(t)], now_) != now_)
        Repeat(t, logits);
    }
  }
  if (frequency_ == 0.0f && presence_ == 0.0f) return;
  for (const Token t : distinct_generated_)
    logits[t] -=
        frequency_ * static_cast<float>(generated_[static_cast<std::size_t>(t)]) + presence_;
}

}  // namespace foretoken::sampling
