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
// vectorised passes over the vocabulary. The request's own processors run inside Law and Argmax;
// where they leave NaN or +infinity, that is noted (TakeProcessorFault).
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/rng.h"
#include "foretoken/request.h"
#include "kernels/kernels.h"
#include "sampling/dry.h"
#include "sampling/filters.h"
#include "sampling/grammar_walk.h"
#include "sampling/penalties.h"

namespace foretoken::sampling {

struct SamplerConfig {
  SamplingParameters parameters;
  std::vector<Token> end_tokens;  // masked while fewer than min_new_tokens tokens are generated
  int min_new_tokens = 0;
  Noise noise;
  // Of parameters.grammar, over the texts of this vocabulary; null: none is obeyed. End tokens, its
  // vocabulary's and those above, are drawn only where the text may end, and where nothing else may
  // follow nothing but them is drawn. This outranks min_new_tokens where both cannot be had.
  std::shared_ptr<const Grammar> grammar = {};
};

// The token at which the running sum of p, [n], exceeds u (in [0, 1)) times the sum of p.
Token DrawByUniform(const float* p, int n, double u, const kernels::Kernels& kernels) noexcept;

// The winner of the exponential race over p, [n] (kernels/kernels.h), with the target's noise of
// this position. Equal distributions give equal tokens, whoever draws.
Token DrawByRace(const float* p, int n, const Noise& noise, Pos position,
                 const kernels::Kernels& kernels) noexcept;

class Sampler {
 public:
  // vocabulary: the tokens that may be drawn, ids [0, vocabulary); logits rows may be longer, the
  // rest is never looked at.
  // REQUIRES: parameters validated.
  Sampler(SamplerConfig config, int vocabulary, const kernels::Kernels& kernels);

  // Starts a text: its prompt, and room for max_new_tokens more (pushes beyond the room abort).
  // first: the position of its first token, where it is the end of a longer one.
  void Begin(std::span<const Token> prompt, int max_new_tokens, Pos first = 0);
  void Push(Token token) noexcept;
  void Pop(int n) noexcept;  // takes back the last n pushed tokens

  // Of the token to be drawn next.
  Pos position() const noexcept { return first_ + static_cast<Pos>(text_.size()); }
  int n_generated() const noexcept { return static_cast<int>(text_.size()) - n_prompt_; }
  std::span<const Token> text() const noexcept { return text_; }
  bool greedy() const noexcept { return config_.parameters.greedy(); }
  const Noise& noise() const noexcept { return config_.noise; }
  int vocabulary() const noexcept { return vocabulary_; }
  bool Knows(Token token) const noexcept { return token >= 0 && token < vocabulary_; }
  // How many of the tokens, from the first on, the grammar lets follow the text; all without one.
  int Follows(std::span<const Token> tokens) noexcept;
  // Why the grammar could not be followed on the way to the text with so many more tokens, or to
  // its law: then no law since the last call means anything that follows. Asked after each
  // verdict.
  GrammarFailure TakeGrammarFailure(int n_more) noexcept;

  // Whether a processor of the request's has left NaN or +infinity since the last call: then what
  // was drawn means nothing.
  bool TakeProcessorFault() noexcept { return std::exchange(processor_fault_, false); }

  // The processed law after the text: p[0, vocabulary) normalised, exactly 0 where a filter or a
  // mask removed a token. NaN counts as -inf. Where masks and bias leave nothing (every logit
  // -inf), all of the law lies on the best token of the logits as they came (of those that the
  // grammar allows, where there is one); where a logit is +inf,
  // on the first such token. Argmax falls back alike. p must not overlap logits.
  // REQUIRES: not greedy().
  void Law(const float* logits, float* p) noexcept;

  // The most probable token after penalties, bias, masks and the request's
  // processors; ties to the lowest id.
  Token Argmax(const float* logits) noexcept;

  // DrawByUniform over the vocabulary.
  Token Draw(const float* p, double u) const noexcept;

  // DrawByRace over the vocabulary, at this position: another distribution drawn with the same
  // noise gives the same token as often as nearly can be.
  Token Race(const float* p) const noexcept;

  // -(sum of p ln p), in nats.
  double Entropy(const float* p) const noexcept;

  // How many tokens are better than `token`: of more probability or, with as much, of a lower id.
  int BetterThan(const float* p, Token token) const noexcept;

  // r = max(0, factor p - q), [vocabulary], factor in [0, 1]; returns its sum. q == nullptr stands
  // for the one-hot law on `drafted`. r: not p, not q.
  double Residual(const float* p, float factor, const float* q, Token drafted,
                  float* r) const noexcept;

  // Draws from max(0, p - q) with uniform u; q == nullptr stands for the one-hot law on `drafted`.
  // Where rounding leaves nothing of it, draws from p. r is scratch of the vocabulary's size; not
  // p.
  Token DrawResidual(const float* p, const float* q, Token drafted, double u,
                     float* r) const noexcept;

  // What plain decoding commits here: Argmax if greedy, else the winner of the Race over Law.
  // `law` is scratch of the vocabulary's size and holds the law afterwards (not if
  // greedy).
  Token Sample(const float* logits, float* law) noexcept;

 private:
  bool EditsLogits() const noexcept;
  void EditLogits(float* logits) noexcept;
  void ApplyGrammar(float* logits) noexcept;
  Token Fallback(const float* logits) noexcept;

  SamplerConfig config_;
  int vocabulary_;
  const kernels::Kernels* kernels_;
  std::vector<Token> text_;
  Pos first_ = 0;  // of the text's first token
  int n_prompt_ = 0;
  std::size_t room_ = 0;  // tokens of text at most
  Penalties penalties_;
  Dry dry_;
  GrammarWalk grammar_walk_;         // along the generated tokens
  std::vector<Token> grammar_ends_;  // end tokens of the vocabulary and of the request
  std::vector<float> end_logits_;    // theirs, while the mask is applied
  Filters filters_;
  bool processor_fault_ = false;
  bool always_edits_ = false;  // not only while end tokens are masked
  std::vector<float> edited_;  // [vocabulary] where logits may be edited, else empty
};

}  // namespace foretoken::sampling
