// SPDX-License-Identifier: Apache-2.0
#include "draft/networks/block_drafter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/stopwatch.h"
#include "foretoken/drafts.h"
#include "kv/transaction.h"

namespace foretoken::draft {
namespace {

constexpr std::array<std::string_view, 3> kBlockAliases = {"draft-dflash", "dspark",
                                                           "draft-dspark"};
constexpr float kNever = -std::numeric_limits<float>::infinity();

// The engine's K bounds the block, as the masks of tokens that nobody asks for only cost time.
Result<std::unique_ptr<Drafter>> MakeBlockDrafter(DrafterSettings settings) {
  const int k = settings.options.num_speculative_tokens.value_or(0);
  return std::make_unique<BlockDrafter>(std::move(settings.runner), *settings.head, settings.tables,
                                        settings.shared, k > 0 ? k : settings.max_draft,
                                        *settings.kernels, settings.options.draft_window);
}

bool AllFinite(const float* x, int n) {
  return std::all_of(x, x + n, [](float value) { return std::isfinite(value); });
}

}  // namespace

extern const DrafterSpec kDflashSpec = {
    .info = {.name = "dflash",
             .aliases = kBlockAliases,
             .help = "a DFlash, DFlash 2 or DSpark file: drafts in one pass",
             .reports_q = true,
             .reads_features = true,
             .reads_file = true,
             .reads_p_min = true,
             .drafts_at_once = true},
    .make = MakeBlockDrafter};

BlockDrafter::BlockDrafter(std::unique_ptr<model::Runner> runner, const model::HeadConfig& config,
                           const kv::TablesShape& tables, const SharedTokens& shared, int most,
                           const kernels::Kernels& kernels, int window)
    : ReducibleDrafter(kDflashSpec, shared, runner->info()),
      runner_(std::move(runner)),
      cache_(tables),
      config_(config),
      first_row_(config.drafts_first_row ? 0 : 1),
      rows_(std::min({config.block_size, most + first_row_, kMaxDraft + first_row_})),
      window_(window),
      columns_(runner_->info().vocabulary) {
  const int width = config_.features_width();
  const auto n = static_cast<std::size_t>(cache_.shape().n_sequences),
             rows = static_cast<std::size_t>(runner_->info().max_rows);
  sequences_.reserve(n);
  for (std::size_t i = 0; i < n; ++i)
    sequences_.push_back(
        {.chain = Chain(shared.target, std::max(1, MostRows()), kernels),
         .waiting = FeatureQueue(runner_->info().max_rows, width, config_.target_dim)});
  features_ = AlignedBuffer<float>(rows * static_cast<std::size_t>(width));
  tokens_.reserve(rows);
  segments_.reserve(n), kept_.reserve(n);
  logit_rows_.reserve(n * static_cast<std::size_t>(rows_));
  if (Selects()) {
    candidate_logits_ = AlignedBuffer<float>(static_cast<std::size_t>(columns_));
    std::fill_n(candidate_logits_.data(), columns_, kNever);
  }
  if (!Transits()) return;
  const auto kept = n * static_cast<std::size_t>(MostRows());
  kept_logits_ = AlignedBuffer<float>(kept * static_cast<std::size_t>(columns_));
  kept_states_ = AlignedBuffer<float>(kept * static_cast<std::size_t>(runner_->info().dim));
  step_tokens_.reserve(n), steps_.reserve(n), step_rows_.reserve(n);
}

void BlockDrafter::Begin(const SequenceStart& start) {
  At(start.seq).chain.Start(start);
  StartReading(start.seq);
}

// Returns to the state before the first feature, which comes next.
void BlockDrafter::StartReading(SeqId seq) noexcept {
  cache_.Truncate(seq, 0);
  At(seq).waiting.Clear();
  At(seq).full = false;
}

void BlockDrafter::End(SeqId seq) noexcept {
  cache_.Truncate(seq, 0);
  At(seq).chain.Stop();
}

void BlockDrafter::Observe(std::span<const Observation> observations) noexcept {
  for (const Observation& o : observations) {
    Sequence& s = At(o.seq);
    s.chain.Commit(o.committed);
    if (o.n_features > 0 && o.first_position == 0) StartReading(o.seq);
    if (s.full) continue;
    FORETOKEN_CHECK(o.first_position == cache_.length(o.seq) + s.waiting.size());
    for (int done = 0; done < o.n_features && !s.full;) {
      const int n = std::min(o.n_features - done, s.waiting.room());
      s.waiting.Add(o, done, n);
      done += n;
      if (s.waiting.room() > 0) continue;
      StartPass();
      AddWaiting(o.seq);
      Inject();
      if (s.full) s.waiting.Clear();
    }
  }
}

void BlockDrafter::StartPass() noexcept {
  tokens_.clear(), segments_.clear(), logit_rows_.clear(), kept_.clear();
}

// Puts as many waiting rows of a sequence into the pass as fit. Returns true if all of them fit.
bool BlockDrafter::AddWaiting(SeqId seq) noexcept {
  Sequence& s = At(seq);
  const int first = static_cast<int>(tokens_.size()), room = cache_.room(seq);
  s.full = room < s.waiting.size();
  const int n = std::min({s.waiting.size(), runner_->info().max_rows - first, room});
  if (n <= 0) return s.waiting.size() == 0;
  s.waiting.Take(n, features_.data() + std::int64_t{first} * config_.features_width());
  tokens_.insert(tokens_.end(), static_cast<std::size_t>(n), 0);  // not read
  segments_.push_back({.seq = seq,
                       .row_begin = first,
                       .n_rows = n,
                       .first_position = cache_.length(seq),
                       .n_certain = n});
  kept_.push_back(n);
  return s.waiting.size() == 0;
}

void BlockDrafter::Inject() noexcept {
  if (tokens_.empty()) return;
  kv::Transaction transaction(cache_, segments_);
  runner_->Run({.tokens = tokens_,
                .segments = segments_,
                .logit_rows = logit_rows_,
                .features = features_.data()});
  transaction.Commit(kept_);
  ++work_.forwards;
}

// Injects the waiting rows of all sequences that draft.
void BlockDrafter::InjectAll() noexcept {
  int behind = 0, n_rows = 0;
  bool prompts = false;
  const auto inject = [&] {
    for (bool whole = false; !whole; Inject()) {
      StartPass();
      whole = true;
      for (SeqId seq = 0; seq < cache_.shape().n_sequences; ++seq) {
        if (!At(seq).chain.drafting()) continue;
        prompts |= cache_.length(seq) == 0;
        behind += At(seq).waiting.behind();
        whole &= AddWaiting(seq);
      }
      n_rows += static_cast<int>(tokens_.size());
    }
  };
  const double ms = Microseconds(inject) / 1000;
  if (behind == 0) return;
  work_.catch_up_rows += n_rows, work_.catch_up_ms += ms;
  if (prompts) work_.prompt_ms += ms;
}

void BlockDrafter::AddBlock(SeqId seq) noexcept {
  Sequence& s = At(seq);
  const int first = static_cast<int>(tokens_.size()), cached = cache_.length(seq);
  const int n = std::min(rows_, cache_.room(seq));
  s.logit_row = static_cast<int>(logit_rows_.size());
  tokens_.push_back(runner_->info().Readable(s.chain.text().back()));
  tokens_.insert(tokens_.end(), static_cast<std::size_t>(n - 1), config_.mask);
  segments_.push_back({.seq = seq, .row_begin = first, .n_rows = n, .first_position = cached});
  for (int i = 0; i < s.asked; ++i) logit_rows_.push_back(first + first_row_ + i);
}

// One pass for all sequences that draft. Without a commit the transaction takes its rows back.
void BlockDrafter::DraftBlocks() noexcept {
  StartPass();
  for (SeqId seq = 0; seq < cache_.shape().n_sequences; ++seq)
    if (At(seq).chain.drafting()) AddBlock(seq);
  if (tokens_.empty()) return;
  const kv::Transaction transaction(cache_, segments_);
  const model::PassResult& result = runner_->Run({.tokens = tokens_,
                                                  .segments = segments_,
                                                  .logit_rows = logit_rows_,
                                                  .reduced = uses_reduced(),
                                                  .window = window_});
  ++work_.forwards;
  if (Transits())
    DrawAfterTransitions(result);
  else if (Selects())
    DrawCandidates(result);
  else
    DrawAll(result);
}

void BlockDrafter::DrawAll(const model::PassResult& result) noexcept {
  for (const kv::Segment& segment : segments_) {
    Sequence& s = At(segment.seq);
    for (int row = s.logit_row; s.chain.drafting(); ++row)
      if (result.Finite(row))
        s.chain.Draw(Wide(result.Logits(row)));
      else
        s.chain.EndDraft(), ++work_.not_finite;
  }
}

// Each draft is drawn from the candidates of its row, whose logits the draft before it decides.
void BlockDrafter::DrawCandidates(const model::PassResult& result) noexcept {
  for (const kv::Segment& segment : segments_) {
    Sequence& s = At(segment.seq);
    for (int row = s.logit_row, before = 0; s.chain.drafting(); ++row) {
      const float* const scores = result.candidates.Scores(row, before);
      if (!result.Finite(row) || !AllFinite(scores, result.candidates.n)) {
        s.chain.EndDraft(), ++work_.not_finite;
        break;
      }
      before = DrawCandidate(s.chain, result.candidates.Columns(row), scores);
      if (before < 0) s.chain.EndDraft();
    }
  }
}

// Returns which of the columns was drawn. Negative: none of them, as where a grammar forbids them all.
int BlockDrafter::DrawCandidate(Chain& chain, std::span<const std::int32_t> columns,
                                const float* scores) noexcept {
  float* const logits = candidate_logits_.data();
  for (std::size_t i = 0; i < columns.size(); ++i) logits[columns[i]] = scores[i];
  chain.Draw(Wide(logits));
  for (const std::int32_t column : columns) logits[column] = kNever;
  const Token drawn = chain.text().back();
  const std::span<const Token> tokens = runner_->info().output_tokens;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::int32_t column = columns[i];
    if (drawn == (tokens.empty() ? column : tokens[static_cast<std::size_t>(column)]))
      return static_cast<int>(i);
  }
  return -1;
}

// The next pass overwrites the result. Draft by draft, in all sequences that still draft.
void BlockDrafter::DrawAfterTransitions(const model::PassResult& block) noexcept {
  KeepRows(block);
  for (int step = 0; step < MostRows(); ++step) {
    const model::PassResult& added = RunTransitions(step);
    if (step_tokens_.empty()) return;
    for (int i = 0; i < static_cast<int>(steps_.size()); ++i) {
      Sequence& s = At(steps_[static_cast<std::size_t>(i)].seq);
      float* const logits = LogitsOf(s.logit_row + step);
      const float* const more = added.Logits(i);
      for (std::int64_t column = 0; column < columns_; ++column) logits[column] += more[column];
      const auto row = static_cast<std::size_t>(i);
      if (added.Finite(i))
        s.chain.Draw(Wide(logits), added.certainties.empty() ? -1 : added.certainties[row]);
      else
        s.chain.EndDraft(), ++work_.not_finite;
    }
  }
}

// Sequences whose rows are not finite end their drafts here.
void BlockDrafter::KeepRows(const model::PassResult& result) noexcept {
  const int dim = runner_->info().dim;
  for (const kv::Segment& segment : segments_) {
    Sequence& s = At(segment.seq);
    for (int row = s.logit_row; row < s.logit_row + s.asked; ++row) {
      std::copy_n(result.Logits(row), columns_, LogitsOf(row));
      std::copy_n(result.OwnFeature(row), dim, StateOf(row));
      if (!result.Finite(row)) s.chain.EndDraft(), ++work_.not_finite;
    }
  }
}

// What the newest token, or the last draft, of each sequence that drafts adds to the logits of draft
// `step`. Empty step_tokens_: none drafts.
const model::PassResult& BlockDrafter::RunTransitions(int step) noexcept {
  static const model::PassResult nothing;
  step_tokens_.clear(), steps_.clear(), step_rows_.clear();
  const std::int64_t dim = runner_->info().dim;
  for (const kv::Segment& segment : segments_) {
    const Sequence& s = At(segment.seq);
    if (!s.chain.drafting()) continue;
    const int row = static_cast<int>(step_tokens_.size());
    std::copy_n(StateOf(s.logit_row + step), dim, features_.data() + row * dim);
    step_tokens_.push_back(s.chain.text().back());
    step_rows_.push_back(row);
    kv::Segment one = segment;  // with the blocks of its positions
    one.row_begin = row, one.n_rows = 1;
    steps_.push_back(one);
  }
  if (step_tokens_.empty()) return nothing;
  ++work_.forwards;
  return runner_->Run({.tokens = step_tokens_,
                       .segments = steps_,
                       .logit_rows = step_rows_,
                       .features = features_.data(),
                       .own_features = true});
}

// The drafter needs the features of all positions before the newest token, and room for them and for
// the block.
int BlockDrafter::MostDrafts(const Ask& ask) noexcept {
  const Sequence& s = At(ask.seq);
  const int known = cache_.length(ask.seq) + s.waiting.size();
  if (s.full || known == 0 || known + 1 != static_cast<int>(s.chain.text().size())) return 0;
  const int room = cache_.room(ask.seq) - s.waiting.size() - first_row_;
  return std::max(0, std::min({ask.max_tokens, MostRows(), room}));
}

void BlockDrafter::Propose(std::span<const Ask> asks,
                           std::span<round::Proposal> proposals) noexcept {
  for (const Ask& ask : asks) {
    Sequence& s = At(ask.seq);
    s.asked = MostDrafts(ask);
    s.chain.BeginProposal(s.asked, ask.with_logits, ask.proposal);
  }
  InjectAll();
  DraftBlocks();
  for (std::size_t i = 0; i < asks.size(); ++i) proposals[i] = At(asks[i].seq).chain.Finish();
}

}  // namespace foretoken::draft
