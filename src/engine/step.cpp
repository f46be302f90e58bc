// SPDX-License-Identifier: Apache-2.0
// One step of the engine: prefill, plain decoding and speculation of all running requests in one
// target pass.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/stopwatch.h"
#include "engine/impl.h"
#include "kv/transaction.h"

namespace foretoken {
namespace {

double Milliseconds(std::chrono::steady_clock::time_point from,
                    std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace

bool Engine::Impl::Step() noexcept {
  if (!Draft()) return false;
  Verify();
  return true;
}

bool Engine::Impl::Draft(const DraftWants& wants) noexcept {
  if (drafted_) return true;
  wants_ = wants;
  AdmitWaiting();
  Laps laps;
  PlanWork();  // who runs, and how many rows each may use
  if (work_.empty()) return false;
  laps.AddTo(counts_.overhead.control_us);
  times_.predicted_draft_us = 0;
  times_.reads = std::any_of(work_.begin(), work_.end(), [](const Work& w) { return w.prefill; });
  const auto begin = Clock::now();
  Propose();  // one chain of drafts per sequence; empty = plain decoding or prefill
  times_.draft_ms = Milliseconds(begin, Clock::now());
  drafted_ = true;
  return true;
}

void Engine::Impl::Verify() noexcept {
  drafted_ = false;
  const auto begin = Clock::now();
  Flatten();  // sequences -> rows
  kv::Transaction pending(*cache_, segments_);
  result_ = &target_->Run({.tokens = tokens_, .segments = segments_, .logit_rows = logit_rows_});
  times_.verify_ms = Milliseconds(begin, Clock::now());
  if (!files_.Check()) {
    kept_.assign(segments_.size(), 0);  // nothing of what was computed is committed
    pending.Commit(kept_);
    return EndAll();
  }
  RecordLaws();  // before the judging is timed
  times_.judged_at = Clock::now();
  Laps laps;
  JudgeAll();  // kept prefix and one token of the target's each
  laps.AddTo(counts_.overhead.sample_us);
  pending.Commit(kept_);
  laps.AddTo(counts_.overhead.rollback_us);
  CommitAll(times_);
  PublishRecord();
}

Status Engine::Impl::CheckFiles() {
  return files_.Check() ? Status() : files_.status();
}

// What the engine computes can be trusted no more, for no request.
void Engine::Impl::EndAll() noexcept {
  work_.clear();
  for (auto& [ticket, job] : jobs_) {
    if (job->completion) continue;
    Status status = CatchNoMemory("model files", [&] { return files_.status(); });
    if (!status) Blame(*job, std::move(status).error());
    End(ticket);
  }
}

void Engine::Impl::Flatten() noexcept {
  tokens_.clear(), segments_.clear(), logit_rows_.clear();
  for (Work& work : work_) {
    const auto text = sequences_[static_cast<std::size_t>(work.seq)]->sampler.text();
    const int cached = cache_->length(work.seq), n_drafts = work.proposal.length();
    work.first_row = static_cast<int>(tokens_.size());
    AskPromptLogits(work);
    work.first_logit = static_cast<int>(logit_rows_.size());
    tokens_.insert(tokens_.end(), text.begin() + cached, text.begin() + cached + work.n_feed);
    tokens_.insert(tokens_.end(), work.proposal.tokens.begin(), work.proposal.tokens.end());
    segments_.push_back({work.seq, work.first_row, work.n_feed + n_drafts, cached});
    if (!work.decodes) continue;
    for (int i = 0; i <= n_drafts; ++i) logit_rows_.push_back(work.first_row + work.n_feed - 1 + i);
  }
}

void Engine::Impl::JudgeAll() noexcept {
  verdicts_.clear(), kept_.clear();
  for (std::size_t i = 0; i < work_.size(); ++i) {
    verdicts_.push_back(Judge(work_[i], segments_[i]));
    kept_.push_back(work_[i].n_feed + verdicts_.back().accepted);
  }
}

// Rows that are not finite are only looked at where they end the request: those of prompt tokens
// whose log-probabilities are wanted, and the row behind the drafts that were accepted.
round::Verdict Engine::Impl::Judge(Work& work, const kv::Segment& segment) noexcept {
  const int n_text = segment.first_position + work.n_feed;  // tokens before the first judged row
  const auto finite = [&](int i) { return result_->Finite(work.first_logit + i); };
  for (int i = -work.n_prompt_logits; i < 0; ++i)
    if (!finite(i)) work.not_finite = n_text + i;
  if (!work.decodes) return {};
  int n_finite = 0;
  while (n_finite <= work.proposal.length() && finite(n_finite)) ++n_finite;
  round::Verdict verdict;
  if (n_finite > 0) {
    round::Proposal proposal = work.proposal;
    proposal.tokens =
        proposal.tokens.first(static_cast<std::size_t>(std::min(n_finite, proposal.length())));
    engine::Sequence& s = At(work.seq);
    s.sampler.TakeProcessorFault();  // of what was only recorded
    s.sampler.TakeGrammarFailure(0);
    const auto judge = [&] {
      verdict = s.verifier->Judge(proposal, {LogitsOf(work, 0), result_->logits_stride}, s.sampler,
                                  judge_scratch_.data());
    };
    judge();
    // Where the grammar cannot be followed behind the drafts that were accepted, those are kept and
    // the next round says so, as plain decoding would.
    while (proposal.length() > 0 &&
           s.sampler.TakeGrammarFailure(verdict.accepted) != grammar::GrammarFailure::kNone) {
      proposal.tokens =
          proposal.tokens.first(static_cast<std::size_t>(std::max(verdict.accepted - 1, 0)));
      judge();
    }
  }
  if (n_finite > 0 && At(work.seq).sampler.TakeProcessorFault())
    work.processor_fault = n_text + verdict.accepted;
  if (verdict.accepted == n_finite) work.not_finite = n_text + n_finite;
  return verdict;
}

// Each request by itself: where memory runs out for one, the others are committed all the same.
void Engine::Impl::CommitAll(const StepTimes& times) noexcept {
  Laps laps;
  EngineCounts::Overhead& overhead = counts_.overhead;
  for (auto& observations : observations_) observations.clear();
  n_likely_rows_ = 0;
  for (std::size_t i = 0; i < work_.size(); ++i) {
    engine::Job& job = *At(work_[i].seq).job;
    const auto commit = [&] {
      if (work_[i].not_finite >= 0)
        Blame(job, NotFinite(work_[i].not_finite));
      else if (work_[i].processor_fault >= 0)
        Blame(job, ProcessorFault(work_[i].processor_fault));
      else if (FollowsGrammar(At(work_[i].seq), verdicts_[i]))
        CommitOne(i, times);
    };
    if (!TryFor(job, commit) || job.error) work_[i].ended = FinishReason::kError;
  }
  laps.AddTo(overhead.sample_us);
  const PassShape pass = ShapeOfPass();
  CountPass(pass, times);
  LearnCosts(pass, times);
  laps.AddTo(overhead.control_us);
  RecordPass(times);
  laps.Skip();
  for (std::size_t d = 0; d < drafters_.size(); ++d)
    if (!observations_[d].empty()) drafters_[d].drafter->Observe(observations_[d]);
  laps.AddTo(overhead.rollback_us);
  for (const Work& work : work_) {
    if (!options_.kv_cache && work.decodes) cache_->Truncate(work.seq, 0);
    if (work.ended) Finish(*At(work.seq).job, *work.ended);
  }
  grammars_->Bound();
}

// False: its grammar could not be followed up to the verdict's last token, so the verdict means
// nothing, and the request has its error.
bool Engine::Impl::FollowsGrammar(engine::Sequence& s, const round::Verdict& verdict) {
  const auto failure = s.sampler.TakeGrammarFailure(verdict.accepted);
  if (failure == grammar::GrammarFailure::kNone) return true;
  Blame(*s.job, grammar::ErrorOf(failure));
  return false;
}

void Engine::Impl::CommitOne(std::size_t i, const StepTimes& times) {
  Work& work = work_[i];
  engine::Sequence& s = At(work.seq);
  s.first_likely = n_likely_rows_;
  ReadPromptLogprobs(work);
  if (work.decodes) Commit(work, verdicts_[i]);
  if (s.n_likely > 0) n_likely_rows_ += work.n_committed;
  ++s.completion.speculation.target_forwards;
  Time(work, verdicts_[i], times);
  if (!Report(work) && !work.ended) work.ended = FinishReason::kCancelled;
  NoteObservations(i);
  s.reached = std::max(s.reached, segments_[i].first_position + kept_[i]);
  if (options_.prefix_cache) cache_->Publish(work.seq, s.sampler.text());
}

void Engine::Impl::Time(Work& work, const round::Verdict& verdict,
                        const StepTimes& times) noexcept {
  engine::Sequence& s = *sequences_[static_cast<std::size_t>(work.seq)];
  SpeculationStats& stats = s.completion.speculation;
  Timings& timings = s.completion.timings;
  const double judge_ms = Milliseconds(times.judged_at, Clock::now());
  const double ms = times.draft_ms + times.verify_ms + judge_ms;
  work.judge_ms = judge_ms;
  if (work.prefill && !work.again) {
    timings.prompt_ms += ms;
    const int end = cache_->length(work.seq);
    const int n_read = std::max(0, end - std::max(s.reached, end - work.n_feed));
    timings.prompt_tokens += n_read;
    if (options_.prefix_cache) counts_.prefix_misses += n_read;
    if (work.proposal.length() == 0) return;
    CountRound(work, 1000 * ms);
    stats.draft_ms += times.draft_ms;
    return TellLookahead(work, verdict, times, 1000 * ms);
  }
  timings.decode_ms += ms;
  if (work.again) return;
  CountRound(work, 1000 * ms);
  timings.decoded_tokens += work.n_committed;
  stats.draft_ms += s.drafts() ? times.draft_ms : 0;
  stats.verify_ms += times.verify_ms;
  stats.overhead_ms += judge_ms + (s.drafts() ? 0 : times.draft_ms);
  if (s.drafts() && !work.given) TellLookahead(work, verdict, times, 1000 * ms);
}

void Engine::Impl::TellLookahead(const Work& work, const round::Verdict& verdict,
                                 const StepTimes& times, double us) noexcept {
  lookahead_->Observe(work.seq, {.drafter = std::max(0, work.drafter),
                                 .evidence = work.proposal.evidence,
                                 .drafted = work.proposal.length(),
                                 .accepted = verdict.accepted,
                                 .withheld = work.withheld,
                                 .n_decoding = static_cast<int>(plans_.size()),
                                 .context = segments_[0].first_position,
                                 .reads = times.reads,
                                 .us = us});
}

std::string_view Engine::Impl::DrafterName(const Work& work) const noexcept {
  if (work.proposal.length() == 0) return {};
  if (work.given) return "caller";
  return drafters_[static_cast<std::size_t>(work.drafter)].name;
}

// Tells the request's owner; false: no more of it.
bool Engine::Impl::Report(const Work& work) const {
  const engine::Job& job = *sequences_[static_cast<std::size_t>(work.seq)]->job;
  if (job.cancelled) return false;
  if (!job.on_round) return true;
  const std::span<const TokenLogprobs> read = At(work.seq).completion.prompt_logprobs;
  return job.on_round(
      {.request_id = job.request.id,
       .events = std::span(events_).first(static_cast<std::size_t>(work.n_committed)),
       .rejected = work.proposal.tokens.subspan(static_cast<std::size_t>(work.n_accepted)),
       .drafted = work.proposal.length(),
       .drafter = DrafterName(work),
       .prompt_logprobs = read.first(work.prefill && work.n_committed > 0 ? read.size() : 0)});
}

// What the i-th work's drafters are told of it.
void Engine::Impl::NoteObservations(std::size_t i) {
  const Work& work = work_[i];
  const engine::Sequence& s = *sequences_[static_cast<std::size_t>(work.seq)];
  if (!work.decodes && result_->features == nullptr) return;
  // Of positions that are read again the drafters have the features already.
  const int first = segments_[i].first_position;
  const int known = options_.kv_cache ? std::clamp(s.reached - first, 0, kept_[i]) : 0;
  draft::Observation o = {
      .seq = work.seq,
      .committed = s.sampler.text().last(static_cast<std::size_t>(work.n_committed)),
      .features = result_->Features(work.first_row + known),
      .n_features = kept_[i] - known,
      .feature_stride = result_->features_width,
      .first_position = first + known};
  for (const int d : s.drafters) {
    const DrafterEntry& entry = drafters_[static_cast<std::size_t>(d)];
    const draft::Drafter& drafter = *entry.drafter;
    const bool its_own = d == work.drafter && !work.given;
    o.feature_parts = entry.feature_parts;
    o.drafted = its_own ? work.proposal.length() : 0;
    o.accepted = its_own ? work.n_accepted : 0;
    o.n_likely = drafter.LikelyTokens();
    o.likely = o.n_likely == 0
                   ? nullptr
                   : likely_.data() + static_cast<std::ptrdiff_t>(s.first_likely) * n_likely_;
    // Drafters that keep texts want their ends too; the rows that follow an end have features that
    // are nobody's.
    const bool wants =
        entry.reads_features() ? !work.ended && (work.decodes || o.n_features > 0) : work.decodes;
    if (wants) observations_[static_cast<std::size_t>(d)].push_back(o);
  }
}

Engine::Impl::PassShape Engine::Impl::ShapeOfPass() const noexcept {
  PassShape pass;
  std::int64_t all = 0;
  int n_decoding = 0;
  for (const Work& work : work_) {
    if (work.prefill)
      pass.prompt_rows += work.n_feed + work.proposal.length();
    else
      all += cache_->length(work.seq), ++n_decoding;
  }
  pass.context = static_cast<int>(all / std::max(1, n_decoding));
  pass.rows = static_cast<int>(tokens_.size()) - pass.prompt_rows;
  return pass;
}

void Engine::Impl::LearnCosts(const PassShape& pass, const StepTimes& times) noexcept {
  if (pass.rows > 0) last_context_ = pass.context;
  if (pass.prompt_rows > 0) {
    if (costs_->known())
      prompt_rows_->See(pass.prompt_rows, 1000 * times.verify_ms,
                        costs_->PassUs(std::max(1, pass.rows), pass.context));
    return;
  }
  const double rest_us = 1000 * Milliseconds(times.judged_at, Clock::now());
  CountPrediction(pass, times, rest_us);
  costs_->SeePass(pass.rows, pass.context, 1000 * times.verify_ms);
  costs_->SeeRest(rest_us);
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
    if (s.request().logprobs >= 0) {
      // Reserved for the whole request, so the address holds.
      auto& read = s.completion.logprobs.emplace_back();
      logprobs_->Read(LogitsOf(work, i), token, s.request().logprobs, read);
      event.logprobs = &read;
    }
    if (s.n_likely > 0)
      logprobs_->Best(LogitsOf(work, i), n_likely_,
                      likely_.data() + static_cast<std::ptrdiff_t>(s.first_likely + i) * n_likely_);
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
  if (work.prefill && drafted == 0) return;
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

// What a request holds goes back, also where it was not admitted whole.
void Engine::Impl::Finish(engine::Job& job, FinishReason reason) noexcept {
  const SeqId seq = job.seq;
  auto& slot = sequences_[static_cast<std::size_t>(seq)];
  Completion& completion = job.completion.emplace();
  if (slot != nullptr) {
    engine::Sequence& s = *slot;
    std::string rest;
    TryFor(job, [&] { s.emitter.Flush(rest); });  // empty unless the request was cancelled
    completion = std::move(s.completion);
    completion.text = s.emitter.TakeText();
    for (const int d : s.drafters) drafters_[static_cast<std::size_t>(d)].drafter->End(seq);
  }
  cache_->Truncate(seq, 0);
  completion.finish_reason = job.error ? FinishReason::kError : reason;
  completion.error = std::move(job.error);
  job.seq = -1;
  slot.reset();
}

void Engine::Impl::Blame(engine::Job& job, Error error) noexcept {
  if (!job.error) job.error = std::move(error);
}

Error Engine::Impl::ThrownBy(std::string_view what) noexcept {
  const Status status = CatchNoMemory("request", [&]() -> Status {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("request: its callback threw an exception: {}; catch it there", what));
  });
  return status.error();
}

Error Engine::Impl::NotFinite(int n_tokens) const {
  return {ErrorCode::kInvalidFile,
          fmt::format("{}: the logits after {} tokens of text are not finite, so no token can be "
                      "chosen; its weights are damaged or too large: fetch or convert it again",
                      summary_.target.path, n_tokens)};
}

Error Engine::Impl::ProcessorFault(int n_tokens) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("logits processor: after {} tokens of text it left NaN or +infinity; leave "
                      "finite numbers, or -infinity to ban a token",
                      n_tokens)};
}

void Engine::Impl::Notice(std::string_view text) noexcept {
  try {
    summary_.notices.emplace_back(text);
  } catch (const std::exception&) {  // no memory for a notice
  }
}

}  // namespace foretoken
