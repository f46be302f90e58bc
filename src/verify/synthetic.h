// SPDX-License-Identifier: Apache-2.0
// verify/synthetic.h: acceptance by lot, for benchmarks: what would speculation gain if drafts were
// accepted at this rate? The text is not the target's.
//
//   accept d_i iff u < base, u uniform in [0, 1), up to the first that fails; then the target's
//   argmax
// so that the mean of accepted / drafted is `rate` for proposals of K drafts: base solves
// (1 / K) (base + base^2 + ... + base^K) = rate.
#pragma once

#include "verify/verifier.h"

namespace foretoken::verify {

// rate in [0, 1]; 0 gives 0 and 1 gives 1 exactly. k >= 1.
double SyntheticBase(double rate, int k);

class Synthetic final : public Verifier {
 public:
  Synthetic(double rate, int k) : base_(SyntheticBase(rate, k)) {}
  std::string_view name() const override { return "synthetic"; }
  bool Lossless() const override { return false; }
  bool NeedsLaws() const override { return false; }
  bool SharesNoise() const override { return false; }
  round::Verdict Judge(const round::Proposal& proposal, LogitsView logits,
                       sampling::Sampler& sampler, float* scratch) const noexcept override;

 private:
  double base_;
};

}  // namespace foretoken::verify
