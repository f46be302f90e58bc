// SPDX-License-Identifier: Apache-2.0
#include "calibrate/draft_meter.h"

#include <algorithm>

#include "kv/transaction.h"

namespace foretoken::calibrate {
namespace {

constexpr int kFeatureRows = 64;
constexpr Token kFiller = 5;  // every vocabulary has it

}  // namespace

DraftMeter::DraftMeter(draft::Drafter& drafter, const DraftSetting& setting, int context,
                       int rounds)
    : drafter_(drafter),
      setting_(setting),
      context_(std::max(1, context)),
      rounds_(rounds),
      features_(static_cast<std::size_t>(kFeatureRows * setting.features_width)) {
  const auto n = static_cast<std::size_t>(setting.n_sequences);
  std::fill_n(features_.data(), features_.size(), 0.01F);
  processed_.resize(n), last_drafted_.resize(n), asks_.reserve(n), proposals_.resize(n);
  for (SeqId seq = 0; seq < setting.n_sequences; ++seq) Start(seq);
}

DraftMeter::~DraftMeter() {
  for (SeqId seq = 0; seq < setting_.n_sequences; ++seq) Stop(seq);
}

void DraftMeter::ReadAgain() {
  for (SeqId seq = 0; seq < setting_.n_sequences; ++seq) Stop(seq), Start(seq);
  read_rows_ = 0, read_ms_ = 0;
  RoundMicroseconds(setting_.n_sequences, 1);
}

// Without room for them the drafter drafts nothing.
void DraftMeter::Hold(SeqId seq, int n_rows) noexcept {
  kv::BlockTables* const cache = setting_.target_cache;
  if (cache == nullptr || cache->MissingBlocks(seq, n_rows) > cache->n_available_blocks() ||
      cache->room(seq) < n_rows)
    return;
  kv::Segment segment{
      .seq = seq, .n_rows = n_rows, .first_position = cache->length(seq), .n_certain = n_rows};
  kv::Transaction(*cache, {&segment, 1}).Commit({&n_rows, 1});
}

void DraftMeter::Start(SeqId seq) {
  if (setting_.target_cache != nullptr) setting_.target_cache->Truncate(seq, 0);
  const std::vector<Token> prompt(static_cast<std::size_t>(context_), kFiller);
  drafter_.Begin({.seq = seq,
                  .prompt = prompt,
                  .max_new_tokens = rounds_ + 3 + setting_.drafts,
                  .sampling = setting_.sampling,
                  .noise = Noise(0, static_cast<std::uint64_t>(seq))});
  int& processed = processed_[static_cast<std::size_t>(seq)];
  processed = 0, last_drafted_[static_cast<std::size_t>(seq)] = 0;
  while (processed < context_) {
    const int n = std::min(kFeatureRows, context_ - processed);
    Observe(seq, n, processed + n == context_);
  }
}

void DraftMeter::Stop(SeqId seq) noexcept {
  drafter_.End(seq);
  if (setting_.target_cache != nullptr) setting_.target_cache->Truncate(seq, 0);
}

// The target has processed n more positions; after the last of them one token is committed.
void DraftMeter::Observe(SeqId seq, int n_features, bool commits) noexcept {
  const auto i = static_cast<std::size_t>(seq);
  const Token token = kFiller;
  const draft::Observation observation = {
      .seq = seq,
      .committed = {&token, commits ? std::size_t{1} : 0},
      .drafted = last_drafted_[i],
      .accepted = 0,
      .features = setting_.features_width > 0 ? features_.data() : nullptr,
      .n_features = n_features,
      .first_position = processed_[i]};
  Hold(seq, n_features);
  drafter_.Observe({&observation, 1});
  processed_[i] += n_features;
  last_drafted_[i] = 0;
}

double DraftMeter::RoundMicroseconds(int rows, int drafts) noexcept {
  asks_.clear();
  for (SeqId seq = 0; seq < rows; ++seq) {
    // The engine asks for no drafts that its own context could not take.
    const int room = setting_.context_size - processed_[static_cast<std::size_t>(seq)] - 1;
    if (room < drafts) return -1;
    asks_.push_back({seq, drafts});
  }
  const auto proposals = std::span(proposals_).first(asks_.size());
  const double us =
      foretoken::Microseconds([&] { drafter_.Propose(asks_, proposals); }, setting_.now);
  const draft::Drafter::Work work = drafter_.TakeWork();
  read_rows_ += work.catch_up_rows, read_ms_ += work.catch_up_ms;
  bool whole = true;
  for (std::size_t i = 0; i < asks_.size(); ++i) {
    last_drafted_[i] = proposals[i].length();
    whole &= last_drafted_[i] == drafts;
  }
  for (SeqId seq = 0; seq < rows; ++seq) Observe(seq, 1, true);
  return whole ? us : -1;
}

}  // namespace foretoken::calibrate
