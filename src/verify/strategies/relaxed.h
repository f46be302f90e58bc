// SPDX-License-Identifier: Apache-2.0
// verify/strategies/relaxed.h: accepts drafts that are almost as probable as the target's best token.
//
//   accept d_i iff d_i is among the top_n most probable tokens of p_i and p_i(d_i) >= max p_i -
//   delta else the most probable token
// Not lossless.
#pragma once

#include "verify/registry.h"

namespace foretoken::verify {

extern const VerifierSpec kRelaxedSpec;

class Relaxed final : public ListedVerifier {
 public:
  explicit Relaxed(const SpeculativeOptions& settings = {})
      : ListedVerifier(kRelaxedSpec),
        top_n_(settings.relaxed_top_n),
        delta_(static_cast<double>(settings.relaxed_delta)) {}
  round::Verdict Verify(const round::Proposal& proposal, LogitsView logits,
                        sampling::Sampler& sampler, float* scratch) const noexcept override;

 private:
  bool Accepts(const sampling::Sampler& sampler, const float* p, Token best,
               Token d) const noexcept;

  int top_n_;
  double delta_;
};

}  // namespace foretoken::verify
