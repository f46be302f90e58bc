// SPDX-License-Identifier: Apache-2.0
// draft_length/cost_model.h: the draft lengths that promise the most tokens per second.
//
//   tokens(k) = sum over sequences of 1 + s_1 + ... + s_k        s_i: drafts 1..i all accepted
//   time(k)   = pass(rows, context) + drafting + rest            rows: sequences + all drafts
//
// Sequences share a pass. The controller adds the draft that is most likely to be accepted first,
// then the next one, and keeps the best number of drafts, which may be 0. Drafts are used only if
// the gain exceeds a margin. A request starts with what other requests taught about the drafter;
// drafts with different evidence are learned separately. A sequence drafts nothing, or at least its
// shortest draft: the first draft counts together with those that must come with it. Where only some
// lengths are allowed (ControllerSettings::widths), drafts come in steps from one of them to the next.
//
// A sequence that decodes plainly probes with one draft (or its shortest draft) from time to time;
// the interval between probes doubles after each failure. Probes take at most a hundredth of the
// time, and there are none where even perfect drafts would not pay. In most plain rounds nothing is
// even planned. A portfolio probes a drafter that it does not use in the same way.
//
// A model or head that drafts nothing for a while must read all that it missed before it drafts again,
// which soon costs more than a probe may. So where it nearly pays it goes on with the shortest drafts,
// as long as what it loses stays within a hundredth of the time and two plain passes, and within less
// where reading costs little.
//
// A cost that was read in a bad moment rules out drafts that would pay, and what is ruled out is not
// read again by itself. So where longer drafts would pay if passes cost no more than they must, they
// are tried now and then, and so is a plain pass behind a context whose price is in doubt, within half a
// hundredth of the time.
//
// Predictions can be wrong for long, so a referee compares the results of passes and may suspend
// drafting.
#pragma once

#include <array>
#include <vector>

#include "draft_length/controller.h"
#include "draft_length/referee.h"
#include "draft_length/survival.h"
#include "foretoken/drafts.h"

namespace foretoken::draft_length {

class CostModel final : public Controller {
 public:
  explicit CostModel(const ControllerSettings& settings);

  void Start(std::span<const LearnedVerdicts> learned) noexcept override;
  std::vector<LearnedVerdicts> Learned() const override;
  void Begin(SeqId seq, const DraftLengths& lengths) noexcept override;
  int Most(SeqId seq, int n_decoding) const noexcept override;
  void Choose(std::span<Plan> plans) noexcept override;
  void Observe(SeqId seq, const RoundOutcome& round) noexcept override;
  void Reset(SeqId seq) noexcept override;
  int MostRows() const noexcept override { return costs_.TrustedRows(); }

 private:
  struct State {
    int least = 1, ceiling = 0;         // drafts of a round that has any
    int rounds_left = 1;                // about so many, if its text gets half of what it may get
    int idle_rounds = 0, interval = 0;  // rounds without drafts; rounds before the next probe
    int asleep = 0;                     // rounds in which nothing is planned
    int plans_in_vain = 0;              // since the last one that brought drafts
    bool probing = false, trying = false, looking = false;
    double hoped_tokens = 0,
           hoped_us = 0;  // of a round whose drafts nearly pay; no tokens: it is another one
    int rounds_on_one = 0,
        patience = 0;      // rounds with one drafter; before another is probed
    double best_rate = 0;  // of the present offer
    double total_us = 0, probe_us = 0;
    std::vector<Survival> survival;  // [drafters, evidence]
    double s[kMaxDraft];             // of the present offer
  };
  // A drafter's rounds with verdicts, and those of them whose first draft was accepted: while it is new, what
  // other requests taught included; and all of them here, where old ones fade.
  struct Looks {
    int n = 0, accepted = 0;
    double all = 0, all_accepted = 0;
  };
  enum class PassKind { kPlain, kDrafts, kOther };
  struct Pass {
    int n_decoding = 0, context = 0, trusted_rows = 0;
    double least_rate = 0;  // the least rate that a draft must promise, in tokens per microsecond
  };
  State& At(SeqId seq) { return states_[static_cast<std::size_t>(seq)]; }
  std::size_t Slot(int drafter, int evidence) const {
    return static_cast<std::size_t>(drafter * kEvidenceClasses + evidence);
  }
  int Allowed(int k) const noexcept;
  int Step(const State& state, int k) const noexcept;
  double ReadUs(const State& state, const Offer& offer) const noexcept;
  double DraftUs(const Pass& pass, const State& state, const Offer& offer, int k) const noexcept;
  double PlainUs(const Pass& pass) const noexcept;
  double Rate(const Pass& pass, double tokens, int drafts, double draft_us) const noexcept;
  int MostOf(const Pass& pass, const State& state, const Offer& offer) const noexcept;
  double BestAlone(const Pass& pass, const State& state, const Offer& offer, const double* s,
                   int most) const noexcept;
  int NextToDraft(const Pass& pass, std::span<const Plan> plans) const noexcept;
  void ChooseOffer(const Pass& pass, Plan& plan) noexcept;
  void Share(const Pass& pass, std::span<Plan> plans) noexcept;
  double ProbeUs(const Pass& pass, const State& state, const Offer& offer) const noexcept;
  double ShortestRoundUs(const Pass& pass, const State& state, const Offer& offer) const noexcept;
  bool MayPay(const Pass& pass, const State& state, const Offer& offer) const noexcept;
  bool Stale(const Pass& pass, const State& state, const Offer& offer) const noexcept;
  bool PaysWith(double acceptance, const Pass& pass, const State& state,
                const Offer& offer) const noexcept;
  bool IsNew(const Pass& pass, const State& state, const Offer& offer) const noexcept;
  bool NearlyPays(const Pass& pass, const State& state, const Offer& offer) const noexcept;
  double BookedTokens(const Pass& pass, const State& state, const Offer& offer) const noexcept;
  void Probe(const Pass& pass, Plan& plan) noexcept;
  void Measure(const Pass& pass, std::span<Plan> plans) noexcept;
  void LookElsewhere(const Pass& pass, Plan& plan) noexcept;
  void TryOthers(const Pass& pass, Plan& plan) noexcept;
  bool MayTryPlain(const Pass& pass, double rate) const noexcept;
  int Sleep(const Pass& pass, const Plan& plan) const noexcept;
  void FallAsleep(const Pass& pass, const Plan& plan) noexcept;
  void StayPlain(const Pass& pass, std::span<Plan> plans, Referee::Decision decision) noexcept;
  void TellReferee() noexcept;

  const RoundCosts& costs_;
  const int n_drafters_;
  std::array<bool, kMaxDraft + 1> allowed_{};  // [k]: a draft may have k tokens
  std::vector<State> states_;
  std::vector<Survival> shared_;        // [drafters, evidence], over all requests
  std::vector<int> drafting_;           // [drafters, position]: sequences with a draft there
  double total_us_ = 0, probe_us_ = 0;  // of all requests
  std::vector<double> unread_us_;       // [drafters]: decoding time since they were last timed
  std::vector<Looks> looks_;            // [drafters, evidence]
  double lost_us_ = 0;                  // by drafts that nearly paid
  double untried_us_ = 0;               // since longer drafts were last tried
  int untried_rounds_ = 0;
  Referee referee_;
  // What the referee needs of the last pass.
  PassKind pass_kind_ = PassKind::kOther;
  int pass_sequences_ = 0, pass_tokens_ = 0;
  double pass_us_ = 0;
  std::vector<int> picks_;  // plans, in the order in which they got drafts
};

}  // namespace foretoken::draft_length
