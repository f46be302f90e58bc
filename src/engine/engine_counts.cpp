// SPDX-License-Identifier: Apache-2.0
// What the engine counts of its passes and rounds, while it commits them.
#include "foretoken/engine_counts.h"

#include <algorithm>
#include <numeric>

#include "engine/impl.h"

namespace foretoken {
namespace {

static_assert(EngineCounts::kMostDrafts == kMaxDraft);

std::size_t BandOf(int rows, bool reads_prompts) {
  constexpr std::array<int, 5> kMost = {1, 2, 4, 8, 16};
  if (reads_prompts) return kRowBandNames.size() - 1;
  return static_cast<std::size_t>(std::lower_bound(kMost.begin(), kMost.end(), rows) -
                                  kMost.begin());
}

}  // namespace

void EngineCounts::Ratios::Add(double ratio) noexcept {
  const auto above = std::lower_bound(kRatioBounds.begin(), kRatioBounds.end(), ratio);
  ++counts[static_cast<std::size_t>(above - kRatioBounds.begin())];
  sum += ratio;
}

std::int64_t EngineCounts::rounds() const noexcept {
  return std::accumulate(chosen.begin(), chosen.end(), std::int64_t{0});
}

// Why a sequence that has no offers decodes plainly.
PlainReason Engine::Impl::WhyNoOffers(const Work& work) const noexcept {
  const engine::Sequence& s = At(work.seq);
  if (!s.drafts()) return PlainReason::kDisabled;
  if (s.emitter.tokens_left() <= 1) return PlainReason::kNoRoom;
  // PlanDecoding had rows for a whole draft; SettleBlocks may have taken them back.
  const int room = std::min(s.most_drafts, s.emitter.tokens_left() - 1);
  if (work.max_draft < s.least_drafts)
    return work.max_draft < room ? PlainReason::kMemory : PlainReason::kNoRoom;
  return PlainReason::kCost;  // the controller sleeps
}

// Why a plan with offers has no drafts.
PlainReason Engine::Impl::WhyNotDrafted(const draft_length::Plan& plan) const noexcept {
  const bool any = std::any_of(plan.offers.begin(), plan.offers.end(),
                               [](const draft_length::Offer& offer) { return offer.most > 0; });
  if (plan.k > 0 || !any) return PlainReason::kNoDraft;
  return plan.out_of_rows ? PlainReason::kBudget : PlainReason::kCost;
}

void Engine::Impl::CountPass(const PassShape& pass, const StepTimes& times) noexcept {
  EngineCounts::Passes& band = counts_.verify[BandOf(pass.rows, pass.prompt_rows > 0)];
  ++band.passes;
  band.us += 1000 * times.verify_ms;
  counts_.rows_used += pass.rows;
  counts_.rows_budget = std::min(target_->info().max_logit_rows, lookahead_->MostRows());
}

void Engine::Impl::CountRound(const Work& work, double us) noexcept {
  const bool plain = work.proposal.length() == 0;
  const PlainReason why = work.given ? PlainReason::kNoDraft : work.why_plain;
  const bool by_choice = plain && why != PlainReason::kNoDraft;
  ++counts_.chosen[static_cast<std::size_t>(by_choice ? 0 : work.wanted)];
  if (work.probe) ++counts_.probes[static_cast<std::size_t>(*work.probe)];
  if (!plain) return;
  EngineCounts::Rounds& rounds = counts_.plain[static_cast<std::size_t>(why)];
  ++rounds.rounds;
  rounds.us += us;
}

// REQUIRES: a pass without prompts, whose costs are not learned yet.
void Engine::Impl::CountPrediction(const PassShape& pass, const StepTimes& times,
                                   double rest_us) noexcept {
  if (!costs_->known()) return;
  const double actual_us = 1000 * (times.draft_ms + times.verify_ms) + rest_us;
  const double predicted_us = times.predicted_draft_us +
                              costs_->PassUs(std::max(1, pass.rows), pass.context) +
                              costs_->RestUs();
  if (actual_us > 0) counts_.cost_model.Add(predicted_us / actual_us);
}

std::vector<RowCost> Engine::Impl::PassCosts() const {
  std::vector<RowCost> costs;
  double least_us = 0;  // of fewer rows: estimates between readings may lie above the next one
  for (const int rows : costs_->KnownRows()) {
    least_us = std::max(least_us, costs_->PassUs(rows, last_context_));
    costs.push_back({rows, least_us});
  }
  return costs;
}

double Engine::Impl::PlainStepUs(int requests) const noexcept {
  if (!costs_->known() || requests < 1) return 0;
  return costs_->PassUs(requests, last_context_) + costs_->RestUs();
}

}  // namespace foretoken
