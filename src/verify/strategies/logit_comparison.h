// SPDX-License-Identifier: Apache-2.0
// verify/strategies/logit_comparison.h: accepts a draft whose logit is at least as high for the target as for
// the drafter.
//
//   accept d_i iff draft_logit_i(d_i) <= target_logit_i(d_i) + 1e-5, both as the models gave them
//   else the target's most probable token
// Logits of two models share no scale, and processing (temperature, penalties, bias, masks) has no
// part in the comparison, so a drafter must draw under the request's own masks. A draft without a
// logit, or with a target logit of -inf, is rejected. Not lossless.
#pragma once

#include "verify/registry.h"

namespace foretoken::verify {

extern const VerifierSpec kLogitComparisonSpec;

class LogitComparison final : public ListedVerifier {
 public:
  LogitComparison() : ListedVerifier(kLogitComparisonSpec) {}
  round::Verdict Verify(const round::Proposal& proposal, LogitsView logits,
                        sampling::Sampler& sampler, float* scratch) const noexcept override;
};

}  // namespace foretoken::verify
