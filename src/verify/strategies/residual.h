// SPDX-License-Identifier: Apache-2.0
// verify/strategies/residual.h: rejection sampling (Leviathan et al. 2022, Chen et al. 2023).
//
//   accept d_i iff u q_i(d_i) < p_i(d_i), u uniform in [0, 1);   else draw from r(x) = max(0,
//   p_i(x) - q_i(x)), normalised
// The committed token then has distribution p_i: q(x) min(1, p(x)/q(x)) + P(reject) r(x) = p(x). No
// epsilon and no division: p = 0 always rejects, p = q always accepts. A certain draft has a
// one-hot q: accept with probability p(d), recover from p without d. If rounding leaves nothing of
// r, the token is drawn from p.
//
// Two settings give up the distribution: a threshold t > 0 accepts with probability max(0, min(1, p
// / q) - t), and without adjustment rejected drafts are replaced by tokens drawn from p itself.
#pragma once

#include "verify/registry.h"

namespace foretoken::verify {

extern const VerifierSpec kResidualSpec;

class Residual final : public ListedVerifier {
 public:
  explicit Residual(const SpeculativeOptions& settings = {})
      : ListedVerifier(kResidualSpec),
        threshold_(static_cast<double>(settings.acceptance_threshold)),
        adjusts_(!settings.skip_sample_adjustment) {}
  bool Lossless() const override { return threshold_ == 0 && adjusts_; }
  round::Verdict Verify(const round::Proposal& proposal, LogitsView logits,
                        sampling::Sampler& sampler, float* scratch) const noexcept override;

 private:
  double threshold_;
  bool adjusts_;
};

}  // namespace foretoken::verify
