// SPDX-License-Identifier: Apache-2.0
// The drafting half of a step: what could be drafted, what is worth it, and the drafts.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/stopwatch.h"
#include "engine/impl.h"

namespace foretoken {

bool Engine::Impl::Uses(const Work& work, int drafter) const noexcept {
  const auto& drafters = sequences_[static_cast<std::size_t>(work.seq)]->drafters;
  return std::find(drafters.begin(), drafters.end(), drafter) != drafters.end();
}

void Engine::Impl::Propose() noexcept {
  MakeOffers();
  if (offers_.empty()) return;
  counts_.overhead.control_us += Microseconds([&] { ChooseLengths(); });
  std::size_t plan = 0;
  for (Work& work : work_)
    if (work.may_draft) TakePlan(work, plans_[plan++]);
  for (int d = 0; d < static_cast<int>(drafters_.size()); ++d)
    if (!drafters_[static_cast<std::size_t>(d)].instant) AskDrafter(d);
  WithholdShortDrafts();
}

// Drafts that are worth making for a sequence before the lengths are chosen.
int Engine::Impl::WantedOf(SeqId seq, int n_decoding) const noexcept {
  return wants_.length.value_or(lookahead_->Most(seq, n_decoding));
}

// By the controllers, or as the caller wants them: then the first offer that has drafts.
void Engine::Impl::ChooseLengths() noexcept {
  lookahead_->Choose(plans_);
  if (!wants_.length) return;
  for (draft_length::Plan& plan : plans_) {
    plan.probe.reset();
    plan.out_of_rows = false;
    if (plan.k == 0)
      for (std::size_t i = plan.offers.size(); i-- > 0;)
        if (plan.offers[i].most > 0) plan.chosen = static_cast<int>(i);
    plan.k =
        plan.offers.empty()
            ? 0
            : std::min(*wants_.length, plan.offers[static_cast<std::size_t>(plan.chosen)].most);
  }
}

// What was chosen for it; drafts that are made become its proposal.
void Engine::Impl::TakePlan(Work& work, const draft_length::Plan& plan) noexcept {
  if (!plan.offers.empty()) work.why_plain = WhyNotDrafted(plan);
  work.probe = plan.probe;
  work.wanted = Wanted(plan, work.max_draft);
  work.max_draft = plan.k;
  if (plan.k == 0) return;
  const auto chosen = static_cast<std::size_t>(plan.offers.data() - offers_.data() + plan.chosen);
  work.drafter = offers_[chosen].drafter;
  if (!offers_[chosen].made) return;
  work.proposal = offered_[chosen];
  work.proposal.tokens = work.proposal.tokens.first(static_cast<std::size_t>(plan.k));
}

// A plan for each decoding sequence, with an offer of each drafter that it may use.
void Engine::Impl::MakeOffers() noexcept {
  plans_.clear(), offers_.clear(), offered_.clear();
  const auto n_decoding = static_cast<int>(
      std::count_if(work_.begin(), work_.end(), [](auto& w) { return w.may_draft; }));
  for (Work& work : work_) {
    if (!work.may_draft) continue;
    engine::Sequence& s = *sequences_[static_cast<std::size_t>(work.seq)];
    const std::size_t first = offers_.size();
    const bool drafts =
        s.drafts() && work.max_draft >= s.least_drafts && WantedOf(work.seq, n_decoding) > 0;
    if (!drafts) work.why_plain = WhyNoOffers(work);
    for (const int d : s.drafters) {
      const DrafterEntry& entry = drafters_[static_cast<std::size_t>(d)];
      // The features of the prompt come with the pass that a first draft is part of.
      if (!drafts || (work.prefill && entry.reads_features())) continue;
      offers_.push_back(
          {.drafter = d, .most = work.max_draft, .missing = entry.drafter->Missing(work.seq)});
    }
    plans_.push_back({.seq = work.seq,
                      .context = s.sampler.position() - 1,
                      .offers = std::span(offers_).subspan(first)});
  }
  offered_.resize(offers_.size());
  for (int d = 0; d < static_cast<int>(drafters_.size()); ++d)
    if (drafters_[static_cast<std::size_t>(d)].instant) AskInstantDrafter(d);
}

// Puts its drafts into its offers.
void Engine::Impl::AskInstantDrafter(int drafter) noexcept {
  asks_.clear(), asked_.clear();
  const int n_decoding = static_cast<int>(plans_.size());
  for (const draft_length::Plan& plan : plans_)
    for (const draft_length::Offer& offer : plan.offers) {
      if (offer.drafter != drafter) continue;
      asks_.push_back({plan.seq, std::min(offer.most, WantedOf(plan.seq, n_decoding))});
      asked_.push_back(static_cast<int>(&offer - offers_.data()));
    }
  if (asks_.empty()) return;
  proposals_.resize(asks_.size());
  drafters_[static_cast<std::size_t>(drafter)].drafter->Propose(asks_, proposals_);
  for (std::size_t i = 0; i < asks_.size(); ++i) {
    const auto at = static_cast<std::size_t>(asked_[i]);
    round::Proposal& offered = offered_[at] = proposals_[i];
    // What the grammar rules out would be rejected for certain.
    const int n = At(asks_[i].seq).sampler.Follows(offered.tokens);
    offered.tokens = offered.tokens.first(static_cast<std::size_t>(n));
    offers_[at].most = n < At(asks_[i].seq).least_drafts ? 0 : n;
    offers_[at].made = true;
    offers_[at].evidence = std::clamp(offered.evidence, 0, draft_length::kEvidenceClasses - 1);
  }
}

void Engine::Impl::AskDrafter(int drafter) noexcept {
  asks_.clear(), asked_.clear();
  int drafts = 0, longest = 0;
  for (std::size_t i = 0; i < work_.size(); ++i) {
    if (work_[i].drafter != drafter || work_[i].max_draft == 0) continue;
    asks_.push_back({work_[i].seq, work_[i].max_draft, wants_.logits});
    asked_.push_back(static_cast<int>(i));
  }
  if (asks_.empty()) return;
  draft::Drafter& d = *drafters_[static_cast<std::size_t>(drafter)].drafter;
  proposals_.resize(asks_.size());
  const double us = Microseconds([&] { d.Propose(asks_, proposals_); });
  for (std::size_t i = 0; i < asks_.size(); ++i) {
    work_[static_cast<std::size_t>(asked_[i])].proposal = proposals_[i];
    drafts += proposals_[i].length();
    longest = std::max(longest, proposals_[i].length());
  }
  const draft::Drafter::Work done = d.TakeWork();
  if (done.not_finite > 0) NoteNotFinite(drafters_[static_cast<std::size_t>(drafter)]);
  times_.predicted_draft_us +=
      costs_->DraftsUs(drafter, drafts, longest) + costs_->CatchUpUs(drafter, done.catch_up_rows);
  costs_->SeeDrafts(drafter, drafts, longest, us - 1000 * done.catch_up_ms);
  costs_->SeeCatchUp(drafter, done.catch_up_rows, 1000 * done.catch_up_ms);
  for (const draft::Ask& ask : asks_) {
    auto& stats = sequences_[static_cast<std::size_t>(ask.seq)]->completion.speculation;
    stats.draft_forwards += done.forwards;
    stats.draft_prompt_ms += done.prompt_ms;
  }
}

// Once for each drafter. The target decodes on without its drafts.
void Engine::Impl::NoteNotFinite(DrafterEntry& entry) noexcept {
  if (std::exchange(entry.noted_not_finite, true)) return;
  static_cast<void>(CatchNoMemory("notice", [&]() -> Status {
    Notice(
        fmt::format("{}: the draft model's logits are not finite, so it drafts nothing there; "
                    "its weights are damaged or too large: fetch or convert it again",
                    entry.file));
    return {};
  }));
}

// A draft may end sooner than was asked for (at an end token, or by draft_p_min). Drawn drafts may
// only be withheld where their distributions are not verified; CheckLeastDrafts refuses the rest.
void Engine::Impl::WithholdShortDrafts() noexcept {
  for (Work& work : work_) {
    const int n = work.proposal.length();
    if (n == 0 || n >= At(work.seq).least_drafts) continue;
    work.withheld = n;
    work.proposal = {.evidence = work.proposal.evidence};
  }
}

}  // namespace foretoken
