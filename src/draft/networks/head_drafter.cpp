// SPDX-License-Identifier: Apache-2.0
#include "draft/networks/head_drafter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/stopwatch.h"
#include "draft/networks/assistant_drafter.h"
#include "kv/transaction.h"

namespace foretoken::draft {
namespace {

constexpr std::array<std::string_view, 2> kEagleAliases = {"eagle3", "draft-eagle3"},
                                          kMtpAliases = {"draft-mtp", "nextn"};

Result<std::unique_ptr<Drafter>> MakeHeadDrafter(DrafterSettings settings) {
  return std::make_unique<HeadDrafter>(std::move(settings.runner), *settings.head, settings.tables,
                                       settings.shared, settings.max_draft, *settings.kernels,
                                       settings.options.draft_window);
}

Result<std::unique_ptr<Drafter>> MakeMtp(DrafterSettings settings) {
  return settings.head->reads_cache ? MakeAssistant(std::move(settings))
                                    : MakeHeadDrafter(std::move(settings));
}

}  // namespace

extern const DrafterSpec kEagleSpec = {.info = {.name = "eagle",
                                                .aliases = kEagleAliases,
                                                .help = "an EAGLE-3 head of the model",
                                                .reports_q = true,
                                                .reads_features = true,
                                                .reads_file = true,
                                                .reads_p_min = true},
                                       .make = MakeHeadDrafter};
extern const DrafterSpec kMtpSpec = {
    .info = {.name = "mtp",
             .aliases = kMtpAliases,
             .help = "an MTP head, of its own file or of the model's",
             .reports_q = true,
             .reads_features = true,
             .reads_file = true,
             .in_target = true,
             .reads_p_min = true},
    .make = MakeMtp};

HeadDrafter::HeadDrafter(std::unique_ptr<model::Runner> runner, const model::HeadConfig& config,
                         const kv::TablesShape& tables, const SharedTokens& shared, int max_draft,
                         const kernels::Kernels& kernels, int window)
    : ReducibleDrafter(SpecOf(*config.kind), shared, runner->info()),
      runner_(std::move(runner)),
      cache_(tables),
      config_(config),
      width_(config.features_width()),
      window_(window) {
  const auto n = static_cast<std::size_t>(cache_.shape().n_sequences),
             rows = static_cast<std::size_t>(runner_->info().max_rows),
             dim = static_cast<std::size_t>(runner_->info().dim);
  sequences_.reserve(n);
  for (std::size_t i = 0; i < n; ++i)
    sequences_.push_back(
        {.chain = Chain(shared.target, max_draft, kernels),
         .waiting = FeatureQueue(runner_->info().max_rows, width_, config_.target_dim),
         .own = AlignedBuffer<float>(dim)});
  features_ = AlignedBuffer<float>(std::max(rows * static_cast<std::size_t>(width_), n * dim));
  tokens_.reserve(rows);
  segments_.reserve(n), logit_rows_.reserve(n), logit_seqs_.reserve(n), kept_.reserve(n);
  committed_.resize(n);
}

model::FeatureRequest HeadDrafter::Needs() const {
  if (config_.feature_layers.empty()) return {.normed = true};
  return {.layers = config_.feature_layers};
}

void HeadDrafter::Begin(const SequenceStart& start) {
  sequences_[static_cast<std::size_t>(start.seq)].chain.Start(start);
  StartReading(start.seq, 0);
}

// Returns to the state before the first feature, which comes next and is that of position `base`.
void HeadDrafter::StartReading(SeqId seq, Pos base) noexcept {
  Sequence& s = sequences_[static_cast<std::size_t>(seq)];
  cache_.Truncate(seq, 0);
  s.waiting.Clear();
  s.base = base;
  s.full = false;
  if (config_.begins_with_zeros) s.waiting.AddZeros();  // no feature precedes the first token
}

void HeadDrafter::End(SeqId seq) noexcept {
  cache_.Truncate(seq, 0);
  sequences_[static_cast<std::size_t>(seq)].chain.Stop();
}

void HeadDrafter::Observe(std::span<const Observation> observations) noexcept {
  for (const Observation& o : observations) {
    Sequence& s = sequences_[static_cast<std::size_t>(o.seq)];
    s.chain.Commit(o.committed);
    // Feature f_p goes to row p - base, or behind a row of zeros, so none may be missing.
    const auto expected = [&] {
      return s.base + cache_.length(o.seq) + s.waiting.size() - (config_.begins_with_zeros ? 1 : 0);
    };
    const bool gap = !s.full && o.first_position > expected();
    if (o.n_features > 0 && (o.first_position == 0 || gap)) StartReading(o.seq, o.first_position);
    if (s.full) continue;
    FORETOKEN_CHECK(o.n_features == 0 || o.first_position == expected());
    for (int done = 0; done < o.n_features;) {
      if (s.waiting.room() == 0) ReadWaiting(o.seq);
      if (s.full) break;
      const int n = std::min(o.n_features - done, s.waiting.room());
      s.waiting.Add(o, done, n);
      done += n;
    }
  }
}

void HeadDrafter::StartPass() noexcept {
  tokens_.clear(), segments_.clear(), logit_rows_.clear(), logit_seqs_.clear(), kept_.clear();
}

// Puts waiting rows of a sequence into the pass: at most so many, and as many as fit.
void HeadDrafter::AddWaiting(SeqId seq, int most) noexcept {
  Sequence& s = sequences_[static_cast<std::size_t>(seq)];
  const int first = static_cast<int>(tokens_.size()), cached = cache_.length(seq);
  const int room = std::min(runner_->info().max_rows - first, cache_.room(seq));
  const int n = std::min(most, room);
  if (n <= 0) return;
  const auto text = s.chain.text();
  const int token = s.base + cached + (config_.begins_with_zeros ? 0 : 1);
  FORETOKEN_CHECK(token + n <= static_cast<int>(text.size()));
  for (int i = token; i < token + n; ++i)
    tokens_.push_back(runner_->info().Readable(text[static_cast<std::size_t>(i)]));
  s.waiting.Take(n, features_.data() + std::int64_t{first} * width_);
  segments_.push_back({seq, first, n, cached});
  kept_.push_back(n);
}

const model::PassResult& HeadDrafter::Run(bool own_features) noexcept {
  kv::Transaction transaction(cache_, segments_);
  const model::PassResult& result = runner_->Run({.tokens = tokens_,
                                                  .segments = segments_,
                                                  .logit_rows = logit_rows_,
                                                  .features = features_.data(),
                                                  .own_features = own_features,
                                                  .reduced = uses_reduced(),
                                                  .window = window_});
  transaction.Commit(kept_);
  ++work_.forwards;
  return result;
}

void HeadDrafter::ReadWaiting(SeqId seq) noexcept {
  Sequence& s = sequences_[static_cast<std::size_t>(seq)];
  StartPass();
  AddWaiting(seq, s.waiting.size());
  if (!tokens_.empty()) {
    Run(false);
    return;
  }
  s.full = true;
  s.waiting.Clear();
}

// Reads what the sequences that draft are behind with.
void HeadDrafter::CatchUp() noexcept {
  int n_rows = 0;
  bool prompts = false;
  const auto read = [&] {
    for (StartPass();; StartPass()) {
      for (SeqId seq = 0; seq < cache_.shape().n_sequences; ++seq) {
        const Sequence& s = sequences_[static_cast<std::size_t>(seq)];
        if (!s.chain.drafting()) continue;
        prompts |= cache_.length(seq) == 0;
        AddWaiting(seq, s.waiting.behind());
      }
      if (tokens_.empty()) return;
      n_rows += static_cast<int>(tokens_.size());
      Run(false);
    }
  };
  const double ms = Microseconds(read) / 1000;
  if (n_rows == 0) return;
  work_.catch_up_rows += n_rows, work_.catch_up_ms += ms;
  if (prompts) work_.prompt_ms += ms;
}

// Processes the waiting rows of the sequences that draft. The last row of each gives its first
// draft.
bool HeadDrafter::DraftFirst() noexcept {
  StartPass();
  bool left = false;
  for (SeqId seq = 0; seq < cache_.shape().n_sequences; ++seq) {
    const Sequence& s = sequences_[static_cast<std::size_t>(seq)];
    if (!s.chain.drafting() || s.waiting.size() == 0) continue;
    AddWaiting(seq, s.waiting.size());
    left |= s.waiting.size() > 0;
    if (s.waiting.size() > 0) continue;
    logit_rows_.push_back(static_cast<int>(tokens_.size()) - 1);
    logit_seqs_.push_back(seq);
  }
  if (tokens_.empty()) return false;
  const model::PassResult& result = Run(false);
  for (const SeqId seq : logit_seqs_)
    committed_[static_cast<std::size_t>(seq)] = cache_.length(seq);
  DrawAll(result);
  return left;
}

// Makes one more draft for every sequence that still wants one. Returns false when none does.
bool HeadDrafter::DraftNext() noexcept {
  StartPass();
  const int dim = runner_->info().dim;
  for (SeqId seq = 0; seq < cache_.shape().n_sequences; ++seq) {
    const Sequence& s = sequences_[static_cast<std::size_t>(seq)];
    if (!s.chain.drafting()) continue;
    const int row = static_cast<int>(tokens_.size());
    std::copy_n(s.own.data(), dim, features_.data() + std::int64_t{row} * dim);
    tokens_.push_back(runner_->info().Readable(s.chain.text().back()));
    segments_.push_back({seq, row, 1, cache_.length(seq)});
    kept_.push_back(1);
    logit_rows_.push_back(row);
    logit_seqs_.push_back(seq);
  }
  if (tokens_.empty()) return false;
  DrawAll(Run(true));
  return true;
}

void HeadDrafter::DrawAll(const model::PassResult& result) noexcept {
  for (std::size_t i = 0; i < logit_seqs_.size(); ++i) {
    Sequence& s = sequences_[static_cast<std::size_t>(logit_seqs_[i])];
    const int row = static_cast<int>(i);
    std::copy_n(result.OwnFeature(row), runner_->info().dim, s.own.data());
    if (result.Finite(row))
      s.chain.Draw(Wide(result.Logits(row)));
    else
      s.chain.EndDraft(), ++work_.not_finite;
  }
}

void HeadDrafter::Propose(std::span<const Ask> asks,
                          std::span<round::Proposal> proposals) noexcept {
  for (const Ask& ask : asks) {
    Sequence& s = sequences_[static_cast<std::size_t>(ask.seq)];
    // The waiting rows and all drafts but the last must fit the cache.
    const int room = cache_.room(ask.seq) - s.waiting.size() + 1;
    s.chain.BeginProposal(s.waiting.size() > 0 ? std::min(ask.max_tokens, room) : 0,
                          ask.with_logits, ask.proposal);
  }
  CatchUp();
  while (DraftFirst()) {
  }
  while (DraftNext()) {
  }
  for (std::size_t i = 0; i < asks.size(); ++i) {
    const auto seq = static_cast<std::size_t>(asks[i].seq);
    proposals[i] = sequences_[seq].chain.Finish();
    if (proposals[i].length() > 0) cache_.Truncate(asks[i].seq, committed_[seq]);
  }
}

}  // namespace foretoken::draft
