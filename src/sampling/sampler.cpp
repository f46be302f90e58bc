// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "base/check.h"

namespace foretoken::sampling {

namespace {

kernels::RaceNoise RaceNoiseOf(const Noise& noise, Pos position) {
  const auto counter = noise.Counter(Stream::kTargetRace, position);
  const auto key = noise.Key();
  return {{counter[0], counter[1], counter[2]}, {key[0], key[1]}};
}

}  // namespace

Token DrawByUniform(const float* p, int n, double u, const kernels::Kernels& kernels) noexcept {
  const Token token = kernels.find_cumulative(p, n, u * kernels.sum(p, n));
  return std::max(token, Token{0});  // -1 for a p of zeros, which Sampler::Distribution never gives
}

Token DrawByRace(const float* p, int n, const Noise& noise, Pos position,
                 const kernels::Kernels& kernels) noexcept {
  const kernels::RaceNoise race = RaceNoiseOf(noise, position);
  return std::max(kernels.race(p, 0, n, race).token, Token{0});  // -1: as in DrawByUniform
}

Sampler::Sampler(SamplerConfig config, int vocabulary, const kernels::Kernels& kernels)
    : config_(std::move(config)),
      vocabulary_(vocabulary),
      kernels_(&kernels),
      penalties_(config_.parameters, vocabulary),
      dry_(config_.parameters.dry, vocabulary),
      grammar_walk_(config_.grammar),
      filters_(config_.parameters, vocabulary, kernels) {
  const bool masks = config_.min_new_tokens > 0 && !config_.end_tokens.empty();
  always_edits_ = penalties_.active() || dry_.active() || !config_.parameters.logit_bias.empty() ||
                  !config_.parameters.processors.empty() || config_.grammar != nullptr;
  if (always_edits_ || masks) edited_.resize(static_cast<std::size_t>(vocabulary));
  if (config_.grammar == nullptr) return;
  for (const auto ends :
       {config_.grammar->end_tokens(), std::span<const Token>(config_.end_tokens)})
    std::copy_if(ends.begin(), ends.end(), std::back_inserter(grammar_ends_),
                 [this](Token token) { return Knows(token); });
  end_logits_.resize(grammar_ends_.size());
}

void Sampler::Begin(std::span<const Token> prompt, int max_new_tokens, Pos first) {
  text_.clear();
  first_ = first;
  room_ = prompt.size() + static_cast<std::size_t>(max_new_tokens);
  text_.reserve(room_);
  text_.assign(prompt.begin(), prompt.end());
  n_prompt_ = static_cast<int>(prompt.size());
  penalties_.Begin(prompt, max_new_tokens);
  dry_.Begin(room_);
  grammar_walk_.Begin(max_new_tokens);
}

void Sampler::Push(Token token) noexcept {
  FORETOKEN_CHECK(text_.size() < room_);
  text_.push_back(token);
  penalties_.Push(token);
  grammar_walk_.Push(token);
}

void Sampler::Pop(int n) noexcept {
  FORETOKEN_CHECK(n <= n_generated());
  grammar_walk_.Pop(n);
  for (; n > 0; --n) {
    penalties_.Pop(text_.back());
    text_.pop_back();
  }
}

int Sampler::Follows(std::span<const Token> tokens) noexcept {
  return grammar_walk_.Follows(tokens, grammar_ends_);
}

grammar::GrammarFailure Sampler::TakeGrammarFailure(int n_more) noexcept {
  const grammar::GrammarFailure failure = grammar_walk_.FailureWithin(n_generated() + n_more);
  grammar_walk_.ForgetFailure();
  return failure;
}

bool Sampler::EditsLogits(int n_more) const noexcept {
  return always_edits_ || (!edited_.empty() && n_generated() + n_more < config_.min_new_tokens);
}

kernels::Choice Sampler::ChoiceAhead(int n_more, bool samples) const noexcept {
  using kernels::ChoiceRule;
  if (EditsLogits(n_more)) return {};
  if (!samples || greedy()) return {.rule = ChoiceRule::kBest, .n_tokens = vocabulary_};
  if (filters_.any() || noise().GivesTargets()) return {};
  return {.rule = ChoiceRule::kRace,
          .n_tokens = vocabulary_,
          .inverse_temperature = filters_.inverse_temperature(),
          .noise = RaceNoiseOf(noise(), position() + n_more)};
}

void Sampler::EditLogits(float* logits) noexcept {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  if (penalties_.active()) penalties_.Apply(text_, logits);
  if (dry_.active()) dry_.Apply(text_, logits);
  for (const auto& [id, bias] : config_.parameters.logit_bias) {
    logits[id] += bias;
    if (std::isnan(logits[id]))
      // +inf on a token that the model excludes: the user decides.
      logits[id] = bias;
  }
  if (n_generated() < config_.min_new_tokens)
    for (const Token id : config_.end_tokens) logits[id] = kNever;
  if (config_.grammar != nullptr) ApplyGrammar(logits);
  for (const LogitsProcessor& process : config_.parameters.processors)
    process(text_, {logits, static_cast<std::size_t>(vocabulary_)});
  if (!config_.parameters.processors.empty() &&
      kernels_->finiteness(logits, vocabulary_) == kernels::Finiteness::kNotANumber)
    processor_fault_ = true;
}

void Sampler::ApplyGrammar(float* logits) noexcept {
  const bool can_end = grammar_walk_.CanEnd();
  for (std::size_t i = 0; can_end && i < grammar_ends_.size(); ++i)
    end_logits_[i] = logits[grammar_ends_[i]];
  grammar_walk_.Mask({logits, static_cast<std::size_t>(vocabulary_)});
  for (std::size_t i = 0; can_end && i < grammar_ends_.size(); ++i)
    logits[grammar_ends_[i]] = end_logits_[i];
}

// If nothing is left: the best of the unedited logits; with a grammar the best that it allows, or
// the first of these if the model gives all of them -inf.
Token Sampler::Fallback(const float* logits) noexcept {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  if (config_.grammar == nullptr) return kernels_->argmax(logits, vocabulary_);
  const auto best = [this](Token& token) {
    ApplyGrammar(edited_.data());
    token = kernels_->argmax(edited_.data(), vocabulary_);
    return edited_[static_cast<std::size_t>(token)] > kNever;
  };
  Token token = 0;
  std::copy(logits, logits + vocabulary_, edited_.begin());
  if (best(token)) return token;
  std::fill(edited_.begin(), edited_.end(), 0.0f);
  if (best(token)) return token;
  return kernels_->argmax(logits, vocabulary_);  // the vocabulary cannot spell the required text
}

void Sampler::Distribution(const LogitsRow& row, float* p) noexcept {
  FORETOKEN_DCHECK(row.chosen == kNoToken);
  const float *const logits = row.logits, *x = logits;
  if (EditsLogits()) {
    std::copy(logits, logits + vocabulary_, p);
    EditLogits(p);
    x = p;
  }
  const float best = kernels_->max(x, vocabulary_);
  if (std::isfinite(best)) return filters_.Apply(x, p);
  // Nothing is left, or one token outweighs everything: its probability is 1.
  const Token token = best > 0 ? kernels_->argmax(x, vocabulary_) : Fallback(logits);
  std::fill(p, p + vocabulary_, 0.0f);
  p[token] = 1.0f;
}

Token Sampler::Argmax(const LogitsRow& row) noexcept {
  if (row.chosen != kNoToken) return row.chosen;
  const float* const logits = row.logits;
  if (!EditsLogits()) return kernels_->argmax(logits, vocabulary_);
  std::copy(logits, logits + vocabulary_, edited_.begin());
  EditLogits(edited_.data());
  const Token token = kernels_->argmax(edited_.data(), vocabulary_);
  const bool nothing_left =
      !(edited_[static_cast<std::size_t>(token)] > -std::numeric_limits<float>::infinity());
  return nothing_left ? Fallback(logits) : token;
}

Token Sampler::Draw(const float* p, double u) const noexcept {
  return DrawByUniform(p, vocabulary_, u, *kernels_);
}

Token Sampler::Race(const float* p) const noexcept {
  if (noise().GivesTargets()) return Draw(p, noise().Uniform(Stream::kTarget, position()));
  return DrawByRace(p, vocabulary_, noise(), position(), *kernels_);
}

double Sampler::Entropy(const float* p) const noexcept {
  return kernels_->entropy(p, vocabulary_);
}

int Sampler::BetterThan(const float* p, Token token) const noexcept {
  const float equal = p[token];
  const float more = std::nextafter(equal, std::numeric_limits<float>::infinity());
  return kernels_->collect_at_least(p, token, equal, nullptr, 0) +
         kernels_->collect_at_least(p + token, vocabulary_ - token, more, nullptr, 0);
}

double Sampler::Residual(const float* p, float factor, const float* q, Token drafted,
                         float* r) const noexcept {
  if (factor == 1.0f && q != nullptr) return kernels_->residual(p, q, vocabulary_, r);
  std::copy(p, p + vocabulary_, r);
  if (factor != 1.0f) kernels_->scale(r, vocabulary_, factor);
  if (q != nullptr) return kernels_->residual(r, q, vocabulary_, r);
  if (Knows(drafted)) r[drafted] = 0;
  return kernels_->sum(r, vocabulary_);
}

Token Sampler::DrawResidual(const float* p, const float* q, Token drafted, double u,
                            float* r) const noexcept {
  const double mass = Residual(p, 1.0f, q, drafted, r);
  if (!(mass > 0)) return Draw(p, u);
  return kernels_->find_cumulative(r, vocabulary_, u * mass);
}

Token Sampler::Sample(const LogitsRow& row, float* distribution) noexcept {
  if (greedy() || row.chosen != kNoToken) return Argmax(row);
  Distribution(row, distribution);
  return Race(distribution);
}

}  // namespace foretoken::sampling
