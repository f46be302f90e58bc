// SPDX-License-Identifier: Apache-2.0
#include "engine/step/accounting.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "foretoken/drafts.h"
#include "round/count_drafts.h"

namespace foretoken::engine {
namespace {

constexpr int kMostFirstDrafts = 1 << 16;  // that are counted

std::size_t BandOf(int rows, bool reads_prompts) {
  constexpr std::array<int, 5> kMost = {1, 2, 4, 8, 16};
  if (reads_prompts) return kRowBandNames.size() - 1;
  return static_cast<std::size_t>(std::lower_bound(kMost.begin(), kMost.end(), rows) -
                                  kMost.begin());
}

}  // namespace

void Accounting::Observe(const PassRecord& record, const PassTimes& times) noexcept {
  counts_.overhead.control_us += record.plan.us + record.drafts.control_us;
  for (std::size_t i = 0; i < record.plan.size(); ++i)
    if (record.commits.entries[i].whole) ObserveOne(record, i, times);
  const PassShape shape = ShapeOf(record);
  CountPass(shape, times, record.result);
  LearnCosts(record, shape, times);
}

void Accounting::ObserveOne(const PassRecord& record, std::size_t i,
                            const PassTimes& times) noexcept {
  const PlannedSequence& planned = record.plan.entries[i];
  const DraftedSequence& drafted = record.drafts.entries[i];
  const CommittedSequence& committed = record.commits.entries[i];
  Sequence& s = record.sequences.At(planned.seq);
  SpeculationStats& stats = s.completion.speculation;
  Timings& timings = s.completion.timings;
  if (planned.decodes) CountTokens(record, i);
  ++stats.target_forwards;
  const double rest_ms = committed.MillisecondsAfter(times.passed);
  const double ms = times.draft_ms + times.verify_ms + rest_ms;
  if (planned.prefill && !planned.again) {
    timings.prompt_ms += ms;
    timings.prompt_tokens += committed.n_fresh;
    if (prefix_cache_) counts_.prefix_misses += committed.n_fresh;
    if (drafted.length() == 0) return;
    CountRound(drafted, 1000 * ms);
    stats.draft_ms += times.draft_ms;
    if (!drafted.given) TellController(record, i, 1000 * ms);
    return;
  }
  timings.decode_ms += ms;
  if (planned.again) return;
  CountRound(drafted, 1000 * ms);
  timings.decoded_tokens += committed.n_committed;
  stats.draft_ms += s.drafts() ? times.draft_ms : 0;
  stats.verify_ms += times.verify_ms;
  stats.overhead_ms += rest_ms + (s.drafts() ? 0 : times.draft_ms);
  if (s.drafts() && !drafted.given) TellController(record, i, 1000 * ms);
}

void Accounting::CountTokens(const PassRecord& record, std::size_t i) noexcept {
  const PlannedSequence& planned = record.plan.entries[i];
  const CommittedSequence& committed = record.commits.entries[i];
  const round::Verdict& verdict = record.verdicts.entries[i].verdict;
  const int drafted = record.drafts.entries[i].length();
  SpeculationStats& stats = record.sequences.At(planned.seq).completion.speculation;
  const bool target_token_kept = committed.n_committed == verdict.accepted + 1;
  stats.emitted += committed.n_committed;
  stats.plain += target_token_kept && verdict.kind == round::NextKind::kPlain;
  stats.recovered += target_token_kept && verdict.kind == round::NextKind::kRecovered;
  stats.bonus += target_token_kept && verdict.kind == round::NextKind::kBonus;
  if (planned.prefill && drafted == 0) return;
  stats.accepted_relaxed += committed.n_relaxed;
  stats.rolled_back += drafted - verdict.accepted;
  // Counted as verified: the accepted drafts and the first rejected one, but none behind an end.
  const bool rejected = target_token_kept && verdict.kind == round::NextKind::kRecovered;
  round::CountDrafts(drafted, committed.n_accepted, committed.n_accepted + rejected, stats);
}

void Accounting::CountRound(const DraftedSequence& drafted, double us) noexcept {
  const bool plain = drafted.length() == 0;
  const PlainReason why = drafted.given ? PlainReason::kNoDraft : drafted.why_plain;
  const bool by_choice = plain && why != PlainReason::kNoDraft;
  ++counts_.chosen[static_cast<std::size_t>(by_choice ? 0 : drafted.wanted)];
  if (drafted.probe) ++counts_.probes[static_cast<std::size_t>(*drafted.probe)];
  if (!plain) return;
  EngineCounts::Rounds& rounds = counts_.plain[static_cast<std::size_t>(why)];
  ++rounds.rounds;
  rounds.us += us;
}

void Accounting::CountFirstDraft(const PassRecord& record, std::size_t i) noexcept {
  const DraftedSequence& drafted = record.drafts.entries[i];
  const Sequence& s = record.sequences.At(record.plan.entries[i].seq);
  if (drafted.length() == 0 || drafted.drafter < 0 || !s.request().sampling.greedy()) return;
  FirstDrafts& first = first_drafts_[static_cast<std::size_t>(drafted.drafter)];
  if (first.rounds == kMostFirstDrafts) return;
  ++first.rounds;
  first.accepted += record.verdicts.entries[i].verdict.accepted > 0;
}

void Accounting::TellController(const PassRecord& record, std::size_t i, double us) noexcept {
  CountFirstDraft(record, i);
  const DraftedSequence& drafted = record.drafts.entries[i];
  const round::Verdict& verdict = record.verdicts.entries[i].verdict;
  const auto other = drafters_.OtherOutput(drafted.drafter, drafted.proposal.tokens,
                                           verdict.accepted, verdict.next);
  estimates_.controller->Observe(record.plan.entries[i].seq,
                                 {.drafter = std::max(0, drafted.drafter),
                                  .evidence = drafted.proposal.evidence,
                                  .drafted = drafted.length(),
                                  .accepted = verdict.accepted,
                                  .withheld = drafted.withheld,
                                  .n_decoding = record.drafts.n_decoding,
                                  .context = record.pass.entries[0].first_position,
                                  .reads = record.plan.prefills(),
                                  .us = us,
                                  .other = other.drafter,
                                  .other_drafted = other.drafted,
                                  .other_accepted = other.accepted});
}

Accounting::PassShape Accounting::ShapeOf(const PassRecord& record) const noexcept {
  PassShape shape;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < record.plan.size(); ++i) {
    const PlannedSequence& planned = record.plan.entries[i];
    if (planned.prefill)
      shape.prompt_rows += planned.n_feed + record.drafts.entries[i].length();
    else
      all += cache_.length(planned.seq), ++shape.sequences;
  }
  shape.context = static_cast<int>(all / std::max(1, shape.sequences));
  shape.rows = record.pass.n_rows() - shape.prompt_rows;
  return shape;
}

void Accounting::CountPass(const PassShape& shape, const PassTimes& times,
                           const model::PassResult& result) noexcept {
  EngineCounts::Passes& band = counts_.verify[BandOf(shape.rows, shape.prompt_rows > 0)];
  ++band.passes;
  band.us += 1000 * times.verify_ms;
  band.distinct_experts += result.distinct_experts;
  band.traffic += result.traffic;
  counts_.rows_used += shape.rows;
  counts_.rows_budget = std::min(max_logit_rows_, estimates_.controller->MostRows());
}

void Accounting::LearnCosts(const PassRecord& record, const PassShape& shape,
                            const PassTimes& times) noexcept {
  draft_length::RoundCosts& costs = estimates_.costs;
  if (shape.rows > 0) last_context_ = shape.context;
  if (shape.prompt_rows > 0) {
    if (costs.known())
      estimates_.prompt_rows.Record(shape.prompt_rows, 1000 * times.verify_ms,
                                    costs.PassUs(shape.decoding()));
    return;
  }
  const std::chrono::duration<double, std::micro> rest =
      std::chrono::steady_clock::now() - times.passed;
  CountPrediction(record, shape, times, rest.count());
  if (shape.rows > 0)
    costs.RecordPass(shape.decoding(), 1000 * times.verify_ms, record.result.distinct_experts);
  costs.RecordRest(rest.count());
}

// REQUIRES: a pass without prompts, whose costs are not learned yet.
void Accounting::CountPrediction(const PassRecord& record, const PassShape& shape,
                                 const PassTimes& times, double rest_us) noexcept {
  const draft_length::RoundCosts& costs = estimates_.costs;
  if (!costs.known()) return;
  const double actual_us = 1000 * (times.draft_ms + times.verify_ms) + rest_us;
  const double predicted_us =
      record.drafts.predicted_us + costs.PassUs(shape.decoding()) + costs.RestUs();
  if (actual_us > 0) counts_.cost_model.Add(predicted_us / actual_us);
}

std::vector<RowCost> Accounting::PassCosts() const {
  std::vector<RowCost> costs;
  double least_us =
      0;  // the cost of fewer rows, which interpolation may put above the next reading
  for (const int rows : estimates_.costs.KnownRows()) {
    least_us = std::max(least_us, estimates_.costs.PassUs(rows, last_context_));
    costs.push_back({rows, least_us});
  }
  return costs;
}

double Accounting::PlainStepUs(int requests) const noexcept {
  if (!estimates_.costs.known() || requests < 1) return 0;
  return estimates_.costs.PassUs(requests, last_context_) + estimates_.costs.RestUs();
}

}  // namespace foretoken::engine
