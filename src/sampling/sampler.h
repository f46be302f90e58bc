// SPDX-License-Identifier: Apache-2.0
// sampling/sampler.h: from a row of logits to the law that tokens are really drawn from, and to a
// token.
//
// A Sampler belongs to one request. Its only state is the text so far (prompt and committed
// tokens), a stack: a verifier pushes drafts while it judges and pops them again, so a rejected
// branch leaves no trace. Law and Argmax are pure functions of (logits, text). Drafters use
// samplers of their own with their own parameters.
//
// One thread at a time. All memory is taken in the constructor and Begin; cost of Law: a few
// vectorised passes over the vocabulary.
#pragma once

#include <span>
#include <vector>

#include "base/ids.h"
#include "base/rng.h"
#include "foretoken/request.h"
#include "kernels/kernels.h"
#include "sampling/filters.h"
#include "sampling/penalties.h"

namespace foretoken::sampling {

struct SamplerConfig {
  SamplingParameters parameters;
  std::vector<Token> end_tokens;  // masked while fewer than min_new_tokens tokens are generated
  int min_new_tokens = 0;
  Noise noise;
};

class Sampler {
 public:
  // vocabulary: the tokens that may be drawn, ids [0, vocabulary); logits rows may be longer, the
  // rest is never looked at.
  // REQUIRES: parameters validated.
  Sampler(SamplerConfig config, int vocabulary, const kernels::Kernels& kernels);

  // Starts a text: its prompt, and room for max_new_tokens more (pushes beyond the room abort).
  void Begin(std::span<const Token> prompt, int max_new_tokens);
  void Push(Token token) noexcept;
  void Pop(int n) noexcept;  // takes back the last n pushed tokens

  // Of the token to be drawn next.
  Pos position() const noexcept { return static_cast<Pos>(text_.size()); }
  int n_generated() const noexcept { return static_cast<int>(text_.size()) - n_prompt_; }
  std::span<const Token> text() const noexcept { return text_; }
  bool greedy() const noexcept { return config_.parameters.greedy(); }
  const Noise& noise() const noexcept { return config_.noise; }
  int vocabulary() const noexcept { return vocabulary_; }
  bool Knows(Token token) const noexcept { return token >= 0 && token < vocabulary_; }

  // The processed law after the text: p[0, vocabulary) normalised, exactly 0 where a filter or a
  // mask removed a token. NaN counts as -inf. Where masks and bias leave nothing (every logit
  // -inf), all of the law lies on the best token of the logits as they came; where a logit is +inf,
  // on the first such token. Argmax falls back alike. p must not overlap logits.
  // REQUIRES: not greedy().
  void Law(const float* logits, float* p) noexcept;

  // The most probable token after penalties, bias and masks; ties to the lowest id.
  Token Argmax(const float* logits) noexcept;

  // The token at which the running sum of p exceeds u (in [0, 1)) times the sum of p.
  Token Draw(const float* p, double u) const noexcept;

  // Draws from max(0, p - q) with uniform u; q == nullptr stands for the one-hot law on `drafted`.
  // Where rounding leaves nothing of it, draws from p. r is scratch of the vocabulary's size; not
  // p.
  Token DrawResidual(const float* p, const float* q, Token drafted, double u,
                     float* r) const noexcept;

  // What plain decoding commits here: Argmax if greedy, else a draw from Law with this position's
  // target noise. `law` is scratch of the vocabulary's size and holds the law afterwards (not if
  // greedy).
  Token Sample(const float* logits, float* law) noexcept;

 private:
  bool EditsLogits() const noexcept;
  void EditLogits(float* logits) noexcept;

  SamplerConfig config_;
  int vocabulary_;
  const kernels::Kernels* kernels_;
  std::vector<Token> text_;
  int n_prompt_ = 0;
  std::size_t room_ = 0;  // tokens of text at most
  Penalties penalties_;
  Filters filters_;
  std::vector<float> edited_;  // [vocabulary] where logits may be edited, else empty
};

}  // namespace foretoken::sampling
