// SPDX-License-Identifier: Apache-2.0
#include "draft/networks/self_drafter.h"

#include <algorithm>

#include "kv/transaction.h"

namespace foretoken::draft {
namespace {

Result<std::unique_ptr<Drafter>> MakeSelf(DrafterSettings settings) {
  if (!settings.kv_cache || settings.target_cache == nullptr)
    return Fail(ErrorCode::kInvalidArgument,
                "kv cache: the drafter self reads the model's cache, which is off; leave the cache "
                "on, or use another drafter");
  return std::make_unique<SelfDrafter>(std::move(settings));
}

}  // namespace

extern const DrafterSpec kSelfSpec = {
    .info = {.name = "self",
             .help = "the model itself, with a copy of its weights in fewer bits",
             .reports_q = true,
             .copies_target = true,
             .reads_p_min = true},
    .make = MakeSelf};

SelfDrafter::SelfDrafter(DrafterSettings settings)
    : ReducibleDrafter(kSelfSpec, settings.shared, settings.runner->info()),
      runner_(std::move(settings.runner)),
      target_(*settings.target_cache),
      window_(settings.options.draft_window),
      narrow_window_(settings.narrow_window),
      best_blocks_(window_ > 0 ? settings.options.draft_best_blocks : 0) {
  const auto n = static_cast<std::size_t>(target_.shape().n_sequences);
  chains_.reserve(n);
  for (std::size_t i = 0; i < n; ++i)
    chains_.emplace_back(settings.shared.target, settings.max_draft, *settings.kernels);
  pending_.reserve(n), segments_.reserve(n), tokens_.reserve(n), logit_rows_.reserve(n);
}

void SelfDrafter::Begin(const SequenceStart& start) {
  At(start.seq).Start(start);
}

void SelfDrafter::End(SeqId seq) noexcept {
  At(seq).Stop();
}

void SelfDrafter::Observe(std::span<const Observation> observations) noexcept {
  for (const Observation& o : observations) At(o.seq).Commit(o.committed);
}

// Whether there is a copy, and the target has computed all of the text but its newest token.
bool SelfDrafter::Ready(SeqId seq) const noexcept {
  if (!runner_->Ready()) return false;
  const int newest = chains_[static_cast<std::size_t>(seq)].position() - 1;
  return newest >= 1 && target_.length(seq) == newest;
}

// How many of n_rows rows the sequence has positions and blocks for. n_taken: blocks that other
// sequences take in this round.
int SelfDrafter::Room(SeqId seq, int n_rows, int n_taken) const noexcept {
  int rows = std::min(n_rows, target_.room(seq));
  const int left = target_.n_available_blocks() - n_taken;
  while (rows > 0 && target_.MissingBlocks(seq, rows) > left) --rows;
  return rows;
}

void SelfDrafter::Propose(std::span<const Ask> asks,
                          std::span<round::Proposal> proposals) noexcept {
  pending_.clear();
  int n_taken = 0;
  for (const Ask& ask : asks) {
    Chain& chain = At(ask.seq);
    const int n = std::min(ask.max_tokens, chain.max_draft()),
              rows = Ready(ask.seq) ? Room(ask.seq, n, n_taken) : 0;
    chain.BeginProposal(rows, ask.with_logits, ask.proposal);
    if (rows == 0) continue;
    n_taken += target_.MissingBlocks(ask.seq, rows);
    pending_.push_back({.seq = ask.seq, .n_rows = rows, .first_position = target_.length(ask.seq)});
  }
  if (!pending_.empty()) {
    const kv::Transaction taken_back(target_, pending_);
    for (int step = 0; DraftNext(step); ++step) {
    }
  }
  for (std::size_t i = 0; i < asks.size(); ++i) proposals[i] = At(asks[i].seq).Finish();
}

// Makes one more draft for every sequence that still wants one. Returns false when none does.
bool SelfDrafter::DraftNext(int step) noexcept {
  tokens_.clear(), segments_.clear(), logit_rows_.clear();
  for (kv::Segment& pending : pending_) {
    const Chain& chain = At(pending.seq);
    if (!chain.drafting()) continue;
    const int row = static_cast<int>(tokens_.size());
    tokens_.push_back(runner_->info().Readable(chain.text().back()));
    kv::Segment& segment = segments_.emplace_back(pending);
    segment.row_begin = row, segment.n_rows = 1, segment.first_position += step;
    logit_rows_.push_back(row);
    // The first pass has brought the state so far.
    pending.state = {.from = pending.state.to, .to = pending.state.to};
  }
  if (tokens_.empty()) return false;
  const model::PassResult& result = runner_->Run({.tokens = tokens_,
                                                  .segments = segments_,
                                                  .logit_rows = logit_rows_,
                                                  .reduced = uses_reduced(),
                                                  .window = narrow_ ? narrow_window_ : window_,
                                                  .best_blocks = best_blocks_});
  ++work_.forwards;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    Chain& chain = At(segments_[i].seq);
    const int row = static_cast<int>(i);
    if (result.Finite(row))
      chain.Draw(Wide(result.Logits(row)));
    else
      chain.EndDraft(), ++work_.not_finite;
  }
  return true;
}

}  // namespace foretoken::draft
