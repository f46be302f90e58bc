// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace foretoken::sampling {

Sampler::Sampler(SamplerConfig config, int vocabulary, const kernels::Kernels& kernels)
    : config_(std::move(config)),
      vocabulary_(vocabulary),
      kernels_(&kernels),
      penalties_(config_.parameters, vocabulary),
      filters_(config_.parameters, vocabulary, kernels) {
  const bool masks = config_.min_new_tokens > 0 && !config_.end_tokens.empty();
  if (penalties_.active() || !config_.parameters.logit_bias.empty() || masks)
    edited_.resize(static_cast<std::size_t>(vocabulary));
}

void Sampler::Begin(std::span<const Token> prompt, int max_new_tokens) {
  text_.clear();
  room_ = prompt.size() + static_cast<std::size_t>(max_new_tokens);
  text_.reserve(room_);
  text_.assign(prompt.begin(), prompt.end());
  n_prompt_ = static_cast<int>(prompt.size());
  penalties_.Begin(prompt, max_new_tokens);
}

void Sampler::Push(Token token) noexcept {
  FORETOKEN_CHECK(text_.size() < room_);
  text_.push_back(token);
  penalties_.Push(token);
}

void Sampler::Pop(int n) noexcept {
  FORETOKEN_CHECK(n <= n_generated());
  for (; n > 0; --n) {
    penalties_.Pop(text_.back());
    text_.pop_back();
  }
}

bool Sampler::EditsLogits() const noexcept {
  if (edited_.empty()) return false;
  return penalties_.active() || !config_.parameters.logit_bias.empty() ||
         n_generated() < config_.min_new_tokens;
}

void Sampler::EditLogits(float* logits) noexcept {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  if (penalties_.active()) penalties_.Apply(text_, logits);
  for (const auto& [id, bias] : config_.parameters.logit_bias) {
    logits[id] += bias;
    if (std::isnan(logits[id]))
      logits[id] = bias;  // +inf on a token the model rules out, or the reverse: the user decides
  }
  if (n_generated() < config_.min_new_tokens)
    for (const Token id : config_.end_tokens) logits[id] = kNever;
}

void Sampler::Law(const float* logits, float* p) noexcept {
  const float* x = logits;
  if (EditsLogits()) {
    std::copy(logits, logits + vocabulary_, p);
    EditLogits(p);
    x = p;
  }
  const float best = kernels_->max(x, vocabulary_);
  if (std::isfinite(best)) return filters_.Apply(x, p);
  // Nothing is left, or something outweighs everything: the law is certain.
  const Token token = kernels_->argmax(best > 0 ? x : logits, vocabulary_);
  std::fill(p, p + vocabulary_, 0.0f);
  p[token] = 1.0f;
}

Token Sampler::Argmax(const float* logits) noexcept {
  if (!EditsLogits()) return kernels_->argmax(logits, vocabulary_);
  std::copy(logits, logits + vocabulary_, edited_.begin());
  EditLogits(edited_.data());
  const Token token = kernels_->argmax(edited_.data(), vocabulary_);
  const bool nothing_left =
      !(edited_[static_cast<std::size_t>(token)] > -std::numeric_limits<float>::infinity());
  return nothing_left ? kernels_->argmax(logits, vocabulary_) : token;
}

Token Sampler::Draw(const float* p, double u) const noexcept {
  const Token token = kernels_->find_cumulative(p, vocabulary_, u * kernels_->sum(p, vocabulary_));
  return std::max(token, Token{0});  // -1 for a p of zeros, which Law never gives
}

Token Sampler::DrawResidual(const float* p, const float* q, Token drafted, double u,
                            float* r) const noexcept {
  if (q != nullptr) {
    const double mass = kernels_->residual(p, q, vocabulary_, r);
    if (!(mass > 0)) return Draw(p, u);
    return kernels_->find_cumulative(r, vocabulary_, u * mass);
  }
  std::copy(p, p + vocabulary_, r);
  if (Knows(drafted)) r[drafted] = 0;
  if (!(kernels_->sum(r, vocabulary_) > 0)) return Draw(p, u);
  return Draw(r, u);
}

Token Sampler::Sample(const float* logits, float* law) noexcept {
  if (greedy()) return Argmax(logits);
  Law(logits, law);
  return Draw(law, noise().Uniform(Stream::kTarget, position()));
}

}  // namespace foretoken::sampling
