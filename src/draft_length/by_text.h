// SPDX-License-Identifier: Apache-2.0
// draft_length/by_text.h: draft lengths that depend on a sequence's text alone, for verification
// strategies under which other lengths would give another text.
//
// Each such sequence has its own cost model, which sees no clock: passes and drafts cost what a
// table says, a round counts as if it had taken that long, and other sequences do not matter. So
// the same seed gives the same lengths, and the same text, on every run, under any load, with any
// number of threads and in any batch.
//
// The other sequences use the controller that the engine was opened with.
#pragma once

#include <memory>
#include <vector>

#include "draft_length/controller.h"
#include "draft_length/cost_model.h"

namespace foretoken::draft_length {

class ByText final : public Controller {
 public:
  // others: for sequences whose lengths may depend on more than their text; null: there are none.
  // REQUIRES: settings.fixed_costs are known before such a sequence begins, and never change.
  ByText(const ControllerSettings& settings, std::unique_ptr<Controller> others);

  void Start(std::span<const LearnedVerdicts> learned) noexcept override;
  std::vector<LearnedVerdicts> Learned() const override;
  void Begin(SeqId seq, const DraftLengths& lengths) override;
  int Most(SeqId seq, int n_decoding) const noexcept override;
  void Choose(std::span<Plan> plans) noexcept override;
  void Observe(SeqId seq, const RoundOutcome& round) noexcept override;
  int MostRows() const noexcept override;
  void Reset(SeqId seq) noexcept override;
  AdaptiveLookahead* Adaptive(SeqId seq) noexcept override;

 private:
  struct Own {
    std::unique_ptr<CostModel> model;  // null: the sequence uses the others' controller
    int context = 0, missing = 0;      // of the last plan; of its offer
    bool made = false;
  };
  double TableUs(const Own& own, const RoundOutcome& round) const noexcept;
  const Own& At(SeqId seq) const { return sequences_[static_cast<std::size_t>(seq)]; }
  Own& At(SeqId seq) { return sequences_[static_cast<std::size_t>(seq)]; }

  ControllerSettings own_settings_;
  const RoundCosts* costs_;
  std::unique_ptr<Controller> others_;
  std::vector<Own> sequences_;
  std::vector<Plan> plans_;  // of a pass, for the others' controller
};

}  // namespace foretoken::draft_length
