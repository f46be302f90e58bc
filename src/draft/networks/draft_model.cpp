// SPDX-License-Identifier: Apache-2.0
#include "draft/networks/draft_model.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/check.h"
#include "kv/transaction.h"

namespace foretoken::draft {
namespace {

// The most rows of a text that one proposal prefills, so that a long prompt does not make other
// sequences wait. The number is a constant, because how much a text drafts must not depend on other
// texts.
constexpr int kCatchUpRows = 512;

constexpr std::array<std::string_view, 3> kStandaloneAliases = {"draft", "draft-simple",
                                                                "draft-model"};

// With a window, what it does not show is left out as soon as that saves two blocks.
ReadingWindow ReadingOf(const DrafterSettings& settings) {
  if (const int window = settings.options.draft_window; window > 0)
    return {.pass = window, .most = window + 2 * tensor::kKvBlock, .back = window};
  if (settings.narrow_window == 0) return {};
  return {.most = settings.long_text, .back = settings.narrow_window};
}

Result<std::unique_ptr<Drafter>> MakeDraftModel(DrafterSettings settings) {
  return std::make_unique<DraftModel>(std::move(settings.runner), settings.tables, settings.shared,
                                      settings.max_draft, *settings.kernels, settings.kv_cache,
                                      ReadingOf(settings));
}

}  // namespace

extern const DrafterSpec kStandaloneSpec = {.info = {.name = "standalone",
                                                     .aliases = kStandaloneAliases,
                                                     .help = "a small model of the same family",
                                                     .reports_q = true,
                                                     .reads_file = true,
                                                     .reads_p_min = true},
                                            .reads_models = true,
                                            .make = MakeDraftModel};

DraftModel::DraftModel(std::unique_ptr<model::Runner> runner, const kv::TablesShape& tables,
                       const SharedTokens& shared, int max_draft, const kernels::Kernels& kernels,
                       bool keeps_cache, const ReadingWindow& reading)
    : ListedDrafter(kStandaloneSpec),
      runner_(std::move(runner)),
      cache_(tables),
      keeps_cache_(keeps_cache),
      reading_(reading),
      wide_(shared, runner_->info().output_tokens) {
  const auto n = static_cast<std::size_t>(cache_.shape().n_sequences);
  sequences_.reserve(n);
  for (std::size_t i = 0; i < n; ++i)
    sequences_.push_back({.chain = Chain(shared.target, max_draft, kernels),
                          .text = OwnText(shared.map, cache_.shape().max_positions)});
  tokens_.reserve(static_cast<std::size_t>(runner_->info().max_rows));
  segments_.reserve(n);
  logit_rows_.reserve(n);
  logit_seqs_.reserve(n);
  kept_.reserve(n);
}

void DraftModel::Begin(const SequenceStart& start) {
  Sequence& s = sequences_[static_cast<std::size_t>(start.seq)];
  s.reads_all = reading_.most == 0 || start.own_text_only;
  s.text.Cut(s.reads_all && s.text.leaves_out() ? 0 : Common(start));
  const int known = s.text.length();
  s.chain.Start(start);
  s.text.Reserve(static_cast<int>(start.prompt.size()) + start.max_new_tokens + s.chain.max_draft(),
                 !s.reads_all);
  // The newest token is read by the first pass.
  const int length = static_cast<int>(s.text.Read(s.chain.text()).size());
  cache_.Truncate(start.seq, std::min({cache_.length(start.seq), known, std::max(0, length - 1)}));
  s.prompt_read = cache_.length(start.seq) > 0 && length - 1 - cache_.length(start.seq) <= 1;
}

// How many tokens a new text shares with the text whose place it takes, and with the drafts behind
// that.
int DraftModel::Common(const SequenceStart& start) const noexcept {
  const Chain& chain = sequences_[static_cast<std::size_t>(start.seq)].chain;
  if (!chain.started()) return 0;
  const auto common = [](std::span<const Token> a, std::span<const Token> b) {
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                    a.begin());
  };
  const auto text = chain.text(), prompt = start.prompt;
  std::size_t n = common(text, prompt);
  if (n == text.size()) n += common(chain.drafts(), prompt.subspan(n));
  return static_cast<int>(n);
}

void DraftModel::End(SeqId seq) noexcept {
  cache_.Truncate(seq, 0);
  Sequence& s = sequences_[static_cast<std::size_t>(seq)];
  s.chain.Stop();
  s.text.Cut(0);
}

int DraftModel::Missing(SeqId seq) const noexcept {
  const int cached = cache_.length(seq),
            behind = ReadsTheEnd(seq)
                         ? reading_.back + OwnText::kKept - std::min(cached, OwnText::kKept)
                         : sequences_[static_cast<std::size_t>(seq)].text.length() - cached;
  return std::max(0, behind - 2);  // the last one is a second row of the first draft's pass
}

bool DraftModel::ReadsTheEnd(SeqId seq) const noexcept {
  const Sequence& s = sequences_[static_cast<std::size_t>(seq)];
  if (s.reads_all) return false;
  const int length = s.text.length();
  if (length - 1 - cache_.length(seq) > reading_.most) return true;
  // What is left of the model's own context has no room for drafts, and will have room for many.
  return length + s.chain.max_draft() > cache_.shape().max_positions &&
         2 * length > 3 * (OwnText::kKept + reading_.back);
}

void DraftModel::LeaveOut(SeqId seq) noexcept {
  Sequence& s = sequences_[static_cast<std::size_t>(seq)];
  s.text.LeaveOut(s.chain.text().first(static_cast<std::size_t>(s.chain.position())),
                  reading_.back);
  cache_.Truncate(seq, std::min(cache_.length(seq), OwnText::kKept));
}

Drafter::Work DraftModel::TakeWork() noexcept {
  return std::exchange(work_, {});
}

void DraftModel::Propose(std::span<const Ask> asks, std::span<round::Proposal> proposals) noexcept {
  for (const Ask& ask : asks) {
    Sequence& s = sequences_[static_cast<std::size_t>(ask.seq)];
    // Drafts may be left of a proposal whose outcome was never observed.
    s.text.Cut(s.chain.position());
    if (ReadsTheEnd(ask.seq)) LeaveOut(ask.seq);
    const int length = s.text.length();
    cache_.Truncate(ask.seq, std::min(cache_.length(ask.seq), std::max(0, length - 1)));
    // Feeding the text and all drafts but the last must fit the cache.
    const int room = length == 0 ? 0 : cache_.shape().max_positions - length + 1;
    s.chain.BeginProposal(std::min(ask.max_tokens, room), ask.with_logits, ask.proposal);
    s.may_read = kCatchUpRows;
  }
  do {
    if (!keeps_cache_) DropCaches();
    CatchUp();
  } while (Advance());
  for (std::size_t i = 0; i < asks.size(); ++i)
    proposals[i] = sequences_[static_cast<std::size_t>(asks[i].seq)].chain.Finish();
}

// Empties the caches of the sequences that draft, except those whose prompt is still being
// prefilled in parts.
void DraftModel::DropCaches() noexcept {
  for (SeqId seq = 0; seq < cache_.shape().n_sequences; ++seq) {
    Sequence& s = sequences_[static_cast<std::size_t>(seq)];
    if (!s.chain.drafting() || !s.prompt_read) continue;
    cache_.Truncate(seq, 0);
    s.may_read = cache_.shape().max_positions;
  }
}

// Feeds the committed tokens that the cache lacks, except each sequence's last one, in passes of at
// most max_rows.
void DraftModel::CatchUp() noexcept {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  bool prompts = false;
  for (;;) {
    tokens_.clear(), segments_.clear(), logit_rows_.clear(), kept_.clear();
    for (SeqId seq = 0; seq < cache_.shape().n_sequences; ++seq) {
      Sequence& s = sequences_[static_cast<std::size_t>(seq)];
      if (!s.chain.drafting()) continue;
      prompts |= !s.prompt_read;
      const int cached = cache_.length(seq),
                room = runner_->info().max_rows - static_cast<int>(tokens_.size());
      // One missing token before the last is cheaper as a second row of the first drafting pass.
      const auto text = s.text.Read(s.chain.text());
      const int missing = static_cast<int>(text.size()) - 1 - cached;
      const int n = s.prompt_read && missing <= 1 ? 0 : std::min({missing, room, s.may_read});
      if (n <= 0) continue;
      s.may_read -= n;
      segments_.push_back({seq, static_cast<int>(tokens_.size()), n, cached, n});
      Read(text.subspan(static_cast<std::size_t>(cached), static_cast<std::size_t>(n)));
      kept_.push_back(n);
    }
    if (tokens_.empty()) break;
    work_.catch_up_rows += static_cast<int>(tokens_.size());
    Run();
  }
  for (SeqId seq = 0; seq < cache_.shape().n_sequences; ++seq) {
    Sequence& s = sequences_[static_cast<std::size_t>(seq)];
    if (!s.chain.drafting()) continue;
    s.prompt_read = s.text.length() - 1 - cache_.length(seq) <= 1;
    if (!s.prompt_read) s.chain.BeginProposal(0);  // the next proposal continues
  }
  if (work_.catch_up_rows == 0) return;
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  work_.catch_up_ms += ms;
  if (prompts) work_.prompt_ms += ms;
}

// Puts the tokens into the pass.
void DraftModel::Read(std::span<const Token> text) noexcept {
  for (const Token token : text) tokens_.push_back(runner_->info().Readable(token));
}

const model::PassResult& DraftModel::Run() noexcept {
  kv::Transaction transaction(cache_, segments_);
  const model::PassResult& result = runner_->Run({.tokens = tokens_,
                                                  .segments = segments_,
                                                  .logit_rows = logit_rows_,
                                                  .window = reading_.pass});
  transaction.Commit(kept_);
  ++work_.forwards;
  return result;
}

// Makes one more draft for every sequence that still wants one. Returns false when none does.
bool DraftModel::Advance() noexcept {
  tokens_.clear(), segments_.clear(), logit_rows_.clear(), logit_seqs_.clear(), kept_.clear();
  for (SeqId seq = 0; seq < cache_.shape().n_sequences; ++seq) {
    Sequence& s = sequences_[static_cast<std::size_t>(seq)];
    if (!s.chain.drafting()) continue;
    const auto text = s.text.Read(s.chain.text());
    const int cached = cache_.length(seq), n = static_cast<int>(text.size()) - cached;
    // The newest token may be read again, because its draft was never verified.
    const int certain = std::max(0, n - 1);
    segments_.push_back({seq, static_cast<int>(tokens_.size()), n, cached, certain});
    Read(text.subspan(static_cast<std::size_t>(cached)));
    logit_rows_.push_back(static_cast<int>(tokens_.size()) - 1);
    logit_seqs_.push_back(seq);
    kept_.push_back(n);
  }
  if (tokens_.empty()) return false;
  const model::PassResult& result = Run();
  for (std::size_t i = 0; i < logit_seqs_.size(); ++i) {
    Sequence& s = sequences_[static_cast<std::size_t>(logit_seqs_[i])];
    Chain& chain = s.chain;
    if (result.Finite(static_cast<int>(i)))
      chain.Draw(wide_.Of(result.Logits(static_cast<int>(i))));
    else
      chain.EndDraft(), ++work_.not_finite;
    if (chain.drafting() && !s.text.HasOne(chain.text().back())) chain.EndDraft();
  }
  return true;
}

void DraftModel::Observe(std::span<const Observation> observations) noexcept {
  for (const Observation& o : observations) {
    Sequence& s = sequences_[static_cast<std::size_t>(o.seq)];
    const int agreed = s.chain.position() + o.accepted;  // C + A
    const int newest = s.chain.position() + static_cast<int>(o.committed.size()) - 1;
    s.text.Cut(std::min(agreed, newest));
    cache_.Truncate(o.seq, std::min(cache_.length(o.seq), s.text.length()));
    s.chain.Commit(o.committed);
    s.text.Read(s.chain.text());
  }
}

}  // namespace foretoken::draft
