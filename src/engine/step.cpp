// SPDX-License-Identifier: Apache-2.0
// One step of the engine: prefill, plain decoding and speculation of all running requests in one
// target pass.
#include <algorithm>

#include "base/check.h"
#include "engine/impl.h"

namespace foretoken {
namespace {

double Milliseconds(std::chrono::steady_clock::time_point from,
                    std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace

bool Engine::Impl::Step(const OnRound& on_round) {
  PlanWork();  // who runs, and how many rows each may use
  if (work_.empty()) return false;
  const auto begin = Clock::now();
  Propose();  // one chain of drafts per sequence; empty = plain decoding or prefill
  const auto proposed = Clock::now();
  Flatten();  // sequences -> rows
  kv::Transaction pending(*cache_, rows_);
  target_->Forward({.tokens = tokens_, .segments = segments_, .logit_rows = logit_rows_}, *cache_);
  const auto verified = Clock::now();
  JudgeAll();  // kept prefix and one token of the target's each
  pending.Commit(kept_);
  CommitAll(on_round, {.draft_ms = Milliseconds(begin, proposed),
                       .verify_ms = Milliseconds(proposed, verified),
                       .judged_at = verified});
  return true;
}

void Engine::Impl::PlanWork() noexcept {
  work_.clear();
  int rows = target_->options().max_rows, decoding = 0;
  for (const auto& s : sequences_) decoding += s && s->sampler.n_generated() > 0;
  // Decoding sequences first, each with room for a whole draft (max_rows holds that for all), then
  // prompts with what is left.
  for (const bool prompts : {false, true})
    for (SeqId seq = 0; seq < static_cast<SeqId>(sequences_.size()); ++seq) {
      engine::Sequence* s = sequences_[static_cast<std::size_t>(seq)].get();
      if (s == nullptr) continue;
      const int missing = s->sampler.position() - cache_->length(seq);
      const bool prefill = s->sampler.n_generated() == 0;
      if (prefill != prompts || rows == 0) continue;
      Work& work = work_.emplace_back();
      work.seq = seq;
      work.n_feed = std::min(missing, rows);
      work.prefill = prefill;
      work.decodes = work.n_feed == missing;
      // The target adds a token of its own, so a draft of room - 1 is the longest that can be
      // committed.
      if (!prefill && s->lookahead)
        work.max_draft = std::min(
            {s->lookahead->Next(decoding - 1), s->emitter.tokens_left() - 1, rows - work.n_feed});
      rows -= work.n_feed + work.max_draft;
    }
}

void Engine::Impl::Propose() noexcept {
  asks_.clear();
  for (const Work& work : work_)
    if (work.max_draft > 0) asks_.push_back({work.seq, work.max_draft});
  if (asks_.empty()) return;
  proposals_.resize(asks_.size());
  drafter_->Propose(asks_, proposals_);
  std::size_t i = 0;
  for (Work& work : work_)
    if (work.max_draft > 0) work.proposal = proposals_[i++];
  const auto drafter_work = drafter_->TakeWork();
  draft_prompt_ms_ = drafter_work.prompt_ms;
  for (const draft::Ask& ask : asks_) {
    auto& stats = sequences_[static_cast<std::size_t>(ask.seq)]->completion.speculation;
    stats.draft_forwards += drafter_work.forwards;
    stats.draft_prompt_ms += drafter_work.prompt_ms;
  }
}

void Engine::Impl::Flatten() noexcept {
  tokens_.clear(), segments_.clear(), logit_rows_.clear(), rows_.clear();
  for (Work& work : work_) {
    const auto text = sequences_[static_cast<std::size_t>(work.seq)]->sampler.text();
    const int cached = cache_->length(work.seq), n_drafts = work.proposal.length();
    work.first_row = static_cast<int>(tokens_.size());
    work.first_logit = static_cast<int>(logit_rows_.size());
    tokens_.insert(tokens_.end(), text.begin() + cached, text.begin() + cached + work.n_feed);
    tokens_.insert(tokens_.end(), work.proposal.tokens.begin(), work.proposal.tokens.end());
    segments_.push_back({work.seq, work.first_row, work.n_feed + n_drafts, cached});
    rows_.push_back({work.seq, work.n_feed + n_drafts});
    if (!work.decodes) continue;
    for (int i = 0; i <= n_drafts; ++i) logit_rows_.push_back(work.first_row + work.n_feed - 1 + i);
  }
}

void Engine::Impl::JudgeAll() noexcept {
  verdicts_.clear(), kept_.clear();
  for (const Work& work : work_) {
    round::Verdict verdict;
    if (work.decodes) {
      engine::Sequence& s = *sequences_[static_cast<std::size_t>(work.seq)];
      verdict = s.verifier->Judge(work.proposal, {LogitsOf(work, 0), target_->logits_stride()},
                                  s.sampler, judge_scratch_.data());
    }
    verdicts_.push_back(verdict);
    kept_.push_back(work.n_feed + verdict.accepted);
  }
}

void Engine::Impl::CommitAll(const OnRound& on_round, const StepTimes& times) {
  observations_.clear();
  for (std::size_t i = 0; i < work_.size(); ++i) {
    Work& work = work_[i];
    engine::Sequence& s = *sequences_[static_cast<std::size_t>(work.seq)];
    if (work.decodes) Commit(work, verdicts_[i]);
    const double judge_ms = Milliseconds(times.judged_at, Clock::now());
    ++s.completion.speculation.target_forwards;
    if (work.prefill) {
      s.completion.timings.prompt_ms += times.draft_ms + times.verify_ms + judge_ms;
      s.completion.timings.prompt_tokens += work.n_feed;
    } else {
      s.completion.timings.decode_ms += times.draft_ms + times.verify_ms + judge_ms;
      s.completion.timings.decoded_tokens += work.n_committed;
      s.completion.speculation.draft_ms += work.max_draft > 0 ? times.draft_ms : 0;
      s.completion.speculation.verify_ms += times.verify_ms;
      s.completion.speculation.overhead_ms += judge_ms + (work.max_draft > 0 ? 0 : times.draft_ms);
      if (s.lookahead)
        s.lookahead->Observe({.drafted = work.proposal.length(),
                              .accepted = verdicts_[i].accepted,
                              .us = 1000 * (times.draft_ms + times.verify_ms + judge_ms)});
    }
    if (on_round &&
        !on_round(
            {.request_id = s.request->id,
             .events = std::span(events_).first(static_cast<std::size_t>(work.n_committed)),
             .rejected = work.proposal.tokens.subspan(static_cast<std::size_t>(work.n_accepted)),
             .drafted = work.proposal.length()}) &&
        !work.ended)
      work.ended = FinishReason::kCancelled;
    if (work.ended)
      Finish(work.seq, *work.ended);
    else if (s.uses_drafter() && (work.decodes || target_->features(0) != nullptr))
      observations_.push_back(
          {.seq = work.seq,
           .committed = s.sampler.text().last(static_cast<std::size_t>(work.n_committed)),
           .drafted = work.proposal.length(),
           .accepted = work.n_accepted,
           .features = target_->features(work.first_row),
           .n_features = kept_[i],
           .first_position = segments_[i].first_position});
  }
  LearnCosts(times);
  if (!observations_.empty()) drafter_->Observe(observations_);
}

// From a step in which nobody read a prompt.
void Engine::Impl::LearnCosts(const StepTimes& times) noexcept {
  int drafts = 0;
  for (const Work& work : work_) {
    if (work.prefill) return;
    drafts = std::max(drafts, work.proposal.length());
  }
  costs_->SeePass(static_cast<int>(tokens_.size()), 1000 * times.verify_ms);
  if (drafts > 0) costs_->SeeDrafts(drafts, 1000 * (times.draft_ms - draft_prompt_ms_));
  costs_->SeeRest(1000 * Milliseconds(times.judged_at, Clock::now()));
}

void Engine::Impl::Commit(Work& work, const round::Verdict& verdict) {
  engine::Sequence& s = *sequences_[static_cast<std::size_t>(work.seq)];
  for (int i = 0; i <= verdict.accepted && !work.ended; ++i) {
    const bool is_draft = i < verdict.accepted;
    const Token token = is_draft ? work.proposal.tokens[static_cast<std::size_t>(i)] : verdict.next;
    TokenEvent& event = events_[static_cast<std::size_t>(i)];
    event.id = token;
    event.origin = is_draft                                      ? TokenOrigin::kAccepted
                   : verdict.kind == round::NextKind::kRecovered ? TokenOrigin::kRecovered
                   : verdict.kind == round::NextKind::kBonus     ? TokenOrigin::kBonus
                                                                 : TokenOrigin::kPlain;
    event.text.clear();
    event.logprobs = nullptr;
    s.sampler.Push(token);
    s.completion.token_ids.push_back(token);
    if (s.request->logprobs >= 0) {
      // Reserved for the whole request, so the address holds.
      auto& read = s.completion.logprobs.emplace_back();
      logprobs_->Read(LogitsOf(work, i), token, s.request->logprobs, read);
      event.logprobs = &read;
    }
    work.ended = s.emitter.Push(token, event.text);
    ++work.n_committed;
    work.n_accepted += is_draft;
  }
  Count(work, verdict);
}

void Engine::Impl::Count(const Work& work, const round::Verdict& verdict) {
  SpeculationStats& stats = sequences_[static_cast<std::size_t>(work.seq)]->completion.speculation;
  const int drafted = work.proposal.length();
  const bool target_token_kept = work.n_committed == verdict.accepted + 1;
  stats.emitted += work.n_committed;
  stats.plain += target_token_kept && verdict.kind == round::NextKind::kPlain;
  stats.recovered += target_token_kept && verdict.kind == round::NextKind::kRecovered;
  stats.bonus += target_token_kept && verdict.kind == round::NextKind::kBonus;
  if (work.prefill) return;
  ++stats.rounds;
  stats.draft_rounds += drafted > 0;
  stats.drafted += drafted;
  stats.accepted += work.n_accepted;
  stats.rolled_back += drafted - verdict.accepted;
  ++stats.k_histogram[static_cast<std::size_t>(drafted)];
  // A draft behind an end has no verdict that counts; the first rejected one has.
  const int judged =
      work.n_accepted + (target_token_kept && verdict.kind == round::NextKind::kRecovered);
  for (int i = 0; i < drafted; ++i) {
    const auto at = static_cast<std::size_t>(i);
    ++stats.drafted_per_position[at];
    stats.judged_per_position[at] += i < judged;
    stats.accepted_per_position[at] += i < work.n_accepted;
  }
}

void Engine::Impl::Finish(SeqId seq, FinishReason reason) {
  auto& slot = sequences_[static_cast<std::size_t>(seq)];
  engine::Sequence& s = *slot;
  std::string rest;
  s.emitter.Flush(rest);  // empty unless the request was cancelled
  s.completion.finish_reason = reason;
  s.completion.text = s.emitter.text();
  if (s.uses_drafter()) drafter_->End(seq);
  cache_->Truncate(seq, 0);
  (*completions_)[s.index] = std::move(s.completion);
  slot.reset();
}

}  // namespace foretoken
