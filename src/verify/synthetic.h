// SPDX-License-Identifier: Apache-2.0
// verify/synthetic.h: synthetic acceptance for benchmarks. Drafts are accepted at random with a
// given rate, to see what speculation would gain at that rate. The text is not the target's.
//
//   accept d_i iff u < base(m), u uniform in [0, 1), up to the first that fails; then the target's
//   argmax
//
// m is the number of drafts of this round, and base(m) solves (1 / m) (base + ... + base^m) = rate.
// So the expected share of accepted drafts is `rate` in every round, for every draft length, and
// accepted / drafted tends to `rate` over all rounds. With `each` base(m) is `rate` itself: drafts
// of one quality, to compare draft lengths and controllers.
#pragma once

#include <array>

#include "foretoken/drafts.h"
#include "verify/verifier.h"

namespace foretoken::verify {

// rate in [0, 1]; 0 gives 0 and 1 gives 1 exactly. k >= 1.
double SyntheticBase(double rate, int k);

class Synthetic final : public Verifier {
 public:
  explicit Synthetic(double rate, bool each = false);
  std::string_view name() const override { return "synthetic"; }
  bool Lossless() const override { return false; }
  bool NeedsDistributions() const override { return false; }
  bool SharesNoise() const override { return false; }
  RowUse Use(int, bool) const override { return RowUse::kBest; }
  round::Verdict Verify(const round::Proposal& proposal, LogitsView logits,
                        sampling::Sampler& sampler, float* scratch) const noexcept override;

 private:
  // [m]: for a round with m drafts.
  std::array<double, kMaxDraft + 1> bases_;
};

}  // namespace foretoken::verify
