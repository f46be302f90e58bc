// SPDX-License-Identifier: Apache-2.0
// verify/greedy.h: the rule at temperature 0, which every strategy follows there.
//
// Accept d_i iff it is the most probable token (ties: lowest id); at the first mismatch commit that
// most probable token instead.
#pragma once

#include "verify/verifier.h"

namespace foretoken::verify {

round::Verdict JudgeGreedy(const round::Proposal& proposal, LogitsView logits,
                           sampling::Sampler& sampler) noexcept;

// The verdict of a walk that kept `accepted` drafts and then took `next`; takes the walk's pushes
// back.
round::Verdict EndWalk(const round::Proposal& proposal, int accepted, Token next,
                       sampling::Sampler& sampler) noexcept;

class Greedy final : public Verifier {
 public:
  std::string_view name() const override { return "greedy"; }
  bool Lossless() const override { return true; }
  bool NeedsLaws() const override { return false; }
  bool SharesNoise() const override { return false; }
  round::Verdict Judge(const round::Proposal& proposal, LogitsView logits,
                       sampling::Sampler& sampler, float* scratch) const noexcept override;
};

}  // namespace foretoken::verify
