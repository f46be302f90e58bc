// SPDX-License-Identifier: Apache-2.0
#include "draft/networks/chain.h"

#include <algorithm>
#include <new>

namespace foretoken::draft {

Chain::Chain(int vocabulary, int max_draft, const kernels::Kernels& kernels)
    : vocabulary_(vocabulary), max_draft_(max_draft), kernels_(&kernels) {
  drafts_.reserve(static_cast<std::size_t>(max_draft));
  raw_logits_.reserve(static_cast<std::size_t>(max_draft));
  // Pages that no distribution is written to take no memory.
  distributions_ = AlignedBuffer<float>(static_cast<std::size_t>(max_draft) *
                                        static_cast<std::size_t>(vocabulary));
}

void Chain::Start(const SequenceStart& start) {
  end_tokens_.assign(start.end_tokens.begin(), start.end_tokens.end());
  sampler_ = std::make_unique<sampling::Sampler>(
      sampling::SamplerConfig{.parameters = start.sampling,
                              .end_tokens = end_tokens_,
                              .min_new_tokens = start.min_new_tokens,
                              .noise = start.noise,
                              .grammar = start.grammar},
      vocabulary_, *kernels_);
  const auto generated = start.prompt.last(static_cast<std::size_t>(start.n_generated));
  sampler_->Begin(start.prompt.first(start.prompt.size() - generated.size()),
                  start.n_generated + start.max_new_tokens + max_draft_);
  Commit(generated);
  stream_ = start.stream;
  draft_p_min_ = start.draft_p_min;
  left_ = 0;
  drafts_.clear();
}

bool Chain::MakeRoomForLogits() noexcept {
  if (logits_.size() > 0) return true;
  try {
    logits_ = AlignedBuffer<float>(static_cast<std::size_t>(max_draft_) *
                                   static_cast<std::size_t>(vocabulary_));
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void Chain::BeginProposal(int n, bool with_logits, DraftProposal* proposal) noexcept {
  proposal_ = proposal;
  with_logits_ = with_logits && MakeRoomForLogits();
  drafts_.clear();
  raw_logits_.clear();
  begin_ = sampler_->position();
  left_ = std::max(0, std::min(n, max_draft_));
}

// Whether the most probable token is less probable than draft_p_min. distribution: as Draw has made it; for
// greedy drafts it is overwritten.
bool Chain::Unsure(const float* logits, float* distribution) const noexcept {
  if (!sampler_->greedy()) return kernels_->max(distribution, vocabulary_) < draft_p_min_;
  const float max = kernels_->max(logits, vocabulary_);
  return 1.0 / kernels_->exp_sum(logits, vocabulary_, max, 1.0f, distribution) <
         static_cast<double>(draft_p_min_);
}

void Chain::Draw(const float* logits, float certainty) noexcept {
  Token token = kNoToken;
  float* distribution = Distribution(drafts_.size());
  --left_;
  if (!sampler_->greedy()) sampler_->Distribution(logits, distribution);
  if (draft_p_min_ > 0 &&
      (certainty < 0 ? Unsure(logits, distribution) : certainty < draft_p_min_)) {
    left_ = 0;
    return;
  }
  if (sampler_->greedy()) {
    token = sampler_->Argmax(logits);
    if (proposal_ != nullptr && !proposal_->Push(token)) token = kNoToken;
  } else {
    token = Drawn(distribution);
  }
  if (token == kNoToken) {
    left_ = 0;
    return;
  }
  if (with_logits_)
    std::copy_n(logits, vocabulary_, logits_.data() + std::ssize(drafts_) * vocabulary_);
  drafts_.push_back(token);
  raw_logits_.push_back(logits[token]);
  sampler_->Push(token);
  if (std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end()) left_ = 0;
}

Token Chain::Drawn(const float* distribution) noexcept {
  if (proposal_ != nullptr)
    return proposal_->Draw({distribution, static_cast<std::size_t>(vocabulary_)});
  return stream_ == Stream::kTarget ? sampler_->Race(distribution)
                                    : sampler_->Draw(distribution, OwnNoise());
}

double Chain::OwnNoise() const noexcept {
  return sampler_->noise().Uniform(stream_, sampler_->position(),
                                   static_cast<std::uint32_t>(begin_));
}

round::Proposal Chain::Finish() noexcept {
  left_ = 0;
  const bool distributions = !sampler_->greedy() && !drafts_.empty();
  sampler_->Pop(static_cast<int>(drafts_.size()));
  return {.tokens = drafts_,
          .q = distributions ? distributions_.data() : nullptr,
          .q_stride = vocabulary_,
          .raw_logits = raw_logits_.data(),
          .logits = with_logits_ ? logits_.data() : nullptr};
}

void Chain::Commit(std::span<const Token> tokens) noexcept {
  for (const Token token : tokens) sampler_->Push(token);
}

}  // namespace foretoken::draft
