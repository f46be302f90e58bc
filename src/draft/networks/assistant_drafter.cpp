// SPDX-License-Identifier: Apache-2.0
#include "draft/networks/assistant_drafter.h"

#include <algorithm>

namespace foretoken::draft {

Result<std::unique_ptr<Drafter>> MakeAssistant(DrafterSettings settings) {
  if (!settings.kv_cache || settings.target_cache == nullptr)
    return Fail(ErrorCode::kInvalidArgument,
                "kv cache: this head reads the model's cache, which is off; leave the cache on, or "
                "use another drafter");
  return std::make_unique<AssistantDrafter>(std::move(settings));
}

AssistantDrafter::AssistantDrafter(DrafterSettings settings)
    : ReducibleDrafter(SpecOf(*settings.head->kind), settings.shared, settings.runner->info()),
      runner_(std::move(settings.runner)),
      target_(*settings.target_cache),
      width_(settings.head->target_dim),
      max_positions_(settings.tables.max_positions),
      window_(settings.options.draft_window) {
  const auto n = static_cast<std::size_t>(settings.tables.n_sequences),
             width = static_cast<std::size_t>(width_);
  sequences_.reserve(n);
  for (std::size_t i = 0; i < n; ++i)
    sequences_.push_back(
        {.chain = Chain(settings.shared.target, settings.max_draft, *settings.kernels),
         .feature = AlignedBuffer<float>(width),
         .own = AlignedBuffer<float>(width)});
  features_ = AlignedBuffer<float>(n * width);
  tokens_.reserve(n), segments_.reserve(n), logit_rows_.reserve(n);
}

void AssistantDrafter::Begin(const SequenceStart& start) {
  Sequence& s = sequences_[static_cast<std::size_t>(start.seq)];
  s.chain.Start(start);
  s.position = -1;
}

void AssistantDrafter::End(SeqId seq) noexcept {
  sequences_[static_cast<std::size_t>(seq)].chain.Stop();
}

void AssistantDrafter::Observe(std::span<const Observation> observations) noexcept {
  for (const Observation& o : observations) {
    Sequence& s = sequences_[static_cast<std::size_t>(o.seq)];
    s.chain.Commit(o.committed);
    if (o.n_features == 0) continue;
    const int newest = o.n_features - 1;
    s.position = o.first_position + newest;
    const float* const features =
        o.feature_parts.empty()
            ? o.features + std::int64_t{newest} * width_
            : o.features + newest * o.feature_stride + std::int64_t{o.feature_parts[0]} * width_;
    std::copy_n(features, width_, s.feature.data());
  }
}

// Whether the target has processed all of the text but its newest token.
bool AssistantDrafter::Ready(SeqId seq) const noexcept {
  const Sequence& s = sequences_[static_cast<std::size_t>(seq)];
  const Pos newest = s.chain.position() - 1;
  return s.position == newest - 1 && target_.length(seq) == newest && newest >= 1 &&
         newest < max_positions_;
}

// Makes one more draft for every sequence that still wants one. Returns false when none does.
bool AssistantDrafter::DraftNext() noexcept {
  tokens_.clear(), segments_.clear(), logit_rows_.clear();
  for (SeqId seq = 0; seq < static_cast<SeqId>(sequences_.size()); ++seq) {
    const Sequence& s = sequences_[static_cast<std::size_t>(seq)];
    if (!s.chain.started() || !s.chain.drafting()) continue;
    const int row = static_cast<int>(tokens_.size());
    std::copy_n(s.own.data(), width_, features_.data() + std::int64_t{row} * width_);
    tokens_.push_back(runner_->info().Readable(s.chain.text().back()));
    segments_.push_back({.seq = seq,
                         .row_begin = row,
                         .n_rows = 1,
                         .first_position = s.position + 1,
                         .blocks = target_.Blocks(seq),
                         .window_blocks = target_.WindowBlocksOf(seq)});
    logit_rows_.push_back(row);
  }
  if (tokens_.empty()) return false;
  DrawAll(runner_->Run({.tokens = tokens_,
                        .segments = segments_,
                        .logit_rows = logit_rows_,
                        .features = features_.data(),
                        .reduced = uses_reduced(),
                        .window = window_}));
  ++work_.forwards;
  return true;
}

void AssistantDrafter::DrawAll(const model::PassResult& result) noexcept {
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    Sequence& s = sequences_[static_cast<std::size_t>(segments_[i].seq)];
    const int row = static_cast<int>(i);
    std::copy_n(result.OwnFeature(row), width_, s.own.data());
    if (result.Finite(row))
      s.chain.Draw(Wide(result.Logits(row)));
    else
      s.chain.EndDraft(), ++work_.not_finite;
  }
}

void AssistantDrafter::Propose(std::span<const Ask> asks,
                               std::span<round::Proposal> proposals) noexcept {
  for (const Ask& ask : asks) {
    Sequence& s = sequences_[static_cast<std::size_t>(ask.seq)];
    std::copy_n(s.feature.data(), width_, s.own.data());
    s.chain.BeginProposal(Ready(ask.seq) ? ask.max_tokens : 0, ask.with_logits, ask.proposal);
  }
  while (DraftNext()) {
  }
  for (std::size_t i = 0; i < asks.size(); ++i)
    proposals[i] = sequences_[static_cast<std::size_t>(asks[i].seq)].chain.Finish();
}

}  // namespace foretoken::draft
