// SPDX-License-Identifier: Apache-2.0
#include "verify/rules.h"

#include <algorithm>

#include "base/check.h"
#include "verify/registry.h"

namespace foretoken::verify {

Rules::Rules(const SpeculativeOptions& options) {
  for (const VerifierSpec* const row : Strategies()) verifiers_.push_back(row->make(options));
}

const Verifier& Rules::Of(VerifyStrategy strategy) const {
  const auto verifier = std::find_if(verifiers_.begin(), verifiers_.end(), [&](const auto& row) {
    return row->name() == strategy.name();
  });
  FORETOKEN_CHECK(verifier != verifiers_.end());
  return **verifier;
}

}  // namespace foretoken::verify
