// SPDX-License-Identifier: Apache-2.0
// sampling/penalties.h: counts of the tokens in a text, and the penalties that read them.
//
// A stack like the text that it counts: Pop undoes Push exactly. It touches only tokens that occur,
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
  // False for all tokens if penalties are off, and for ids beyond the vocabulary, which a prompt
  // may contain.
  bool Known(Token token) const noexcept;
  void Repeat(Token token, float* logits) const noexcept;

  float repetition_, frequency_, presence_;
  int window_;
  bool active_;
  // [vocabulary] occurrences in all of the text, in its generated part.
  std::vector<std::int32_t> seen_, generated_;
  // Tokens with a count, in order of first occurrence.
  std::vector<Token> distinct_, distinct_generated_;
  // [vocabulary] the last Apply that met the token in its window.
  std::vector<std::uint32_t> stamp_;
  std::uint32_t now_ = 0;
};

}  // namespace foretoken::sampling
