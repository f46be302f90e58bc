// SPDX-License-Identifier: Apache-2.0
// verify/strategies/sample_match.h: draws the target's token as plain decoding would, and accepts a draft iff
// it is that token.
//
//   s_i ~ p_i with the noise of the position; accept d_i iff d_i = s_i; else commit that same s_i.
// The committed token is the target's own sample, whatever was drafted. So it is exact for any
// drafter, and with noise keyed by position a seed gives the same text with and without
// speculation. A second draw after a mismatch would be biased; there is none.
#pragma once

#include "verify/registry.h"

namespace foretoken::verify {

extern const VerifierSpec kSampleMatchSpec;

class SampleMatch final : public ListedVerifier {
 public:
  SampleMatch() : ListedVerifier(kSampleMatchSpec) {}
  RowUse Use(int, bool) const override { return RowUse::kSample; }
  round::Verdict Verify(const round::Proposal& proposal, LogitsView logits,
                        sampling::Sampler& sampler, float* scratch) const noexcept override;
};

}  // namespace foretoken::verify
