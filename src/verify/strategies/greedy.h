// SPDX-License-Identifier: Apache-2.0
// verify/strategies/greedy.h: the rule at temperature 0, which every strategy uses there.
//
// Accepts d_i iff it is the most probable token (of equal ones the lowest id); at the first
// mismatch it commits that most probable token instead.
#pragma once

#include "verify/registry.h"

namespace foretoken::verify {

round::Verdict VerifyGreedy(const round::Proposal& proposal, LogitsView logits,
                            sampling::Sampler& sampler) noexcept;

// The verdict of a walk along the drafts that kept `accepted` of them and then took `next`. Pops
// the tokens that the walk pushed.
round::Verdict EndWalk(const round::Proposal& proposal, int accepted, Token next,
                       sampling::Sampler& sampler) noexcept;

extern const VerifierSpec kGreedySpec;

class Greedy final : public ListedVerifier {
 public:
  Greedy() : ListedVerifier(kGreedySpec) {}
  RowUse Use(int, bool) const override { return RowUse::kBest; }
  round::Verdict Verify(const round::Proposal& proposal, LogitsView logits,
                        sampling::Sampler& sampler, float* scratch) const noexcept override;
};

}  // namespace foretoken::verify
