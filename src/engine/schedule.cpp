// SPDX-License-Identifier: Apache-2.0
// Who takes part in a pass: requests get sequences, sequences get rows, and rows get cache blocks.
//
// Rows: those that decode first, each with room for a whole draft; then prompts, the one with the
// least left to read first. Where others may wait for a pass (all but GenerateBatch), prompts get
// no more rows than keep it short.
//
// Blocks: where they run out the youngest request gives its own back and waits; it reads its text
// again when there is room. The oldest one can take all blocks, and each request fits alone
// (Check), so there is always one that goes on.
#include <algorithm>

#include "base/check.h"
#include "engine/impl.h"

namespace foretoken {
namespace {

constexpr int kPatience = 2;  // passes that a prompt lets shorter ones go before

}  // namespace

int Engine::Impl::MissingRows(const engine::Sequence& s) const noexcept {
  return s.sampler.position() - cache_->length(s.job->seq);
}

// It has text to read before it can decode.
bool Engine::Impl::Reads(const engine::Sequence& s) const noexcept {
  return s.sampler.n_generated() == 0 || MissingRows(s) > MostDecodingRows();
}

// Committed tokens that a round of one sequence reads at most: the newest; without a cache the
// whole text, as far as it fits the sequence's share of a pass beside its drafts.
int Engine::Impl::MostDecodingRows() const noexcept {
  if (options_.kv_cache) return 1;
  return target_->info().max_rows / options_.max_sequences - kMaxDraft;
}

// The target adds a token of its own, so a draft of room - 1 is the longest that can be committed.
int Engine::Impl::MostDrafts(const engine::Sequence& s, int rows) const noexcept {
  if (!s.drafts()) return 0;
  return std::max(0, std::min({s.most_drafts, s.emitter.tokens_left() - 1, rows}));
}

// Tokens whose blocks may come from other requests: never the last one, whose logits are needed.
// Drafters that read features need those of all positions once.
std::span<const Token> Engine::Impl::SharableText(const engine::Sequence& s) const noexcept {
  if (!options_.prefix_cache || !s.request().reuse_prefix || ReadsPromptLogprobs(s)) return {};
  const bool features = std::any_of(s.drafters.begin(), s.drafters.end(), [this](int d) {
    return drafters_[static_cast<std::size_t>(d)].reads_features();
  });
  const auto text = s.sampler.text().first(s.sampler.text().size() - 1);
  return features ? text.first(std::min(text.size(), static_cast<std::size_t>(s.reached))) : text;
}

void Engine::Impl::SharePrefix(engine::Sequence& s) noexcept {
  const int gained = cache_->Share(s.job->seq, SharableText(s));
  if (gained == 0) return;
  const int length = cache_->length(s.job->seq);
  if (s.sampler.n_generated() == 0) {
    const int cached = length - std::max(s.reached, length - gained);
    s.completion.timings.cached_prompt_tokens += std::max(0, cached);
    totals_.cached_prompt_tokens += std::max(0, cached);
  }
  s.reached = std::max(s.reached, length);
}

// Blocks that nobody needs soon: each running request may still read its text and one token more.
int Engine::Impl::SpareBlocks() const noexcept {
  int spare = cache_->n_available_blocks();
  for (const auto& s : sequences_) {
    if (s == nullptr || s->preempted) continue;
    const int held = static_cast<int>(cache_->Blocks(s->job->seq).size());
    spare -= std::max(0, kv::BlocksFor(s->sampler.position() + 1) - held);
  }
  return spare;
}

bool Engine::Impl::MayJoin(const engine::Job& job) const noexcept {
  if (job.cancelled) return true;
  bool runs = false;
  for (const auto& s : sequences_) {
    if (s == nullptr || s->job->paused) continue;
    if (s->preempted) return false;  // it was here first
    runs = true;
  }
  if (!runs) return true;
  const auto n = static_cast<int>(job.prompt.size());
  const int shared =
      options_.prefix_cache && job.request.reuse_prefix && job.request.prompt_logprobs < 0
          ? cache_->SharedBlocks(std::span(job.prompt).first(job.prompt.size() - 1))
          : 0;
  return kv::BlocksFor(n + 1) - shared <= SpareBlocks();
}

void Engine::Impl::AdmitWaiting() noexcept {
  EndCancelled();
  for (SeqId seq = 0; seq < static_cast<SeqId>(sequences_.size()); ++seq)
    while (!waiting_.empty() && sequences_[static_cast<std::size_t>(seq)] == nullptr) {
      engine::Job& job = *waiting_.front();
      if (!MayJoin(job)) return;
      waiting_.pop_front();
      job.seq = seq;
      if (!TryFor(job, [&] { Admit(job, seq); }))  // nothing of it stays
        Finish(job, FinishReason::kError);
      else if (job.cancelled)
        Finish(job, FinishReason::kCancelled);
      else if (At(seq).emitter.tokens_left() <= 0 && !ReadsPromptLogprobs(At(seq)))
        Finish(job, FinishReason::kLength);
    }
}

// Those that no pass may reach soon.
void Engine::Impl::EndCancelled() noexcept {
  bool any = false;
  for (SeqId seq = 0; seq < static_cast<SeqId>(sequences_.size()); ++seq) {
    const engine::Sequence* s = sequences_[static_cast<std::size_t>(seq)].get();
    if (s == nullptr || !s->job->cancelled) continue;
    Finish(*s->job, FinishReason::kCancelled);
    any = true;
  }
  if (any) PublishRecord();
}

void Engine::Impl::PlanWork() noexcept {
  work_.clear(), order_.clear();
  for (const auto& s : sequences_)
    if (s != nullptr && !s->job->paused) order_.push_back(s->job->seq);
  std::sort(order_.begin(), order_.end(),
            [this](SeqId a, SeqId b) { return At(a).job->ticket < At(b).job->ticket; });
  Resume();
  for (const SeqId seq : order_)
    if (!At(seq).preempted && Reads(At(seq))) SharePrefix(At(seq));
  const int rows = PlanDecoding(target_->info().max_rows);
  PlanPrompts(rows);
  SettleBlocks();
}

void Engine::Impl::Resume() noexcept {
  for (const SeqId seq : order_) {
    engine::Sequence& s = At(seq);
    if (!s.preempted) continue;
    // The oldest one need not wait: blocks are taken from the others.
    const int needed =
        kv::BlocksFor(s.sampler.position() + 1) - cache_->SharedBlocks(SharableText(s));
    if (seq != order_.front() && needed > SpareBlocks()) return;
    s.preempted = false;
  }
}

// Returns the rows that are left.
int Engine::Impl::PlanDecoding(int rows) noexcept {
  for (const SeqId seq : order_) {
    const engine::Sequence& s = At(seq);
    if (s.preempted || Reads(s)) continue;
    Work& work = work_.emplace_back();
    work.seq = seq;
    work.n_feed = MissingRows(s);
    work.decodes = work.may_draft = true;
    work.max_draft = MostDrafts(s, rows - work.n_feed);  // max_rows holds whole drafts of all
    rows -= work.n_feed + work.max_draft;
  }
  return rows;
}

// What the pass would take without prompts; 0: not known.
double Engine::Impl::PlainPassUs() const noexcept {
  if (!costs_->known()) return 0;
  std::int64_t context = 0;
  int n = 0;
  for (const Work& work : work_)
    if (!work.prefill) context += cache_->length(work.seq), ++n;
  return costs_->PassUs(std::max(1, n), static_cast<int>(context / std::max(1, n)));
}

void Engine::Impl::PlanPrompts(int rows) noexcept {
  prompts_.clear();
  for (const SeqId seq : order_)
    if (!At(seq).preempted && Reads(At(seq))) prompts_.push_back(seq);
  if (prompts_.empty()) return;
  const auto goes_first = [this](SeqId a, SeqId b) {
    const engine::Sequence &x = At(a), &y = At(b);
    const bool x_waited = x.passed_over >= kPatience, y_waited = y.passed_over >= kPatience;
    if (x_waited != y_waited) return x_waited;
    const int x_left = MissingRows(x), y_left = MissingRows(y);
    return x_left != y_left ? x_left < y_left : x.job->ticket < y.job->ticket;
  };
  std::sort(prompts_.begin(), prompts_.end(), goes_first);
  // An engine for one request at a time keeps nobody waiting, nor does a batch its own requests.
  int room = rows;
  const bool others_wait =
      sequences_.size() > 1 && std::any_of(order_.begin(), order_.end(),
                                           [this](SeqId seq) { return !At(seq).job->in_batch; });
  if (others_wait) rows = std::min(rows, prompt_rows_->Most(PlainPassUs(), !work_.empty()));
  bool ends = false;  // a prompt, in this pass
  for (const SeqId seq : prompts_) {
    engine::Sequence& s = At(seq);
    // A text that was read before is read up to its newest token, which then decodes as ever.
    const bool again = s.sampler.n_generated() > 0;
    const int missing = MissingRows(s) - again;
    int n = std::min({missing, rows, room});
    if (ReadsPromptLogprobs(s)) n = std::min(n, 1 + kMaxDraft);  // rows of logits are as many
    // Nothing that need not be in this pass delays a first token; one that waited gets its part.
    const bool waited = s.passed_over >= kPatience;
    if (waited && prompts_.size() > 1) n = std::min(n, (rows + 1) / 2);
    if (!waited && ends && n < missing) n = 0;
    // A first draft is made whole or in the next pass: its length must not depend on others.
    const int drafts = s.drafts_first && !again ? MostDrafts(s, kMaxDraft) : 0;
    if (n == missing && n + drafts > room) n = std::min(missing - 1, room);
    s.passed_over = n > 0 ? 0 : s.passed_over + 1;
    if (n <= 0) continue;
    ends |= n == missing;
    Work& work = work_.emplace_back();
    work.seq = seq;
    work.n_feed = n;
    work.prefill = true;
    work.again = again;
    work.decodes = n == missing && !again && s.emitter.tokens_left() > 0;
    work.may_draft = work.decodes && drafts > 0;
    work.max_draft = work.may_draft ? drafts : 0;
    rows -= n;
    room -= n + work.max_draft;
  }
}

int Engine::Impl::BlocksOf(const Work& work) const noexcept {
  return cache_->MissingBlocks(work.seq,
                               work.n_feed + std::max(work.max_draft, work.proposal.length()));
}

int Engine::Impl::BlocksOfPass() const noexcept {
  int blocks = 0;
  for (const Work& work : work_) blocks += BlocksOf(work);
  return blocks;
}

void Engine::Impl::SettleBlocks() noexcept {
  if (BlocksOfPass() <= cache_->n_available_blocks()) return;
  // Drafts go first, where the text does not depend on them.
  for (Work& work : work_) {
    if (At(work.seq).follows_drafts) continue;
    const int held = static_cast<int>(cache_->Blocks(work.seq).size()) * tensor::kKvBlock,
              used = cache_->length(work.seq) + work.n_feed;
    work.max_draft = std::clamp(held - used, 0, work.max_draft);
  }
  int settled = 0;
  for (const SeqId seq : order_) {
    const auto work =
        std::find_if(work_.begin(), work_.end(), [seq](const Work& w) { return w.seq == seq; });
    if (work == work_.end()) continue;
    while (!At(seq).preempted && settled + BlocksOf(*work) > cache_->n_available_blocks())
      Preempt(YoungestHolder(seq));
    if (!At(seq).preempted) settled += BlocksOf(*work);
  }
  std::erase_if(work_, [this](const Work& work) { return At(work.seq).preempted; });
}

// Of those that hold blocks and are not older than `seq`; requests that are paused come before all
// others. `seq` itself where there is none.
SeqId Engine::Impl::YoungestHolder(SeqId seq) const noexcept {
  SeqId found = seq;
  for (const auto& s : sequences_) {
    if (s == nullptr || cache_->Blocks(s->job->seq).empty()) continue;
    const engine::Job &job = *s->job, &best = *At(found).job;
    if (job.paused != best.paused ? job.paused : job.ticket > best.ticket) found = job.seq;
  }
  return found;
}

void Engine::Impl::Preempt(SeqId seq) noexcept {
  engine::Sequence& s = At(seq);
  s.preempted = true;
  if (cache_->Blocks(seq).empty()) return;
  cache_->Truncate(seq, 0);
  ++s.completion.timings.preemptions;
  ++totals_.preemptions;
}

EngineLoad Engine::Impl::load() const noexcept {
  EngineLoad load = totals_;
  for (const auto& s : sequences_)
    if (s != nullptr) ++(s->preempted ? load.preempted : load.running);
  load.waiting = static_cast<int>(waiting_.size());
  load.free_blocks = cache_->n_free_blocks();
  load.idle_blocks = cache_->n_idle_blocks();
  load.used_blocks = cache_->n_blocks() - load.free_blocks - load.idle_blocks;
  return load;
}

}  // namespace foretoken
