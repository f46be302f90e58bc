// SPDX-License-Identifier: Apache-2.0
#include "draft/draft_model.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace foretoken::draft {

DraftModel::DraftModel(std::unique_ptr<model::Model> model, kv::Cache cache, int vocabulary,
                       int max_draft, const kernels::Kernels& kernels)
    : model_(std::move(model)),
      cache_(std::move(cache)),
      kernels_(kernels),
      vocabulary_(vocabulary),
      max_draft_(max_draft) {
  const auto n = static_cast<std::size_t>(cache_.shape().n_sequences);
  sequences_.resize(n);
  for (auto& s : sequences_) s.drafts.reserve(static_cast<std::size_t>(max_draft));
  q_ = AlignedBuffer<float>(n * static_cast<std::size_t>(max_draft) *
                            static_cast<std::size_t>(vocabulary));
  law_ = AlignedBuffer<float>(static_cast<std::size_t>(vocabulary));
  tokens_.reserve(static_cast<std::size_t>(model_->options().max_rows));
  segments_.reserve(n);
  logit_rows_.reserve(n);
  logit_seqs_.reserve(n);
  rows_.reserve(n);
  kept_.reserve(n);
}

void DraftModel::Begin(const SequenceStart& start) {
  Sequence& s = sequences_[static_cast<std::size_t>(start.seq)];
  cache_.Truncate(start.seq, 0);
  s.end_tokens.assign(start.end_tokens.begin(), start.end_tokens.end());
  s.sampler = std::make_unique<sampling::Sampler>(
      sampling::SamplerConfig{.parameters = start.sampling,
                              .end_tokens = s.end_tokens,
                              .min_new_tokens = start.min_new_tokens,
                              .noise = start.noise},
      vocabulary_, kernels_);
  s.sampler->Begin(start.prompt, start.max_new_tokens + max_draft_);
  s.stream = start.stream;
  s.draft_p_min = start.draft_p_min;
  s.prompt_read = false;
}

void DraftModel::End(SeqId seq) noexcept {
  cache_.Truncate(seq, 0);
  sequences_[static_cast<std::size_t>(seq)].sampler.reset();
}

Drafter::Work DraftModel::TakeWork() noexcept {
  return std::exchange(work_, {});
}

void DraftModel::Propose(std::span<const Ask> asks, std::span<round::Proposal> proposals) noexcept {
  for (const Ask& ask : asks) {
    Sequence& s = sequences_[static_cast<std::size_t>(ask.seq)];
    const int text = s.sampler->position();
    s.drafts.clear();
    // Feeding the text and all drafts but the last must fit the cache.
    const int room = cache_.shape().max_positions - text + 1;
    s.wanted = std::min({ask.max_tokens, max_draft_, room});
    s.drafting = s.wanted > 0;
  }
  CatchUp();
  while (Advance()) {
  }
  for (std::size_t i = 0; i < asks.size(); ++i) {
    Sequence& s = sequences_[static_cast<std::size_t>(asks[i].seq)];
    const bool laws = !s.sampler->greedy();
    s.sampler->Pop(static_cast<int>(s.drafts.size()));
    proposals[i] = {.tokens = s.drafts,
                    .q = laws && !s.drafts.empty() ? Law(asks[i].seq, 0) : nullptr,
                    .q_stride = vocabulary_};
  }
}

// Feeds committed tokens that the cache lacks, all but each sequence's last, in passes of at most
// max_rows.
void DraftModel::CatchUp() noexcept {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  bool prompts = false;
  for (;;) {
    tokens_.clear(), segments_.clear(), logit_rows_.clear(), rows_.clear(), kept_.clear();
    for (SeqId seq = 0; seq < cache_.shape().n_sequences; ++seq) {
      Sequence& s = sequences_[static_cast<std::size_t>(seq)];
      if (!s.drafting) continue;
      prompts |= !s.prompt_read;
      const int cached = cache_.length(seq),
                room = model_->options().max_rows - static_cast<int>(tokens_.size());
      // One missing token before the last is cheaper as a second row of the first drafting pass.
      const int missing = s.sampler->position() - 1 - cached;
      const int n = s.prompt_read && missing <= 1 ? 0 : std::min(missing, room);
      if (n <= 0) continue;
      const auto text = s.sampler->text();
      segments_.push_back({seq, static_cast<int>(tokens_.size()), n, cached});
      tokens_.insert(tokens_.end(), text.begin() + cached, text.begin() + cached + n);
      rows_.push_back({seq, n});
      kept_.push_back(n);
    }
    if (tokens_.empty()) break;
    Forward();
  }
  for (auto& s : sequences_)
    if (s.drafting) s.prompt_read = true;
  if (prompts)
    work_.prompt_ms += std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

void DraftModel::Forward() noexcept {
  kv::Transaction transaction(cache_, rows_);
  model_->Forward({.tokens = tokens_, .segments = segments_, .logit_rows = logit_rows_}, cache_);
  transaction.Commit(kept_);
  ++work_.forwards;
}

// One more draft for every sequence that still wants one; false when none does.
bool DraftModel::Advance() noexcept {
  tokens_.clear(), segments_.clear(), logit_rows_.clear(), logit_seqs_.clear(), rows_.clear(),
      kept_.clear();
  for (SeqId seq = 0; seq < cache_.shape().n_sequences; ++seq) {
    Sequence& s = sequences_[static_cast<std::size_t>(seq)];
    if (!s.drafting) continue;
    const auto text = s.sampler->text();
    const int cached = cache_.length(seq), n = static_cast<int>(text.size()) - cached;
    segments_.push_back({seq, static_cast<int>(tokens_.size()), n, cached});
    tokens_.insert(tokens_.end(), text.begin() + cached, text.end());
    logit_rows_.push_back(static_cast<int>(tokens_.size()) - 1);
    logit_seqs_.push_back(seq);
    rows_.push_back({seq, n});
    kept_.push_back(n);
  }
  if (tokens_.empty()) return false;
  Forward();
  for (std::size_t i = 0; i < logit_seqs_.size(); ++i) {
    Sequence& s = sequences_[static_cast<std::size_t>(logit_seqs_[i])];
    s.drafting = DraftOne(logit_seqs_[i], model_->logits() + static_cast<std::int64_t>(i) *
                                                                 model_->logits_stride()) &&
                 --s.wanted > 0;
  }
  return true;
}

// Draws the next draft; false where drafting ends, with or without a token. Whether to stop is
// decided before the draw, so that no drawn token is ever dropped for its own value.
bool DraftModel::DraftOne(SeqId seq, const float* logits) noexcept {
  Sequence& s = sequences_[static_cast<std::size_t>(seq)];
  Token token = kNoToken;
  if (s.sampler->greedy()) {
    if (s.draft_p_min > 0) {
      const float max = kernels_.max(logits, vocabulary_);
      if (1.0 / kernels_.exp_sum(logits, vocabulary_, max, 1.0f, law_.data()) <
          static_cast<double>(s.draft_p_min))
        return false;
    }
    token = s.sampler->Argmax(logits);
  } else {
    float* law = Law(seq, static_cast<int>(s.drafts.size()));
    s.sampler->Law(logits, law);
    if (s.draft_p_min > 0 && kernels_.max(law, vocabulary_) < s.draft_p_min) return false;
    token = s.sampler->Draw(law, s.sampler->noise().Uniform(s.stream, s.sampler->position()));
  }
  s.drafts.push_back(token);
  s.sampler->Push(token);
  return std::find(s.end_tokens.begin(), s.end_tokens.end(), token) == s.end_tokens.end();
}

void DraftModel::Observe(std::span<const Observation> observations) noexcept {
  for (const Observation& o : observations) {
    Sequence& s = sequences_[static_cast<std::size_t>(o.seq)];
    const int agreed = s.sampler->position() + o.accepted;  // C + A
    cache_.Truncate(o.seq, std::min(cache_.length(o.seq), agreed));
    for (const Token token : o.committed) s.sampler->Push(token);
  }
}

}  // namespace foretoken::draft
