// SPDX-License-Identifier: Apache-2.0
#include "engine/step/scheduler.h"

#include <algorithm>

#include "foretoken/drafts.h"

namespace foretoken::engine {
namespace {

constexpr int kPatience = 2;  // passes that a prompt lets shorter ones go before

// The rows behind a text of n tokens that must have blocks before a request begins: the next token and
// the drafts that are given.
int RowsWithDrafts(int n, const Request& request) {
  return n + 1 + (request.drafts ? static_cast<int>(request.drafts->size()) : 0);
}

}  // namespace

Scheduler::Scheduler(const SchedulerSettings& settings, kv::BlockTables& cache,
                     const loader::DrafterSet& drafters, const draft_length::RoundCosts& costs,
                     const PromptRows& prompt_rows)
    : settings_(settings),
      cache_(cache),
      drafters_(drafters),
      costs_(costs),
      prompt_rows_(prompt_rows) {
  order_.reserve(static_cast<std::size_t>(settings.max_sequences));
  prompts_.reserve(static_cast<std::size_t>(settings.max_sequences));
}

int Scheduler::MissingRows(const Sequence& s) const noexcept {
  return s.sampler.position() - cache_.length(s.job->seq);
}

// The sequence must read text before it can decode.
bool Scheduler::Reads(const Sequence& s) const noexcept {
  return !s.begun() || MissingRows(s) > MostDecodingRows();
}

// The most committed tokens that a decoding sequence reads in one pass: the newest one. Without a
// cache it reads the whole text, if that fits its share of a pass beside its drafts.
int Scheduler::MostDecodingRows() const noexcept {
  if (settings_.kv_cache) return 1;
  return settings_.max_rows / settings_.max_sequences - kMaxDraft;
}

// The target adds a token of its own, so a draft may have one token fewer than the request takes.
int Scheduler::MostDrafts(const Sequence& s, int rows) const noexcept {
  return std::max(0, std::min({s.most_drafts, s.emitter.tokens_left() - 1, rows}));
}

// The tokens whose blocks may come from other requests. The last token is computed in any case, for
// its logits. Heads draft behind what came from the cache; where the text depends on the drafts, those
// that read the features of all positions need each computed once.
std::span<const Token> Scheduler::SharableText(const Sequence& s) const noexcept {
  if (!settings_.prefix_cache || !s.request().reuse_prefix) return {};
  if (s.job->reads_prompt() && s.awaits_prompt()) return {};
  const bool features = std::any_of(s.drafters.begin(), s.drafters.end(), [&](int d) {
    const loader::DrafterEntry& entry = drafters_[d];
    return entry.reads_features() && !entry.drafter->ReadsTargetCache() &&
           (s.follows_drafts || !entry.drafter->StartsAnywhere());
  });
  const auto text = s.sampler.text().first(s.sampler.text().size() - 1);
  return features ? text.first(std::min(text.size(), static_cast<std::size_t>(s.reached))) : text;
}

void Scheduler::SharePrefix(Sequence& s) noexcept {
  cache_.Restore(s.job->seq, SharableText(s), s.job->salt);
  const int gained = cache_.Share(s.job->seq, SharableText(s), s.job->salt);
  if (gained == 0) return;
  const int length = cache_.length(s.job->seq);
  if (!s.begun()) {
    const int cached = std::max(0, length - std::max(s.reached, length - gained));
    s.completion.timings.cached_prompt_tokens += cached;
    cached_prompt_tokens_ += cached;
  }
  s.reached = std::max(s.reached, length);
}

// Blocks that remain when each running request has read its text and one more token.
int Scheduler::SpareBlocks(const Sequences& sequences) const noexcept {
  int spare = cache_.n_available_blocks();
  for (const auto& s : sequences) {
    if (s == nullptr || s->preempted) continue;
    spare -= cache_.MissingBlocks(s->job->seq, MissingRows(*s) + 1);
  }
  return spare;
}

bool Scheduler::MayJoin(const Job& job, const Sequences& sequences) const noexcept {
  if (job.cancelled) return true;
  bool runs = false;
  for (const auto& s : sequences) {
    if (s == nullptr || s->job->paused) continue;
    if (s->preempted) return false;  // it was here first
    runs = true;
  }
  if (!runs) return true;
  const std::size_t n = job.prompt.size();
  const bool shares = settings_.prefix_cache && job.request.reuse_prefix && !job.reads_prompt();
  const int shared = shares ? cache_.SharedBlocks(std::span(job.prompt).first(n - 1), job.salt) : 0;
  const int rows = RowsWithDrafts(static_cast<int>(n), job.request);
  return kv::BlocksFor(rows) - shared <= SpareBlocks(sequences);
}

void Scheduler::Plan(const Sequences& sequences, PassPlan& plan) noexcept {
  plan.entries.clear(), order_.clear();
  for (const auto& s : sequences)
    if (s != nullptr && !s->job->paused) order_.push_back(s->job->seq);
  std::sort(order_.begin(), order_.end(), [&sequences](SeqId a, SeqId b) {
    return sequences.At(a).job->ticket < sequences.At(b).job->ticket;
  });
  Resume(sequences);
  for (const SeqId seq : order_)
    if (Sequence& s = sequences.At(seq); !s.preempted && Reads(s)) SharePrefix(s);
  const int rows = PlanDecoding(sequences, settings_.max_rows, plan);
  PlanPrompts(sequences, rows, plan);
  if (plan.prefills()) BoundMixedDrafts(sequences, plan);
  SettleBlocks(sequences, plan);
}

void Scheduler::Resume(const Sequences& sequences) noexcept {
  for (const SeqId seq : order_) {
    Sequence& s = sequences.At(seq);
    if (!s.preempted) continue;
    // The oldest request never waits, because it takes blocks from the others.
    const int needed = kv::BlocksFor(RowsWithDrafts(s.sampler.position(), s.request())) -
                       cache_.SharedBlocks(SharableText(s), s.job->salt);
    if (seq != order_.front() && needed > SpareBlocks(sequences)) return;
    s.preempted = false;
  }
}

// Returns the rows that are left.
int Scheduler::PlanDecoding(const Sequences& sequences, int rows, PassPlan& plan) noexcept {
  for (const SeqId seq : order_) {
    const Sequence& s = sequences.At(seq);
    if (s.preempted || Reads(s)) continue;
    PlannedSequence& planned = plan.entries.emplace_back();
    planned.seq = seq;
    planned.n_feed = MissingRows(s);
    planned.decodes = planned.may_draft = true;
    planned.max_draft = MostDrafts(s, rows - planned.n_feed);  // max_rows holds all whole drafts
    rows -= planned.n_feed + planned.max_draft;
  }
  return rows;
}

// The time of the pass without prompts; 0: not known.
double Scheduler::PlainPassUs(const PassPlan& plan) const noexcept {
  if (!costs_.known()) return 0;
  std::int64_t context = 0;
  int n = 0;
  for (const PlannedSequence& planned : plan.entries)
    if (!planned.prefill) context += cache_.length(planned.seq), ++n;
  return costs_.PassUs(std::max(1, n), static_cast<int>(context / std::max(1, n)));
}

void Scheduler::OrderPrompts(const Sequences& sequences) noexcept {
  prompts_.clear();
  for (const SeqId seq : order_)
    if (const Sequence& s = sequences.At(seq); !s.preempted && Reads(s)) prompts_.push_back(seq);
  std::sort(prompts_.begin(), prompts_.end(), [&](SeqId a, SeqId b) {
    const Sequence &x = sequences.At(a), &y = sequences.At(b);
    const bool x_waited = x.passed_over >= kPatience, y_waited = y.passed_over >= kPatience;
    if (x_waited != y_waited) return x_waited;
    const int x_left = MissingRows(x), y_left = MissingRows(y);
    return x_left != y_left ? x_left < y_left : x.job->ticket < y.job->ticket;
  });
}

void Scheduler::PlanPrompts(const Sequences& sequences, int rows, PassPlan& plan) noexcept {
  OrderPrompts(sequences);
  if (prompts_.empty()) return;
  PromptBudget budget{.rows = rows, .room = rows};
  // With one sequence nobody waits for this pass, and the requests of a batch all wait together.
  const bool others_wait = sequences.size() > 1 &&
                           std::any_of(order_.begin(), order_.end(),
                                       [&](SeqId seq) { return !sequences.At(seq).job->in_batch; });
  if (others_wait)
    budget.rows = std::min(rows, prompt_rows_.Most(PlainPassUs(plan), !plan.empty()));
  for (const SeqId seq : prompts_) {
    Sequence& s = sequences.At(seq);
    const PlannedSequence planned = PlanPrompt(s, budget);
    s.passed_over = planned.n_feed > 0 ? 0 : s.passed_over + 1;
    if (planned.n_feed > 0) plan.entries.push_back(planned);
  }
}

// n_feed is 0 or less if the prompt gets no rows in this pass.
PlannedSequence Scheduler::PlanPrompt(Sequence& s, PromptBudget& budget) const noexcept {
  // A preempted text is read up to its newest token, which the next pass decodes.
  const bool again = s.begun();
  const int missing = MissingRows(s) - again;
  int n = std::min({missing, budget.rows, budget.room, cache_.RowsToBranch(s.job->seq)});
  if (s.awaits_prompt_logprobs()) n = std::min(n, 1 + kMaxDraft);  // rows of logits are as many
  // If a prompt ends in this pass, others wait so that its first token comes early. A prompt that
  // has waited long gets its part all the same.
  const bool waited = s.passed_over >= kPatience;
  if (waited && prompts_.size() > 1) n = std::min(n, (budget.rows + 1) / 2);
  if (!waited && budget.ends && n < missing) n = 0;
  // A first draft has its whole length, or the prompt ends in the next pass: the length must not
  // depend on other requests.
  const int drafts = s.drafts_first && !again ? MostDrafts(s, kMaxDraft) : 0;
  if (n == missing && n + drafts > budget.room) n = std::min(missing - 1, budget.room);
  if (n <= 0) return {};
  budget.ends |= n == missing;
  PlannedSequence planned{.seq = s.job->seq, .n_feed = n, .prefill = true, .again = again};
  planned.decodes = n == missing && !again && s.emitter.tokens_left() > 0;
  planned.may_draft = planned.decodes && drafts > 0 && s.drafts();
  planned.max_draft = planned.decodes ? drafts : 0;
  budget.rows -= n;
  budget.room -= n + planned.max_draft;
  return planned;
}

void Scheduler::BoundMixedDrafts(const Sequences& sequences, PassPlan& plan) const noexcept {
  for (PlannedSequence& planned : plan.entries) {
    if (sequences.At(planned.seq).keeps_drafts()) continue;
    planned.mixed = planned.max_draft > settings_.most_mixed_drafts;
    planned.max_draft = std::min(planned.max_draft, settings_.most_mixed_drafts);
  }
}

int Scheduler::BlocksOf(const PlannedSequence& planned) const noexcept {
  return cache_.MissingBlocks(planned.seq, planned.n_feed + planned.max_draft);
}

bool Scheduler::Fits(const PassPlan& plan, const Proposals& drafts) const noexcept {
  int blocks = 0;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const DraftedSequence& drafted = drafts.entries[i];
    blocks += cache_.MissingBlocks(
        plan.entries[i].seq, plan.entries[i].n_feed + std::max(drafted.asked, drafted.length()));
  }
  return blocks <= cache_.n_available_blocks();
}

// Shortens drafts to the blocks that their sequences hold, where they may be shorter.
void Scheduler::DropDrafts(const Sequences& sequences, PassPlan& plan) const noexcept {
  for (PlannedSequence& planned : plan.entries) {
    if (sequences.At(planned.seq).keeps_drafts()) continue;
    const int held = static_cast<int>(cache_.Blocks(planned.seq).size()) * tensor::kKvBlock,
              used = cache_.length(planned.seq) + planned.n_feed;
    planned.max_draft = std::clamp(held - used, 0, planned.max_draft);
  }
}

void Scheduler::SettleBlocks(const Sequences& sequences, PassPlan& plan) noexcept {
  int blocks = 0;
  for (const PlannedSequence& planned : plan.entries) blocks += BlocksOf(planned);
  if (blocks <= cache_.n_available_blocks()) return;
  DropDrafts(sequences, plan);  // drafts go first, and requests after them
  int settled = 0;
  for (const SeqId seq : order_) {
    const auto planned = std::find_if(plan.entries.begin(), plan.entries.end(),
                                      [seq](const auto& entry) { return entry.seq == seq; });
    if (planned == plan.entries.end()) continue;
    const Sequence& s = sequences.At(seq);
    while (!s.preempted && settled + BlocksOf(*planned) > cache_.n_available_blocks())
      Preempt(sequences.At(YoungestHolder(sequences, seq)));
    if (!s.preempted) settled += BlocksOf(*planned);
  }
  std::erase_if(plan.entries, [&sequences](const PlannedSequence& planned) {
    return sequences.At(planned.seq).preempted;
  });
}

// The youngest sequence that holds blocks and is not older than `seq`; a paused one goes before all
// others. `seq` itself if there is none.
SeqId Scheduler::YoungestHolder(const Sequences& sequences, SeqId seq) const noexcept {
  SeqId found = seq;
  for (const auto& s : sequences) {
    if (s == nullptr || cache_.Blocks(s->job->seq).empty()) continue;
    const Job &job = *s->job, &best = *sequences.At(found).job;
    if (job.paused != best.paused ? job.paused : job.ticket > best.ticket) found = job.seq;
  }
  return found;
}

void Scheduler::Preempt(Sequence& s) noexcept {
  s.preempted = true;
  if (cache_.Blocks(s.job->seq).empty()) return;
  if (settings_.prefix_cache && s.request().reuse_prefix)
    cache_.End(s.job->seq, s.sampler.text(), s.job->salt);
  else
    cache_.Truncate(s.job->seq, 0);
  ++s.completion.timings.preemptions;
  ++preemptions_;
}

}  // namespace foretoken::engine
