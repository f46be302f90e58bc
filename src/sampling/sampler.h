// SPDX-License-Identifier: Apache-2.0
// sampling/sampler.h: turns a row of logits into the distribution that tokens are drawn from, and
// into a token.
//
// A Sampler belongs to one request. Its only state is the text so far (prompt and committed
// tokens), a stack: a verifier pushes drafts and pops them again, so a rejected branch leaves
// nothing behind. Distribution and Argmax are pure functions of (logits, text). Drafters use samplers of
// their own with their own parameters.
//
// One thread at a time. The constructor and Begin reserve all memory. Distribution costs a few vectorised
// passes over the vocabulary. The request's own processors run inside Distribution and Argmax; if they leave
// NaN or +infinity, that is recorded (TakeProcessorFault).
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/rng.h"
#include "foretoken/request.h"
#include "grammar/grammar_walk.h"
#include "kernels/choice.h"
#include "kernels/kernels.h"
#include "sampling/dry.h"
#include "sampling/filters.h"
#include "sampling/penalties.h"

namespace foretoken::sampling {

struct SamplerConfig {
  SamplingParameters parameters;
  std::vector<Token> end_tokens;  // masked while fewer than min_new_tokens tokens are generated
  int min_new_tokens = 0;
  Noise noise;
  // The compiled parameters.grammar for the texts of this vocabulary; null: no grammar. End tokens
  // (the vocabulary's and those above) are drawn only where the text may end, and nothing else is
  // drawn where only the end may follow. If that conflicts with min_new_tokens, the grammar wins.
  std::shared_ptr<const grammar::Grammar> grammar = {};
};

// A row of logits. Where `chosen` is a token, the row itself is not in this process: Argmax or
// Sample has been computed elsewhere, as Sampler::ChoiceAhead says.
struct LogitsRow {
  LogitsRow(const float* row)
      : logits(row) {}  // NOLINT(google-explicit-constructor): most are whole
  LogitsRow(const float* row, Token chosen_token) : logits(row), chosen(chosen_token) {}

  const float* logits;
  Token chosen = kNoToken;
};

// The token at which the running sum of p, [n], exceeds u (in [0, 1)) times the sum of p.
Token DrawByUniform(const float* p, int n, double u, const kernels::Kernels& kernels) noexcept;

// The winner of the exponential race over p, [n] (kernels/kernels.h), with the target's noise at
// this position. Equal distributions give equal tokens, for target and drafter.
Token DrawByRace(const float* p, int n, const Noise& noise, Pos position,
                 const kernels::Kernels& kernels) noexcept;

class Sampler {
 public:
  // vocabulary: the tokens that may be drawn, ids [0, vocabulary). Rows of logits may be longer;
  // the rest is ignored. REQUIRES: parameters validated.
  Sampler(SamplerConfig config, int vocabulary, const kernels::Kernels& kernels);

  // Starts a text: its prompt, and room for max_new_tokens more (pushes beyond that abort). first:
  // the position of its first token, if it is the end of a longer text.
  void Begin(std::span<const Token> prompt, int max_new_tokens, Pos first = 0);
  void Push(Token token) noexcept;
  void Pop(int n) noexcept;  // removes the last n pushed tokens

  // Position of the next token.
  Pos position() const noexcept { return first_ + static_cast<Pos>(text_.size()); }
  int n_generated() const noexcept { return static_cast<int>(text_.size()) - n_prompt_; }
  std::span<const Token> text() const noexcept { return text_; }
  bool greedy() const noexcept { return config_.parameters.greedy(); }
  const Noise& noise() const noexcept { return config_.noise; }
  int vocabulary() const noexcept { return vocabulary_; }
  bool Knows(Token token) const noexcept { return token >= 0 && token < vocabulary_; }
  // How many of the tokens, from the first on, the grammar allows to follow; all of them without a
  // grammar.
  int Follows(std::span<const Token> tokens) noexcept;
  // Why the grammar could not be followed up to the text with n_more more tokens, or for its
  // distribution. If it failed, no distribution since the last call is valid. Ask after each
  // verdict.
  grammar::GrammarFailure TakeGrammarFailure(int n_more) noexcept;

  // Whether one of the request's processors has left NaN or +infinity since the last call. If so,
  // what was drawn is invalid.
  bool TakeProcessorFault() noexcept { return std::exchange(processor_fault_, false); }

  // The processed distribution after the text: p[0, vocabulary) sums to 1 and is exactly 0 where a
  // filter or a mask removed a token. NaN counts as -inf. If masks and bias leave nothing (every
  // logit -inf), the best token of the unedited logits has probability 1 (with a grammar, the best
  // that it allows). If a logit is +inf, the first such token has probability 1. Argmax handles
  // these cases alike. p must not overlap logits. REQUIRES: the row
  // is whole; not greedy().
  void Distribution(const LogitsRow& row, float* p) noexcept;

  // The most probable token after penalties, bias, masks and the request's processors; of equal
  // ones the lowest id.
  Token Argmax(const LogitsRow& row) noexcept;

  // As DrawByUniform, over the vocabulary.
  Token Draw(const float* p, double u) const noexcept;

  // As DrawByRace, over the vocabulary, at this position. A similar distribution drawn with the
  // same noise gives the same token almost as often as possible.
  Token Race(const float* p) const noexcept;

  // -(sum of p ln p), in nats.
  double Entropy(const float* p) const noexcept;

  // How many tokens are better than `token`: more probable, or equally probable with a lower id.
  int BetterThan(const float* p, Token token) const noexcept;

  // r = max(0, factor p - q), [vocabulary], factor in [0, 1]; returns its sum. q == nullptr stands
  // for the one-hot distribution on `drafted`. r must not be p or q.
  double Residual(const float* p, float factor, const float* q, Token drafted,
                  float* r) const noexcept;

  // Draws from max(0, p - q) with uniform u; q == nullptr stands for the one-hot distribution on
  // `drafted`. If rounding leaves nothing of it, draws from p. r is scratch of the vocabulary's
  // size; it must not be p.
  Token DrawResidual(const float* p, const float* q, Token drafted, double u,
                     float* r) const noexcept;

  // What plain decoding commits here: Argmax if greedy, else the winner of the Race over Distribution. `distribution`
  // is scratch of the vocabulary's size and contains the distribution afterwards (unless greedy).
  Token Sample(const LogitsRow& row, float* distribution) noexcept;

  // How Sample (samples) or Argmax chooses its token behind n_more more tokens of text, if it needs
  // nothing but a best column or a race over the row. kNone: it edits or filters the row, or draws
  // otherwise.
  kernels::Choice ChoiceAhead(int n_more, bool samples) const noexcept;

 private:
  bool EditsLogits(int n_more = 0) const noexcept;
  void EditLogits(float* logits) noexcept;
  void ApplyGrammar(float* logits) noexcept;
  Token Fallback(const float* logits) noexcept;

  SamplerConfig config_;
  int vocabulary_;
  const kernels::Kernels* kernels_;
  std::vector<Token> text_;
  Pos first_ = 0;  // position of the text's first token
  int n_prompt_ = 0;
  std::size_t room_ = 0;  // the most tokens of text
  Penalties penalties_;
  Dry dry_;
  grammar::GrammarWalk grammar_walk_;  // follows the generated tokens
  std::vector<Token> grammar_ends_;    // end tokens of the vocabulary and of the request
  std::vector<float> end_logits_;      // their logits, while the mask is applied
  Filters filters_;
  bool processor_fault_ = false;
  bool always_edits_ = false;  // edits logits always, not only while end tokens are masked
  std::vector<float> edited_;  // [vocabulary] if logits may be edited, else empty
};

}  // namespace foretoken::sampling
