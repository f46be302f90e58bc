// SPDX-License-Identifier: Apache-2.0
#include "sampling/dry.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace foretoken::sampling {

Dry::Dry(const DryPenalty& penalty, int vocabulary)
    : multiplier_(penalty.multiplier),
      base_(penalty.base),
      allowed_length_(penalty.allowed_length),
      window_(penalty.window) {
  if (!active()) return;
  const auto n = static_cast<std::size_t>(vocabulary);
  breaks_.resize(n), longest_.resize(n);
  for (const Token token : penalty.breakers)
    if (Known(token)) breaks_[static_cast<std::size_t>(token)] = 1;
}

void Dry::Begin(std::size_t room) {
  if (!active()) return;
  const std::size_t span = window_ < 0 ? room : std::min(room, static_cast<std::size_t>(window_));
  matches_.resize(span);
  noted_.reserve(std::min(span, longest_.size()));
}

int Dry::TokensSinceBreaker(std::span<const Token> text) const noexcept {
  int n = 0;
  while (n < static_cast<int>(text.size()) && !Breaks(text[text.size() - 1 - n])) ++n;
  return n;
}

void Dry::Note(Token token, int length) noexcept {
  if (!Known(token) || Breaks(token)) return;
  int& longest = longest_[static_cast<std::size_t>(token)];
  if (longest == 0) noted_.push_back(token);
  longest = std::max(longest, length);
}

// Finite, so that two such penalties still differ from a ban.
float Dry::PenaltyOf(int length) const noexcept {
  constexpr double kMost = std::numeric_limits<float>::max();
  const double growth = std::pow(static_cast<double>(base_), length - allowed_length_);
  return static_cast<float>(std::min(static_cast<double>(multiplier_) * growth, kMost));
}

// The Z-function of the reversed text: matches_[i] is how many tokens, up to the i-th last one,
// equal those up to the last one. [left, right) is the match that reaches furthest.
void Dry::Apply(std::span<const Token> text, float* logits) noexcept {
  text = text.last(std::min(text.size(), matches_.size()));
  const int n = static_cast<int>(text.size()), most = TokensSinceBreaker(text);
  if (most < allowed_length_) return;
  const auto back = [&text](int i) { return text[text.size() - 1 - static_cast<std::size_t>(i)]; };
  for (int i = 1, left = 0, right = 0; i < n; ++i) {
    int match = i < right ? std::min(right - i, matches_[static_cast<std::size_t>(i - left)]) : 0;
    while (i + match < n && back(i + match) == back(match)) ++match;
    matches_[static_cast<std::size_t>(i)] = match;
    if (i + match > right) left = i, right = i + match;
    if (std::min(match, most) >= allowed_length_) Note(back(i - 1), std::min(match, most));
  }
  for (const Token token : noted_) {
    int& length = longest_[static_cast<std::size_t>(token)];
    logits[token] -= PenaltyOf(length);
    length = 0;
  }
  noted_.clear();
}

}  // namespace foretoken::sampling
