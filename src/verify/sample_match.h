// SPDX-License-Identifier: Apache-2.0
// verify/sample_match.h: draw the target's token as plain decoding would; a draft is right iff it
// is that token.
//
//   s_i ~ p_i with the noise of the position; accept d_i iff d_i = s_i; else commit that same s_i.
// The committed token is the target's own sample whatever was drafted: exact for any drafter, and
// with noise keyed by position the text of a seed is the same with and without speculation. A
// second draw after a mismatch would be biased; there is none.
#pragma once

#include "verify/verifier.h"

namespace foretoken::verify {

class SampleMatch final : public Verifier {
 public:
  std::string_view name() const override { return "sample-match"; }
  bool Lossless() const override { return true; }
  bool NeedsLaws() const override { return false; }
  bool SharesNoise() const override { return true; }
  round::Verdict Judge(const round::Proposal& proposal, LogitsView logits,
                       sampling::Sampler& sampler, float* scratch) const noexcept override;
};

}  // namespace foretoken::verify
