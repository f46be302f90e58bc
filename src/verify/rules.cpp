// SPDX-License-Identifier: Apache-2.0
#include "verify/rules.h"

namespace foretoken::verify {

Rules::Rules(const SpeculativeOptions& o) {
  const verify::VerifierSettings settings = {.acceptance_threshold = o.acceptance_threshold,
                                             .skip_sample_adjustment = o.skip_sample_adjustment,
                                             .typical_epsilon = o.typical_epsilon,
                                             .typical_delta = o.typical_delta,
                                             .relaxed_top_n = o.relaxed_top_n,
                                             .relaxed_delta = o.relaxed_delta};
  for (std::size_t i = 1; i < kCount; ++i)
    verifiers_[i] =
        std::move(*verify::MakeVerifier(Name(static_cast<VerifyStrategy>(i)), settings));
}

}  // namespace foretoken::verify
