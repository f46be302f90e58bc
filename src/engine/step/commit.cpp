// SPDX-License-Identifier: Apache-2.0
#include "engine/step/commit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "foretoken/drafts.h"

namespace foretoken::engine {
namespace {

Error ProcessorFault(int n_tokens) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("logits processor: after {} tokens of text it left NaN or +infinity; leave "
                      "finite numbers, or -infinity to ban a token",
                      n_tokens)};
}

TokenOrigin OriginOf(round::NextKind kind) {
  if (kind == round::NextKind::kRecovered) return TokenOrigin::kRecovered;
  return kind == round::NextKind::kBonus ? TokenOrigin::kBonus : TokenOrigin::kPlain;
}

}  // namespace

struct Commit::Part {
  const PlannedSequence& planned;
  const DraftedSequence& drafted;
  const SequenceRows& rows;
  const SequenceVerdict& verdict;
  int kept;
  const model::PassResult& result;
  Sequence& s;
  CommittedSequence& out;
  Commits& commits;

  // Row 0 follows the newest committed token.
  const float* Logits(int i) const { return result.Logits(rows.first_logit + i); }
};

Commit::Commit(const CommitSettings& settings, kv::BlockTables& cache,
               const loader::DrafterSet& drafters, const kernels::Kernels& kernels)
    : settings_(settings),
      cache_(cache),
      drafters_(drafters),
      logprobs_(settings.vocabulary, kernels),
      events_(kMaxDraft + 1) {}

Commits Commit::MakeCommits() const {
  Commits commits;
  commits.entries.reserve(static_cast<std::size_t>(settings_.max_sequences));
  for (const loader::DrafterEntry& entry : drafters_)
    commits.n_likely = std::max(commits.n_likely, entry.drafter->LikelyTokens());
  commits.likely.resize(static_cast<std::size_t>(settings_.max_rows * commits.n_likely));
  return commits;
}

Error Commit::NotFinite(int n_tokens) const {
  return {ErrorCode::kInvalidFile,
          fmt::format("{}: the logits after {} tokens of text are not finite, so no token can be "
                      "chosen; its weights are damaged or too large: fetch or convert it again",
                      settings_.target_path, n_tokens)};
}

void Commit::Apply(const PassPlan& plan, const Proposals& drafts, const FlatPass& pass,
                   const Verdicts& verdicts, const model::PassResult& result,
                   const Sequences& sequences, Commits& commits) noexcept {
  commits.entries.clear();
  n_likely_rows_ = 0;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    CommittedSequence& out = commits.entries.emplace_back();
    const Part part{.planned = plan.entries[i],
                    .drafted = drafts.entries[i],
                    .rows = pass.entries[i],
                    .verdict = verdicts.entries[i],
                    .kept = verdicts.kept[i],
                    .result = result,
                    .s = sequences.At(plan.entries[i].seq),
                    .out = out,
                    .commits = commits};
    Job& job = *part.s.job;
    const auto apply = [&] {
      if (part.verdict.not_finite >= 0)
        job.Blame(NotFinite(part.verdict.not_finite));
      else if (part.verdict.processor_fault >= 0)
        job.Blame(ProcessorFault(part.verdict.processor_fault));
      else if (FollowsGrammar(part))
        ApplyOne(part);
    };
    if (!TryFor(job, apply) || job.error) out.ended = FinishReason::kError;
  }
}

// Returns false, and gives the request its error, if its grammar could not be followed up to the
// verdict's last token: the verdict is not valid then.
bool Commit::FollowsGrammar(const Part& part) const {
  const auto failure = part.s.sampler.TakeGrammarFailure(part.verdict.verdict.accepted);
  if (failure == grammar::GrammarFailure::kNone) return true;
  part.s.job->Blame(grammar::ErrorOf(failure));
  return false;
}

void Commit::ApplyOne(const Part& part) {
  Sequence& s = part.s;
  CommittedSequence& out = part.out;
  s.first_likely = n_likely_rows_;
  ReadPromptLogprobs(part);
  ReadEmbedding(part);
  const bool all_read = part.planned.prefill && !part.planned.decodes && !s.awaits_prompt();
  if (all_read && s.emitter.tokens_left() <= 0) out.ended = FinishReason::kLength;
  if (part.planned.decodes) CommitTokens(part);
  if (s.n_likely > 0) n_likely_rows_ += out.n_committed;
  const int first = part.rows.first_position, length = cache_.length(part.planned.seq);
  out.n_fresh = std::max(0, length - std::max(s.reached, length - part.planned.n_feed));
  // The drafters already have the features of positions that are read again.
  out.n_known = settings_.kv_cache ? std::clamp(s.reached - first, 0, part.kept) : 0;
  out.done = std::chrono::steady_clock::now();
  out.whole = true;
  if (!Report(part) && !out.ended) out.ended = FinishReason::kCancelled;
  out.reported = true;
  s.reached = std::max(s.reached, first + part.kept);
  if (settings_.prefix_cache && s.request().reuse_prefix)
    cache_.Publish(part.planned.seq, s.sampler.text(), s.job->salt);
}

void Commit::ReadPromptLogprobs(const Part& part) {
  Sequence& s = part.s;
  auto& known = s.completion.prompt_logprobs;
  for (int i = -part.rows.n_prompt_logits; i < 0; ++i) {
    const Token token = s.job->prompt[known.size() + 1];
    logprobs_.Read(part.Logits(i), token, s.request().prompt_logprobs, known.emplace_back());
  }
}

// Position by position, so that the sum does not depend on how the prompt was divided. What a
// preempted prompt reads again is there already.
void Commit::ReadEmbedding(const Part& part) const {
  Sequence& s = part.s;
  if (!s.awaits_embedding()) return;
  std::vector<float>& embedding = s.completion.embedding;
  const Pooling pooling = *s.request().embedding;
  const int dim = settings_.dim, last = static_cast<int>(s.job->prompt.size()) - 1;
  for (int i = std::max(0, s.n_pooled - part.rows.first_position); i < part.kept; ++i) {
    const float* const state = part.result.State(part.rows.first_row + i);
    const int position = part.rows.first_position + i;
    for (std::size_t d = 0; d < s.pooled_sum.size(); ++d) s.pooled_sum[d] += state[d];
    if (pooling == Pooling::kNone)
      std::copy_n(state, dim, embedding.begin() + std::ptrdiff_t{position} * dim);
    else if (position == (pooling == Pooling::kFirst ? 0 : last))
      std::copy_n(state, dim, embedding.begin());
  }
  s.n_pooled = std::max(s.n_pooled, part.rows.first_position + part.kept);
  if (!s.awaits_embedding()) EndEmbedding(part);
}

void Commit::EndEmbedding(const Part& part) const {
  Sequence& s = part.s;
  std::vector<float>& embedding = s.completion.embedding;
  const auto n = static_cast<double>(s.job->prompt.size());
  for (std::size_t d = 0; d < s.pooled_sum.size(); ++d)
    embedding[d] = static_cast<float>(s.pooled_sum[d] / n);
  if (s.request().embedding == Pooling::kRank) {
    std::vector<float> scores(static_cast<std::size_t>(settings_.rerank_head->labels()));
    settings_.rerank_head->Score(embedding, scores);
    embedding = std::move(scores);
  }
  if (std::all_of(embedding.begin(), embedding.end(), [](float x) { return std::isfinite(x); }))
    return;
  s.job->Blame(
      {ErrorCode::kInvalidFile,
       fmt::format("{}: the hidden states of {} tokens of text are not finite, so they have "
                   "no embedding; its weights are damaged or too large: fetch or convert it "
                   "again",
                   settings_.target_path, s.job->prompt.size())});
  embedding.clear();
}

void Commit::CommitTokens(const Part& part) {
  const round::Verdict& verdict = part.verdict.verdict;
  for (int i = 0; i <= verdict.accepted && !part.out.ended; ++i)
    CommitToken(part, i, events_[static_cast<std::size_t>(i)]);
  if (!part.out.ended && part.s.verifies()) part.out.ended = FinishReason::kVerified;
}

// Commits token i of the round: an accepted draft, or the target's own token after them.
void Commit::CommitToken(const Part& part, int i, TokenEvent& event) {
  Sequence& s = part.s;
  const round::Verdict& verdict = part.verdict.verdict;
  const bool is_draft = i < verdict.accepted;
  event.id = is_draft ? part.drafted.proposal.tokens[static_cast<std::size_t>(i)] : verdict.next;
  event.origin = is_draft ? TokenOrigin::kAccepted : OriginOf(verdict.kind);
  event.text.clear();
  event.logprobs = nullptr;
  s.sampler.Push(event.id);
  s.completion.token_ids.push_back(event.id);
  if (s.request().logprobs >= 0) {
    // The vector has capacity for the whole request, so the address stays valid.
    auto& read = s.completion.logprobs.emplace_back();
    logprobs_.Read(part.Logits(i), event.id, s.request().logprobs, read);
    event.logprobs = &read;
  }
  if (s.n_likely > 0)
    logprobs_.Best(part.Logits(i), part.commits.n_likely, part.commits.Likely(s.first_likely + i));
  part.out.ended = s.emitter.Push(event.id, event.text);
  ++part.out.n_committed;
  part.out.n_accepted += is_draft;
  if (!s.thinking.relaxes()) return;
  part.out.n_relaxed += is_draft && s.thinking.place.thinks;
  s.thinking.marks->Follow(event.id, s.thinking.place);
}

// Calls the request's callback; false: it wants no more.
bool Commit::Report(const Part& part) const {
  const Job& job = *part.s.job;
  if (job.cancelled) return false;
  if (!job.on_round) return true;
  const round::Proposal& proposal = part.drafted.proposal;
  const std::span<const TokenLogprobs> read = part.s.completion.prompt_logprobs;
  const bool first = part.planned.prefill && part.out.n_committed > 0;
  std::string_view drafter;
  if (proposal.length() > 0)
    drafter =
        part.drafted.given ? "caller" : std::string_view(drafters_[part.drafted.drafter].name);
  return job.on_round(
      {.request_id = job.request.id,
       .events = std::span(events_).first(static_cast<std::size_t>(part.out.n_committed)),
       .rejected = proposal.tokens.subspan(static_cast<std::size_t>(part.out.n_accepted)),
       .drafted = proposal.length(),
       .drafter = drafter,
       .prompt_logprobs = read.first(first ? read.size() : 0)});
}

}  // namespace foretoken::engine
