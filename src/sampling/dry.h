// SPDX-License-Identifier: Apache-2.0
// sampling/dry.h: DRY, the penalty on tokens that would extend a repetition.
//
// A repetition is a suffix of the text that occurs earlier in it; the token that followed it there
// would extend it. Each token gets a penalty for the longest repetition that it would extend.
// Neither a repetition nor the token after it contains a breaker.
//
// A pure function of the text: there is no state to push or pop. Cost: O(window) per token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "foretoken/request.h"

namespace foretoken::sampling {

class Dry {
 public:
  Dry(const DryPenalty& penalty, int vocabulary);

  bool active() const noexcept { return multiplier_ > 0; }
  // Reserves the memory for texts of up to `room` tokens.
  void Begin(std::size_t room);
  void Apply(std::span<const Token> text, float* logits) noexcept;

 private:
  bool Known(Token token) const noexcept {
    return token >= 0 && static_cast<std::size_t>(token) < breaks_.size();
  }
  bool Breaks(Token token) const noexcept {
    return Known(token) && breaks_[static_cast<std::size_t>(token)] != 0;
  }
  int TokensSinceBreaker(std::span<const Token> text) const noexcept;
  void Note(Token token, int length) noexcept;
  float PenaltyOf(int length) const noexcept;

  float multiplier_, base_;
  int allowed_length_, window_;
  std::vector<std::uint8_t> breaks_;  // [vocabulary]
  // [vocabulary]: the repetition that it would extend, or 0.
  std::vector<int> longest_;
  std::vector<Token> noted_;  // tokens with one
  std::vector<int> matches_;  // [room]: see Apply
};

}  // namespace foretoken::sampling
