// SPDX-License-Identifier: Apache-2.0
// verify/strategies/target_probability.h: accepts a draft with the probability that the target gives it.
//
//   accept d_i iff u < p_i(d_i), u uniform in [0, 1);   else draw from p_i without d_i, normalised
// Exact for any drafter, whatever it draws from: x is committed with probability
//   q(x) p(x) + sum over d != x of q(d) (1 - p(d)) p(x) / (1 - p(d))  =  p(x)
// It needs no q, and accepts sum(q p) where residual accepts sum(min(q, p)), which is never less.
// Recovery from all of p, d included, would commit p(x) (q(x) + 1 - E_q p).
#pragma once

#include "verify/registry.h"

namespace foretoken::verify {

extern const VerifierSpec kTargetProbabilitySpec;

class TargetProbability final : public ListedVerifier {
 public:
  TargetProbability() : ListedVerifier(kTargetProbabilitySpec) {}
  round::Verdict Verify(const round::Proposal& proposal, LogitsView logits,
                        sampling::Sampler& sampler, float* scratch) const noexcept override;
};

}  // namespace foretoken::verify
