// SPDX-License-Identifier: Apache-2.0
// draft_length/by_text.h: draft lengths that depend on a sequence's text alone, for verification
// strategies under which other lengths would give another text.
//
// Each such sequence has a cost model of its own that never sees a clock: passes and drafts cost
// what a table says, a round is taken to have lasted as long as the table says, and neither other
// sequences nor earlier ones count. So the same seed gives the same lengths, and the same text, on
// every run, under any load, with any number of threads and in any batch.
//
// The other sequences of an engine go to the controller that it was opened with.
#pragma once

#include <memory>
#include <vector>

#include "draft_length/cost_model.h"
#include "draft_length/lookahead.h"

namespace foretoken::draft_length {

class ByText final : public Lookahead {
 public:
  // others: for sequences that need not depend on their text alone; null: all do.
  // REQUIRES: settings.fixed_costs, known and never changing, before such a sequence begins.
  ByText(const LookaheadSettings& settings, std::unique_ptr<Lookahead> others);

  void Begin(SeqId seq, const DraftLengths& lengths) override;
  int Most(SeqId seq, int n_decoding) const noexcept override;
  void Choose(std::span<Plan> plans) noexcept override;
  void Observe(SeqId seq, const RoundOutcome& round) noexcept override;
  int MostRows() const noexcept override;
  void Reset(SeqId seq) noexcept override;
  AdaptiveLookahead* Adaptive(SeqId seq) noexcept override;

 private:
  struct Own {
    std::unique_ptr<CostModel> model;  // null: the sequence belongs to the others
    int context = 0, missing = 0;      // of the last plan; of its offer
    bool made = false;
  };
  double TableUs(const Own& own, const RoundOutcome& round) const noexcept;
  const Own& At(SeqId seq) const { return sequences_[static_cast<std::size_t>(seq)]; }
  Own& At(SeqId seq) { return sequences_[static_cast<std::size_t>(seq)]; }

  LookaheadSettings own_settings_;
  const RoundCosts* costs_;
  std::unique_ptr<Lookahead> others_;
  std::vector<Own> sequences_;
  std::vector<Plan> plans_;  // of a pass, as the others see it
};

}  // namespace foretoken::draft_length
