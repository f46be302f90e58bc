// SPDX-License-Identifier: Apache-2.0
#include "draft_length/cost_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "draft_length/tuning.h"

namespace foretoken::draft_length {
namespace {

using namespace tuning;

}  // namespace

CostModel::CostModel(const ControllerSettings& settings)
    : costs_(*settings.costs),
      n_drafters_(settings.n_drafters),
      states_(static_cast<std::size_t>(settings.max_sequences)),
      shared_(static_cast<std::size_t>(n_drafters_ * kEvidenceClasses), Survival(kSharedFading)),
      drafting_(static_cast<std::size_t>(n_drafters_ * kMaxDraft)),
      unread_us_(static_cast<std::size_t>(n_drafters_)),
      looks_(shared_.size()),
      referee_(settings.max_sequences) {
  if (settings.widths.empty()) allowed_.fill(true);
  for (const int width : settings.widths) allowed_[static_cast<std::size_t>(width)] = true;
  for (State& state : states_) state.survival.resize(shared_.size());
  picks_.reserve(states_.size() * kMaxDraft);
}

// Texts differ, so what others taught counts as a few verdicts. They count as a drafter's first looks, too.
void CostModel::Start(std::span<const LearnedVerdicts> learned) noexcept {
  for (const LearnedVerdicts& verdicts : learned) {
    if (verdicts.drafter >= n_drafters_) continue;
    const std::size_t slot = Slot(verdicts.drafter, verdicts.evidence);
    const double verified = std::min(verdicts.verified, kKeptVerdicts),
                 share = std::min(1.0, verdicts.accepted / verdicts.verified);
    shared_[slot].Start(verdicts.position, verified, share * verified);
    const int n = std::min(kFirstLooks, static_cast<int>(verified));
    if (verdicts.position == 0)
      looks_[slot] = {.n = n, .accepted = static_cast<int>(std::lround(share * n))};
  }
}

std::vector<LearnedVerdicts> CostModel::Learned() const {
  std::vector<LearnedVerdicts> learned;
  for (int drafter = 0; drafter < n_drafters_; ++drafter)
    for (int evidence = 0; evidence < kEvidenceClasses; ++evidence)
      for (int i = 0; i < kMaxDraft; ++i)
        if (const auto known = shared_[Slot(drafter, evidence)].At(i); known.verified >= 1)
          learned.push_back({drafter, evidence, i, known.verified, known.accepted});
  return learned;
}

void CostModel::Begin(SeqId seq, const DraftLengths& lengths) noexcept {
  State& state = At(seq);
  state.ceiling = Allowed(std::min(lengths.most, kMaxDraft));
  state.least = std::max(1, std::min(lengths.least, state.ceiling));
  while (state.least < state.ceiling && !allowed_[static_cast<std::size_t>(state.least)])
    ++state.least;
  state.idle_rounds = state.asleep = 0, state.interval = kFirstInterval, state.plans_in_vain = 0;
  state.rounds_on_one = 0, state.patience = kFirstPatience;
  state.probing = state.trying = state.looking = false;
  state.total_us = state.probe_us = 0;
  std::fill(state.survival.begin(), state.survival.end(), Survival());
}

void CostModel::Reset(SeqId seq) noexcept {
  std::fill(shared_.begin(), shared_.end(), Survival(kSharedFading));
  std::fill(looks_.begin(), looks_.end(), Looks());
  const State& state = At(seq);
  Begin(seq, {state.least, state.ceiling});
}

int CostModel::Most(SeqId seq, int) const noexcept {
  const State& state = states_[static_cast<std::size_t>(seq)];
  return state.asleep > 0 ? 0 : state.ceiling;
}

// The longest allowed draft of at most k tokens; 0: there is none.
int CostModel::Allowed(int k) const noexcept {
  while (k > 0 && !allowed_[static_cast<std::size_t>(k)]) --k;
  return k;
}

// How many drafts come next, together, behind k of them; 0: none.
int CostModel::Step(const State& state, int k) const noexcept {
  int next = std::max(k + 1, state.least);
  while (next <= state.ceiling && !allowed_[static_cast<std::size_t>(next)]) ++next;
  return next > state.ceiling ? 0 : next - k;
}

// A round's share of the time in which the drafter reads what it has missed. It reads once, and the
// rounds behind it draft as well.
double CostModel::ReadUs(const State& state, const Offer& offer) const noexcept {
  if (offer.made) return 0;
  const bool known = looks_[Slot(offer.drafter, offer.evidence)].n >= kFirstLooks;
  return costs_.CatchUpUs(offer.drafter, offer.missing) /
         std::min(known ? kCatchUpRounds : kCatchUpRounds / 2, state.rounds_left);
}

// The time of k drafts for one sequence that drafts alone.
double CostModel::DraftUs(const Pass& pass, const State& state, const Offer& offer,
                          int k) const noexcept {
  if (offer.made) return 0;
  return costs_.DraftsUs(offer.drafter, k, k, pass.context) + ReadUs(state, offer);
}

// A pass without drafts.
double CostModel::PlainUs(const Pass& pass) const noexcept {
  return costs_.PassUs({pass.n_decoding, pass.n_decoding, pass.context});
}

double CostModel::Rate(const Pass& pass, double tokens, int drafts,
                       double draft_us) const noexcept {
  const int rows = pass.n_decoding + drafts;
  return tokens /
         (costs_.PassUs({rows, pass.n_decoding, pass.context}) + draft_us + costs_.RestUs());
}

// How many drafts of this offer the sequence may have if it drafts alone, and 0 if that is too few.
int CostModel::MostOf(const Pass& pass, const State& state, const Offer& offer) const noexcept {
  const int most =
      Allowed(std::min({offer.most, state.ceiling, pass.trusted_rows - pass.n_decoding}));
  return most < state.least ? 0 : most;
}

// The best rate of a sequence that drafts alone, and 0 if `most` is less than its least draft.
double CostModel::BestAlone(const Pass& pass, const State& state, const Offer& offer,
                            const double* s, int most) const noexcept {
  double tokens = pass.n_decoding, best = 0;
  for (int k = 1; k <= most; ++k) {
    tokens += s[k - 1];
    if (k < state.least || !allowed_[static_cast<std::size_t>(k)]) continue;
    best = std::max(best, Rate(pass, tokens, k, DraftUs(pass, state, offer, k)));
  }
  return best;
}

// Chooses the offer that would be best if this sequence drafted alone, and leaves its survival in
// the state.
void CostModel::ChooseOffer(const Pass& pass, Plan& plan) noexcept {
  State& state = At(plan.seq);
  // The sequence's own observations lose weight while nothing is drafted.
  const double weight = std::pow(kIdleFading, state.idle_rounds);
  double best = -1;
  for (std::size_t i = 0; i < plan.offers.size(); ++i) {
    const Offer& offer = plan.offers[i];
    const int most = MostOf(pass, state, offer);
    if (most == 0) continue;
    double s[kMaxDraft];
    const std::size_t slot = Slot(offer.drafter, offer.evidence);
    state.survival[slot].Read(shared_[slot], kFirstGuess, weight, most, s);
    const double rate = BestAlone(pass, state, offer, s, most);
    if (rate <= best) continue;
    best = rate;
    plan.chosen = static_cast<int>(i);
    std::copy_n(s, most, state.s);
    std::fill(state.s + most, state.s + kMaxDraft, 0.0);
  }
  state.best_rate = best;
  if (best < 0) std::fill(state.s, state.s + kMaxDraft, 0.0);
}

// The plan whose next draft is most likely to be accepted, or -1 if no plan may have another. Drafts
// that come together count with their mean.
int CostModel::NextToDraft(const Pass& pass, std::span<const Plan> plans) const noexcept {
  const int rows = pass.trusted_rows - pass.n_decoding - static_cast<int>(picks_.size());
  int next = -1;
  double likeliest = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Plan& plan = plans[i];
    if (plan.offers.empty() || plan.k >= kMaxDraft) continue;
    const State& state = states_[static_cast<std::size_t>(plan.seq)];
    const int n = Step(state, plan.k);
    if (n == 0 || n > rows) continue;
    const double s = std::accumulate(state.s + plan.k, state.s + plan.k + n, 0.0) / n;
    if (s > likeliest) likeliest = s, next = static_cast<int>(i);
  }
  return next;
}

// Adds the draft that is most likely to be accepted, again and again, and returns to the plans with
// the best rate.
void CostModel::Share(const Pass& pass, std::span<Plan> plans) noexcept {
  std::fill(drafting_.begin(), drafting_.end(), 0);
  picks_.clear();
  double tokens = pass.n_decoding, draft_us = 0, best = pass.least_rate;
  std::size_t n_best = 0;
  for (int next = NextToDraft(pass, plans); next >= 0; next = NextToDraft(pass, plans)) {
    Plan& plan = plans[static_cast<std::size_t>(next)];
    const State& state = At(plan.seq);
    const Offer& offer = plan.offers[static_cast<std::size_t>(plan.chosen)];
    if (plan.k == 0) draft_us += ReadUs(state, offer);
    for (int n = Step(state, plan.k); n > 0; --n) {
      // Sequences that draft together share the passes of a drafter.
      const int before = plan.k++;
      int& together = drafting_[static_cast<std::size_t>(offer.drafter * kMaxDraft + before)];
      tokens += state.s[before];
      picks_.push_back(next);
      if (offer.made) continue;
      draft_us -= costs_.DraftUs(offer.drafter, together, before, pass.context);
      draft_us += costs_.DraftUs(offer.drafter, ++together, before, pass.context);
    }
    const double rate = Rate(pass, tokens, static_cast<int>(picks_.size()), draft_us);
    if (rate <= best) continue;
    best = rate;
    n_best = picks_.size();
  }
  for (std::size_t i = n_best; i < picks_.size(); ++i)
    --plans[static_cast<std::size_t>(picks_[i])].k;
}

// The time of the fewest drafts of a round, with the prefill that their model needs first.
double CostModel::ProbeUs(const Pass& pass, const State& state, const Offer& offer) const noexcept {
  return offer.made ? 0
                    : costs_.DraftsUs(offer.drafter, state.least, state.least, pass.context) +
                          costs_.CatchUpUs(offer.drafter, offer.missing);
}

// The time of a round with the fewest drafts, reading included.
double CostModel::ShortestRoundUs(const Pass& pass, const State& state,
                                  const Offer& offer) const noexcept {
  return costs_.PassUs({pass.n_decoding + state.least, pass.n_decoding, pass.context}) +
         ProbeUs(pass, state, offer) + costs_.RestUs();
}

// Whether perfect drafts would pay, and the time of a probe lies within a share of all time and a
// larger share of the request's own time.
bool CostModel::MayPay(const Pass& pass, const State& state, const Offer& offer) const noexcept {
  const double us = ProbeUs(pass, state, offer);
  if (probe_us_ + us > kProbeShare * total_us_) return false;
  if (state.probe_us + us > kOwnProbeShare * state.total_us) return false;
  return PaysWith(1, pass, state, offer);
}

// Whether drafts would pay of which each is accepted with this probability if those before it were.
bool CostModel::PaysWith(double acceptance, const Pass& pass, const State& state,
                         const Offer& offer) const noexcept {
  double s[kMaxDraft], product = 1;
  for (double& accepted : s) accepted = product *= acceptance;
  const int most = MostOf(pass, state, offer);
  return BestAlone(pass, state, offer, s, most) > pass.least_rate;
}

// Drafts that cannot pay by what was measured may have been measured at a bad moment. They are
// measured again, within a share of all the time since the last measurement.
bool CostModel::Stale(const Pass& pass, const State& state, const Offer& offer) const noexcept {
  if (offer.made) return false;
  const double rows_us =
      costs_.PassUs({pass.n_decoding + state.least, pass.n_decoding, pass.context}) - PlainUs(pass);
  return ProbeUs(pass, state, offer) + rows_us <=
         kReviewShare * unread_us_[static_cast<std::size_t>(offer.drafter)];
}

// A few early rejections say little, and a drafter that is left alone becomes expensive: it must
// read all that it missed, the whole prompt at first. So its first rounds are made as long as drafts
// would pay if the next few were accepted, and it reads no longer than a few passes take.
bool CostModel::IsNew(const Pass& pass, const State& state, const Offer& offer) const noexcept {
  const Looks& looks = looks_[Slot(offer.drafter, offer.evidence)];
  const double hoped = (looks.accepted + kHopedLooks) / (looks.n + kHopedLooks),
               passes =
                   std::clamp(kLookPasses * state.rounds_left / kCatchUpRounds, 1.0, kLookPasses);
  return looks.n < kFirstLooks &&
         (offer.made || costs_.CatchUpUs(offer.drafter, offer.missing) < passes * PlainUs(pass)) &&
         PaysWith(hoped, pass, state, offer);
}

// Whether a model's shortest drafts bring nearly what plain decoding does, and what they are expected to
// lose, all that the model reads for them included, lies within a share of all time together with what
// such drafts lost. The share is smaller for a model that could rest and read for little.
bool CostModel::NearlyPays(const Pass& pass, const State& state,
                           const Offer& offer) const noexcept {
  if (offer.made || pass.n_decoding > 1) return false;
  const double tokens = std::accumulate(state.s, state.s + state.least, 1.0),
               plain = Rate(pass, 1, 0, 0),
               drafted = Rate(pass, tokens, state.least, DraftUs(pass, state, offer, state.least)),
               loss_us = ShortestRoundUs(pass, state, offer) - tokens / plain,
               of_drafts = loss_us - costs_.CatchUpUs(offer.drafter, offer.missing),
               later_us = kNearReads * costs_.CatchUpUs(offer.drafter, 1),
               part = of_drafts > later_us ? std::max(kNearLeast, later_us / of_drafts) : 1;
  return drafted >= (1 - kNear) * plain &&
         lost_us_ + loss_us <= part * kNearShare * (total_us_ + kFirstNear / plain);
}

// The tokens that the loss of a round is booked with: those that are hoped for, unless all first drafts together
// show that such rounds are hopeless. Hopes never fall as low as what those bring.
double CostModel::BookedTokens(const Pass& pass, const State& state,
                               const Offer& offer) const noexcept {
  const Looks& looks = looks_[Slot(offer.drafter, offer.evidence)];
  const double often = (looks.all_accepted + 1) / (looks.all + kPseudoLooks),
               hoped = std::accumulate(state.s, state.s + state.least, 0.0),
               known = std::min(1.0, often / state.s[0]) * hoped,
               round_us = ShortestRoundUs(pass, state, offer) -
                          costs_.CatchUpUs(offer.drafter, offer.missing),
               needed = round_us * Rate(pass, 1, 0, 0) - 1;
  return 1 + (known < kHopeless * needed ? known : hoped);
}

void CostModel::Probe(const Pass& pass, Plan& plan) noexcept {
  State& state = At(plan.seq);
  const Offer& offer = plan.offers[static_cast<std::size_t>(plan.chosen)];
  if (state.s[0] == 0 || MostOf(pass, state, offer) == 0) return;
  const bool is_new = IsNew(pass, state, offer);
  if (is_new || NearlyPays(pass, state, offer)) {
    state.looking = true;
    state.hoped_tokens = is_new ? 0 : BookedTokens(pass, state, offer);
    state.hoped_us = ShortestRoundUs(pass, state, offer);
    plan.k = state.least;
    return;
  }
  if (state.idle_rounds < state.interval) return;
  if (!Stale(pass, state, offer) && !MayPay(pass, state, offer)) return;
  state.probing = true;
  plan.k = state.least;
}

// Another drafter of a portfolio gets a round now and then if it could be better. The interval
// grows while it fails, and all such rounds stay within a hundredth of the time.
void CostModel::LookElsewhere(const Pass& pass, Plan& plan) noexcept {
  State& state = At(plan.seq);
  if (plan.offers.size() < 2 || ++state.rounds_on_one < state.patience) return;
  if (state.probe_us > kProbeShare * state.total_us) return;
  state.rounds_on_one = 0;
  state.patience = std::min(kLongestWait, 2 * state.patience);
  double always[kMaxDraft];
  std::fill_n(always, kMaxDraft, 1.0);
  for (std::size_t i = 1; i < plan.offers.size(); ++i) {
    const int other = (plan.chosen + static_cast<int>(i)) % static_cast<int>(plan.offers.size());
    const Offer& offer = plan.offers[static_cast<std::size_t>(other)];
    const int most = MostOf(pass, state, offer);
    if (most == 0 || costs_.CatchUpUs(offer.drafter, offer.missing) > kProbeShare * state.total_us)
      continue;
    if (BestAlone(pass, state, offer, always, most) <= state.best_rate) continue;
    plan.chosen = other;
    plan.k = std::max(state.least, Allowed(std::min(2, most)));
    state.probing = true;
    return;
  }
}

// Chooses the longer drafts, or none, that would be best if passes that were not read lately cost as little
// as they can. What that wastes if they cost what was read is within a share of the time.
void CostModel::TryOthers(const Pass& pass, Plan& plan) noexcept {
  if (untried_rounds_ == 0) untried_us_ = kFirstTry * costs_.PassUs(1, pass.context);
  if (untried_rounds_++ % kTryEvery != 0) return;
  State& state = At(plan.seq);
  const Offer& offer = plan.offers[static_cast<std::size_t>(plan.chosen)];
  const int most = MostOf(pass, state, offer), planned = plan.k;
  const double rest_us = costs_.RestUs(),
               read_us = offer.made ? 0 : costs_.CatchUpUs(offer.drafter, offer.missing);
  double tokens = pass.n_decoding + std::accumulate(state.s, state.s + planned, 0.0);
  const double rate =
      Rate(pass, tokens, planned, planned > 0 ? DraftUs(pass, state, offer, planned) : 0);
  double best = std::max(pass.least_rate, rate * (1 + kMargin));
  for (int k = planned + 1; k <= most; ++k) {
    tokens += state.s[k - 1];
    if (k < state.least || !allowed_[static_cast<std::size_t>(k)]) continue;
    const int rows = pass.n_decoding + k;
    const double draft_us = offer.made ? 0 : costs_.DraftsUs(offer.drafter, k, k, pass.context),
                 least_us =
                     offer.made ? 0 : costs_.LeastDraftsUs(offer.drafter, k, k, pass.context),
                 us = costs_.PassUs(rows, pass.context) + draft_us + read_us + rest_us,
                 hoped_us = costs_.LeastPassUs(rows, pass.context) + least_us +
                            ReadUs(state, offer) + rest_us;
    if (tokens / hoped_us <= best || us - tokens / rate > kTryShare * untried_us_) continue;
    best = tokens / hoped_us;
    plan.k = k;
    state.trying = true;
  }
  if (planned > 0 && !state.trying && MayTryPlain(pass, rate)) plan.k = 0, state.trying = true;
}

// Whether plain decoding may be quicker than drafts of this rate, and what it wastes otherwise is within
// the share.
bool CostModel::MayTryPlain(const Pass& pass, double rate) const noexcept {
  const double rest_us = costs_.RestUs(), us = PlainUs(pass) + rest_us;
  return rate * (costs_.LeastPassUs(1, pass.context) + rest_us) < 1 &&
         us - 1 / rate <= kTryShare * untried_us_;
}

// How many rounds to wait at most before planning again. 0 where a plan costs next to nothing compared with
// a pass. Made drafts are news, and what other sequences draft changes the pass; for a sequence
// alone, models and heads tell nothing new until they draft.
int CostModel::Sleep(const Pass& pass, const Plan& plan) const noexcept {
  const bool news =
      pass.n_decoding > 1 || std::any_of(plan.offers.begin(), plan.offers.end(),
                                         [](const Offer& offer) { return offer.made; });
  const double pass_us = PlainUs(pass), share = news ? kPlanningShare : kPlanningShare / kNoNews;
  const int rounds = static_cast<int>((1 + pass.n_decoding) * kPlanningUs / (share * pass_us));
  const State& state = states_[static_cast<std::size_t>(plan.seq)];
  const int to_probe = state.interval - state.idle_rounds;
  return std::min({rounds, kLongestSleep, to_probe > 0 ? to_probe : kLongestSleep});
}

// Drafts that pay come close together, so a sequence sleeps only after a few plans without any, and then
// longer after each further one.
void CostModel::FallAsleep(const Pass& pass, const Plan& plan) noexcept {
  State& state = At(plan.seq);
  const int in_vain = ++state.plans_in_vain - kPlansInVain;
  if (in_vain > 0) state.asleep = std::min(Sleep(pass, plan), 1 << std::min(in_vain, 30));
}

void CostModel::Choose(std::span<Plan> plans) noexcept {
  Pass pass;
  std::int64_t context = 0;
  const bool known = costs_.known();
  for (Plan& plan : plans) {
    plan.k = plan.chosen = 0;
    plan.out_of_rows = false;
    plan.probe.reset();
    if (!known && !plan.offers.empty()) plan.probe = ProbeKind::kBaseline;
    context += plan.context;
  }
  if (plans.empty()) return;
  TellReferee();
  if (!known) return;
  pass.n_decoding = static_cast<int>(plans.size());
  pass.context = static_cast<int>(context / pass.n_decoding);
  pass.trusted_rows = costs_.TrustedRows();
  pass.least_rate =
      Rate(pass, pass.n_decoding, 0, 0) * (1 + kMargin + kMarginPerJitter * costs_.Jitter());
  for (Plan& plan : plans) {
    if (plan.offers.empty()) continue;
    At(plan.seq).rounds_left = std::max(1, plan.left / 2);
    ChooseOffer(pass, plan);
  }
  pass_sequences_ = pass.n_decoding;
  pass_kind_ = PassKind::kPlain;
  const Referee::Decision decision = referee_.Next(pass.n_decoding);
  if (decision != Referee::Decision::kDraft) return StayPlain(pass, plans, decision);
  Share(pass, plans);
  if (std::any_of(plans.begin(), plans.end(), [](const Plan& p) { return p.k > 0; }))
    pass_kind_ = PassKind::kDrafts;
  Measure(pass, plans);
}

void CostModel::StayPlain(const Pass& pass, std::span<Plan> plans,
                          Referee::Decision decision) noexcept {
  for (Plan& plan : plans) {
    if (plan.offers.empty()) continue;
    if (decision == Referee::Decision::kCompare) plan.probe = ProbeKind::kBaseline;
    if (decision == Referee::Decision::kSuspended) At(plan.seq).asleep = Sleep(pass, plan);
  }
}

// Reports to the referee what the last pass brought to those of its sequences that may draft.
void CostModel::TellReferee() noexcept {
  if (pass_us_ > 0 && pass_kind_ != PassKind::kOther)
    referee_.Record(pass_sequences_, pass_kind_ == PassKind::kDrafts, pass_tokens_, pass_us_);
  pass_kind_ = PassKind::kOther;
  pass_tokens_ = 0, pass_us_ = 0;
}

// Chooses rounds that measure something beyond what was decided. The other rounds without drafts
// wait.
void CostModel::Measure(const Pass& pass, std::span<Plan> plans) noexcept {
  int rows = pass.n_decoding;
  for (const Plan& plan : plans) rows += plan.k;
  bool probed = false;
  for (Plan& plan : plans) {
    if (plan.offers.empty()) continue;
    State& state = At(plan.seq);
    state.probing = state.trying = state.looking = false;
    if (plans.size() == 1) TryOthers(pass, plan);
    if (state.trying) {
      pass_kind_ = PassKind::kOther;
      if (plan.k == 0) plan.probe = ProbeKind::kBaseline;
    } else if (plan.k > 0) {
      state.plans_in_vain = 0;
      LookElsewhere(pass, plan);
    } else {
      if (!probed && rows + state.least <= pass.trusted_rows) Probe(pass, plan);
      probed |= plan.k > 0;  // one probe in a pass
      plan.out_of_rows = plan.k == 0 && rows >= pass.trusted_rows;
      if (plan.k == 0) FallAsleep(pass, plan);
    }
    if (!state.probing && !state.looking) continue;
    plan.probe = ProbeKind::kDrafter;
    pass_kind_ = PassKind::kOther;
  }
}

void CostModel::Observe(SeqId seq, const RoundOutcome& round) noexcept {
  State& state = At(seq);
  pass_tokens_ += 1 + round.accepted;
  pass_us_ += round.us / std::max(1, round.n_decoding);
  if (round.reads) pass_kind_ = PassKind::kOther;
  state.total_us += round.us;
  total_us_ += round.us / std::max(1, round.n_decoding);
  untried_us_ += round.us / std::max(1, round.n_decoding);
  for (double& us : unread_us_) us += round.us / std::max(1, round.n_decoding);
  if (round.drafted + round.withheld == 0) {
    ++state.idle_rounds;
    if (state.asleep > 0) --state.asleep;
    if (std::exchange(state.trying, false)) untried_us_ = 0;
    return;
  }
  unread_us_[static_cast<std::size_t>(round.drafter)] = 0;
  const std::size_t slot = Slot(round.drafter, round.evidence);
  // A draft that was too short to be verified brought nothing, like one whose first token is
  // rejected.
  state.survival[slot].Observe(round.drafted + round.withheld, round.accepted);
  shared_[slot].Observe(round.drafted + round.withheld, round.accepted);
  Looks& looks = looks_[slot];
  const int accepted = round.accepted > 0;
  if (looks.n < kFirstLooks) ++looks.n, looks.accepted += accepted;
  looks.all = kLooksFading * looks.all + 1;
  looks.all_accepted = kLooksFading * looks.all_accepted + accepted;
  if (round.other >= 0) {
    const std::size_t other = Slot(round.other, round.evidence);
    state.survival[other].Observe(round.other_drafted, round.other_accepted);
    shared_[other].Observe(round.other_drafted, round.other_accepted);
  }
  state.idle_rounds = 0;
  if (state.trying) {
    untried_us_ = 0;
    return;
  }
  if (state.looking) {
    // By its time and BookedTokens: the tokens that came are chance, and so is a pause.
    const double plain_us = costs_.PassUs(1, round.context) + costs_.RestUs();
    if (state.hoped_tokens > 0)
      lost_us_ = std::max(0.0, lost_us_ + std::min(round.us, kMostNear * state.hoped_us) -
                                   state.hoped_tokens * plain_us);
    return;
  }
  if (!state.probing) {
    state.interval = kFirstInterval;
    return;
  }
  const double probe_us =
      std::max(0.0, round.us - costs_.PassUs({round.n_decoding, round.n_decoding, round.context}) -
                        costs_.RestUs());
  state.probe_us += probe_us;
  probe_us_ += probe_us;
  state.interval = round.accepted > 0 ? std::clamp(state.interval / 2, 2, kFirstInterval)
                                      : std::min(kLongestWait, 2 * state.interval);
  if (round.withheld == 0 && round.accepted == round.drafted) state.patience = kFirstPatience;
}

}  // namespace foretoken::draft_length
