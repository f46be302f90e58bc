// SPDX-License-Identifier: Apache-2.0
// verify/strategies/typical_acceptance.h: accepts drafts that are typical of the target's distribution (Hewitt
// et al. 2022; Cai et al. 2024, "Medusa").
//
//   accept d_i iff p_i(d_i) > min(epsilon, delta exp(-H(p_i))), H the entropy in nats
//   else draw from p_i
// No random number decides: where the distribution is flat almost any draft passes, where it is
// peaked only the likely tokens do. Not lossless: the text is bent towards the drafter.
#pragma once

#include "verify/registry.h"

namespace foretoken::verify {

extern const VerifierSpec kTypicalAcceptanceSpec;

class TypicalAcceptance final : public ListedVerifier {
 public:
  explicit TypicalAcceptance(const SpeculativeOptions& settings = {})
      : ListedVerifier(kTypicalAcceptanceSpec),
        epsilon_(static_cast<double>(settings.typical_epsilon)),
        delta_(static_cast<double>(settings.typical_delta)) {}
  round::Verdict Verify(const round::Proposal& proposal, LogitsView logits,
                        sampling::Sampler& sampler, float* scratch) const noexcept override;

 private:
  double epsilon_, delta_;
};

}  // namespace foretoken::verify
