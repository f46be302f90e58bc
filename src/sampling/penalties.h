// SPDX-License-Identifier: Apache-2.0
// sampling/penalties.h: counts of the tokens in a text, and the penalties that read them.
//
// A stack like the text it counts: Pop undoes Push exactly. Only tokens that occur are touched,
// never the whole vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "foretoken/request.h"

namespace foretoken::sampling {

class Penalties {
 public:
  Penalties(const SamplingParameters& parameters, int vocabulary);

  bool active() const noexcept { return active_; }
  void Begin(std::span<const Token> prompt, int max_new_tokens);
  void Push(Token token) noexcept;  // a generated token
  void Pop(Token token) noexcept;   // the last pushed one

  // text: prompt and generated tokens, whose last repetition_window count for the repetition
  // penalty.
  void Apply(std::span<const Token> text, float* logits) noexcept;

 private:
  // false for all tokens where penalties are off, and for ids beyond the vocabulary, which a prompt
  // may hold.
  bool Known(Token token) const noexcept;
  void Repeat(Token token, float* logits) const noexcept;

  float repetition_, frequency_, presence_;
  int window_;
  bool active_;
  std::vector<std::int32_t> seen_,
      generated_;  // [vocabulary] occurrences in all of the text, in its generated part
  std::vector<Token> distinct_,
      distinct_generated_;  // tokens with a count, in order of first occurrence
  std::vector<std::uint32_t>
      stamp_;  // [vocabulary] the last Apply that met the token in its window
  std::uint32_t now_ = 0;
};

}  // namespace foretoken::sampling
