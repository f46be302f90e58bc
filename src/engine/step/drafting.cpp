// SPDX-License-Identifier: Apache-2.0
#include "engine/step/drafting.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/stopwatch.h"

namespace foretoken::engine {
namespace {

// Why a sequence that has no offers decodes plainly.
PlainReason WhyNoOffers(const PlannedSequence& planned, const Sequence& s) {
  if (!s.drafts()) return PlainReason::kDisabled;
  if (s.emitter.tokens_left() <= 1) return PlainReason::kNoRoom;
  if (planned.mixed && planned.max_draft < s.least_drafts) return PlainReason::kBudget;
  // The scheduler plans rows for a whole draft, and takes them back if blocks are missing.
  const int room = std::min(s.most_drafts, s.emitter.tokens_left() - 1);
  if (planned.max_draft < s.least_drafts)
    return planned.max_draft < room ? PlainReason::kMemory : PlainReason::kNoRoom;
  return PlainReason::kCost;  // the controller suspends drafting
}

// The positions before its next row.
int ContextOf(const Sequence& s) {
  return s.sampler.position() - 1;
}

// Why a sequence with offers has no drafts.
PlainReason WhyNotDrafted(const draft_length::Plan& choice) {
  const bool any = std::any_of(choice.offers.begin(), choice.offers.end(),
                               [](const draft_length::Offer& offer) { return offer.most > 0; });
  if (choice.k > 0 || !any) return PlainReason::kNoDraft;
  return choice.out_of_rows ? PlainReason::kBudget : PlainReason::kCost;
}

}  // namespace

Drafting::Drafting(int max_sequences, loader::DrafterSet& drafters, Estimates& estimates,
                   std::function<void(std::string)> on_notice)
    : drafters_(drafters), estimates_(estimates), on_notice_(std::move(on_notice)) {
  const auto n = static_cast<std::size_t>(max_sequences),
             n_drafters = static_cast<std::size_t>(drafters.size());
  noted_not_finite_.resize(n_drafters);
  choices_.reserve(n), asks_.reserve(n), answers_.reserve(n);
  offers_.reserve(n * n_drafters), offered_.reserve(n * n_drafters);
  asked_.reserve(n);
  observations_.resize(n_drafters);
  for (auto& observations : observations_) observations.reserve(n);
}

// Lookups cost next to nothing, so they draft first. Models and heads only say how many tokens they
// would have to read. Then the controller compares all offers and chooses the lengths.
void Drafting::Propose(const PassPlan& plan, const Sequences& sequences, const DraftWants& wants,
                       Proposals& out) noexcept {
  out.entries.assign(plan.size(), {});
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const PlannedSequence& planned = plan.entries[i];
    out.entries[i].asked = planned.max_draft;
    const std::span<const Token> given = sequences.At(planned.seq).given();
    if (planned.decodes && !given.empty())
      TakeGiven(given.first(static_cast<std::size_t>(planned.max_draft)), out.entries[i]);
  }
  out.predicted_us = out.control_us = 0;
  const Round round{plan, sequences, wants, out};
  MakeOffers(round);
  if (offers_.empty()) return;
  out.control_us = Microseconds([&] { ChooseLengths(wants); });
  std::size_t choice = 0;
  for (std::size_t i = 0; i < plan.size(); ++i)
    if (plan.entries[i].may_draft)
      TakeChoice(choices_[choice++], plan.entries[i].max_draft, out.entries[i]);
  for (int d = 0; d < drafters_.size(); ++d)
    if (!drafters_[d].instant) AskDrafter(round, d);
  WithholdShortDrafts(round);
}

// The request's own drafts, as many as its text may still have.
void Drafting::TakeGiven(std::span<const Token> drafts, DraftedSequence& out) noexcept {
  out.proposal = {.tokens = drafts};
  out.given = true;
}

// The most drafts that the controller may choose for a sequence.
int Drafting::WantedOf(const Round& round, SeqId seq) const noexcept {
  return round.wants.length.value_or(estimates_.controller->Most(seq, round.out.n_decoding));
}

// Makes a choice for each decoding sequence, with an offer of each drafter that it may use.
void Drafting::MakeOffers(const Round& round) noexcept {
  choices_.clear(), offers_.clear(), offered_.clear();
  const auto& entries = round.plan.entries;
  round.out.n_decoding = static_cast<int>(
      std::count_if(entries.begin(), entries.end(), [](const auto& e) { return e.may_draft; }));
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].may_draft) OfferFor(round, i);
  offered_.resize(offers_.size());
  for (int d = 0; d < drafters_.size(); ++d)
    if (drafters_[d].instant) AskInstantDrafter(round, d);
}

void Drafting::OfferFor(const Round& round, std::size_t i) noexcept {
  const PlannedSequence& planned = round.plan.entries[i];
  const Sequence& s = round.sequences.At(planned.seq);
  const std::size_t first = offers_.size();
  const bool drafts =
      s.drafts() && planned.max_draft >= s.least_drafts && WantedOf(round, planned.seq) > 0;
  if (!drafts) round.out.entries[i].why_plain = WhyNoOffers(planned, s);
  for (const int d : s.drafters) {
    const loader::DrafterEntry& entry = drafters_[d];
    // A first draft is part of the pass that computes the prompt's features and its part of the cache,
    // so they come too late.
    const bool reads_target = entry.reads_features() || entry.drafter->ReadsTargetCache();
    if (!drafts || (planned.prefill && reads_target) || ContextOf(s) < entry.least_context)
      continue;
    offers_.push_back(
        {.drafter = d, .most = planned.max_draft, .missing = entry.drafter->Missing(planned.seq)});
  }
  choices_.push_back({.seq = planned.seq,
                      .context = ContextOf(s),
                      .left = s.emitter.tokens_left(),
                      .offers = std::span(offers_).subspan(first)});
}

// Asks a lookup for drafts and puts them into its offers.
void Drafting::AskInstantDrafter(const Round& round, int d) noexcept {
  asks_.clear(), asked_.clear();
  for (const draft_length::Plan& choice : choices_)
    for (const draft_length::Offer& offer : choice.offers) {
      if (offer.drafter != d) continue;
      asks_.push_back({choice.seq, std::min(offer.most, WantedOf(round, choice.seq))});
      asked_.push_back(static_cast<int>(&offer - offers_.data()));
    }
  if (asks_.empty()) return;
  answers_.resize(asks_.size());
  drafters_[d].drafter->Propose(asks_, answers_);
  for (std::size_t i = 0; i < asks_.size(); ++i) {
    const auto at = static_cast<std::size_t>(asked_[i]);
    Sequence& s = round.sequences.At(asks_[i].seq);
    round::Proposal& offered = offered_[at] = answers_[i];
    // The grammar would certainly reject the rest.
    const int n = s.sampler.Follows(offered.tokens);
    offered.tokens = offered.tokens.first(static_cast<std::size_t>(n));
    offers_[at].most = n < s.least_drafts ? 0 : n;
    offers_[at].made = true;
    offers_[at].evidence = std::clamp(offered.evidence, 0, draft_length::kEvidenceClasses - 1);
  }
}

// The controller chooses the lengths. If the caller wants a length, the controller's drafter or the
// first one with drafts makes it.
void Drafting::ChooseLengths(const DraftWants& wants) noexcept {
  estimates_.controller->Choose(choices_);
  if (!wants.length) return;
  for (draft_length::Plan& choice : choices_) {
    choice.probe.reset();
    choice.out_of_rows = false;
    if (choice.k == 0)
      for (std::size_t i = choice.offers.size(); i-- > 0;)
        if (choice.offers[i].most > 0) choice.chosen = static_cast<int>(i);
    choice.k =
        choice.offers.empty()
            ? 0
            : std::min(*wants.length, choice.offers[static_cast<std::size_t>(choice.chosen)].most);
  }
}

// Drafts that are already made become the proposal. room: for drafts of this sequence.
void Drafting::TakeChoice(const draft_length::Plan& choice, int room,
                          DraftedSequence& out) noexcept {
  if (!choice.offers.empty()) out.why_plain = WhyNotDrafted(choice);
  out.probe = choice.probe;
  out.wanted = Wanted(choice, room);
  out.asked = choice.k;
  if (choice.k == 0) return;
  const auto chosen =
      static_cast<std::size_t>(choice.offers.data() - offers_.data() + choice.chosen);
  out.drafter = offers_[chosen].drafter;
  if (!offers_[chosen].made) return;
  out.proposal = offered_[chosen];
  out.proposal.tokens = out.proposal.tokens.first(static_cast<std::size_t>(choice.k));
}

// How many drafts were wanted. If all drafts that a lookup made are taken, it was asked for more
// and found no more, so the number that it was asked for counts.
int Drafting::Wanted(const draft_length::Plan& choice, int room) const noexcept {
  if (choice.offers.empty()) return 0;
  const draft_length::Offer& offer = choice.offers[static_cast<std::size_t>(choice.chosen)];
  if (!offer.made || choice.k < offer.most) return choice.k;
  const int most = estimates_.controller->Most(choice.seq, static_cast<int>(choices_.size()));
  return std::min(room, most);
}

void Drafting::AskDrafter(const Round& round, int d) noexcept {
  asks_.clear(), asked_.clear();
  for (std::size_t i = 0; i < round.plan.size(); ++i) {
    const DraftedSequence& drafted = round.out.entries[i];
    if (drafted.drafter != d || drafted.asked == 0) continue;
    asks_.push_back({round.plan.entries[i].seq, drafted.asked, round.wants.logits});
    asked_.push_back(static_cast<int>(i));
  }
  if (asks_.empty()) return;
  answers_.resize(asks_.size());
  const double us = Microseconds([&] { drafters_[d].drafter->Propose(asks_, answers_); });
  for (std::size_t i = 0; i < asks_.size(); ++i)
    round.out.entries[static_cast<std::size_t>(asked_[i])].proposal = answers_[i];
  LearnCosts(round, d, us);
}

// Learns the costs of the answers that the drafter just gave.
void Drafting::LearnCosts(const Round& round, int d, double us) noexcept {
  int drafts = 0, longest = 0;
  for (const round::Proposal& answer : answers_) {
    drafts += answer.length();
    longest = std::max(longest, answer.length());
  }
  const draft::Drafter::Work done = drafters_[d].drafter->TakeWork();
  if (done.not_finite > 0) NoteNotFinite(d);
  std::int64_t contexts = 0;
  for (const draft::Ask& ask : asks_) contexts += ContextOf(round.sequences.At(ask.seq));
  const int context = static_cast<int>(contexts / static_cast<std::int64_t>(asks_.size()));
  draft_length::RoundCosts& costs = estimates_.costs;
  round.out.predicted_us +=
      costs.DraftsUs(d, drafts, longest, context) + costs.CatchUpUs(d, done.catch_up_rows);
  costs.RecordDrafts(d, drafts, longest, us - 1000 * done.catch_up_ms, context);
  costs.RecordCatchUp(d, done.catch_up_rows, 1000 * done.catch_up_ms);
  for (const draft::Ask& ask : asks_) {
    SpeculationStats& stats = round.sequences.At(ask.seq).completion.speculation;
    stats.draft_forwards += done.forwards;
    stats.draft_prompt_ms += done.prompt_ms;
  }
}

// Writes the notice once for each drafter. The target decodes without its drafts.
void Drafting::NoteNotFinite(int d) noexcept {
  if (noted_not_finite_[static_cast<std::size_t>(d)]) return;
  noted_not_finite_[static_cast<std::size_t>(d)] = true;
  static_cast<void>(CatchNoMemory("notice", [&]() -> Status {
    on_notice_(
        fmt::format("{}: the draft model's logits are not finite, so it drafts nothing there; "
                    "its weights are damaged or too large: fetch or convert it again",
                    drafters_[d].file));
    return {};
  }));
}

// A draft may end early, at an end token or by draft_p_min. Drawn drafts may be withheld only if
// their distributions are not verified; SpeculationRules refuses other requests.
void Drafting::WithholdShortDrafts(const Round& round) noexcept {
  for (std::size_t i = 0; i < round.plan.size(); ++i) {
    DraftedSequence& drafted = round.out.entries[i];
    const int n = drafted.length();
    if (n == 0 || n >= round.sequences.At(round.plan.entries[i].seq).least_drafts) continue;
    drafted.withheld = n;
    drafted.proposal = {.evidence = drafted.proposal.evidence};
  }
}

void Drafting::Observe(const PassRecord& record) noexcept {
  for (auto& observations : observations_) observations.clear();
  for (std::size_t i = 0; i < record.plan.size(); ++i)
    if (record.commits.entries[i].reported) NoteObservations(record, i);
  for (int d = 0; d < drafters_.size(); ++d)
    if (const auto& seen = observations_[static_cast<std::size_t>(d)]; !seen.empty())
      drafters_[d].drafter->Observe(seen);
}

// Collects what the drafters of the plan's i-th sequence will be told.
void Drafting::NoteObservations(const PassRecord& record, std::size_t i) noexcept {
  const PlannedSequence& planned = record.plan.entries[i];
  if (!planned.decodes && record.result.features == nullptr) return;
  const DraftedSequence& drafted = record.drafts.entries[i];
  const CommittedSequence& committed = record.commits.entries[i];
  const SequenceRows& rows = record.pass.entries[i];
  const Sequence& s = record.sequences.At(planned.seq);
  draft::Observation o = {
      .seq = planned.seq,
      .committed = s.sampler.text().last(static_cast<std::size_t>(committed.n_committed)),
      .features = record.result.Features(rows.first_row + committed.n_known),
      .n_features = record.verdicts.kept[i] - committed.n_known,
      .feature_stride = record.result.features_width,
      .first_position = rows.first_position + committed.n_known};
  for (const int d : s.drafters) {
    const loader::DrafterEntry& entry = drafters_[d];
    const bool its_own = d == drafted.drafter && !drafted.given;
    o.feature_parts = entry.feature_parts;
    o.drafted = its_own ? drafted.length() : 0;
    o.accepted = its_own ? committed.n_accepted : 0;
    o.n_likely = entry.drafter->LikelyTokens();
    o.likely = o.n_likely == 0 ? nullptr : record.commits.Likely(s.first_likely);
    // Drafters that keep texts also want their ends. The rows behind an end have features that
    // belong to no text.
    const bool wants = entry.reads_features()
                           ? !committed.ended && (planned.decodes || o.n_features > 0)
                           : planned.decodes;
    if (wants) observations_[static_cast<std::size_t>(d)].push_back(o);
  }
}

}  // namespace foretoken::engine
