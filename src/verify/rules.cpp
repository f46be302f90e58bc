// SPDX-License-Identifier: Apache-2.0
#include "verify/rules.h"

#include <algorithm>

#include "base/check.h"
#include "verify/registry.h"

namespace foretoken::verify {

Rules::Rules(const SpeculativeOptions& o) {
  const VerifierSettings settings = {.acceptance_threshold = o.acceptance_threshold,
                                     .skip_sample_adjustment = o.skip_sample_adjustment,
                                     .typical_epsilon = o.typical_epsilon,
                                     .typical_delta = o.typical_delta,
                                     .relaxed_top_n = o.relaxed_top_n,
                                     .relaxed_delta = o.relaxed_delta};
  for (const VerifierSpec* const row : Strategies()) verifiers_.push_back(row->make(settings));
}

const Verifier& Rules::Of(VerifyStrategy strategy) const {
  const auto verifier = std::find_if(verifiers_.begin(), verifiers_.end(), [&](const auto& row) {
    return row->name() == strategy.name();
  });
  FORETOKEN_CHECK(verifier != verifiers_.end());
  return **verifier;
}

}  // namespace foretoken::verify
