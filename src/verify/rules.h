// SPDX-License-Identifier: Apache-2.0
// verify/rules.h: the verifiers of all strategies, with their settings from the options.
#pragma once

#include <memory>
#include <vector>

#include "foretoken/options.h"
#include "verify/verifier.h"

namespace foretoken::verify {

class Rules {
 public:
  // REQUIRES: checked by SpeculativeConfig.
  explicit Rules(const SpeculativeOptions& options);

  // REQUIRES: not kAuto.
  const Verifier& Of(VerifyStrategy strategy) const;

  // In the order of the registry.
  auto begin() const { return verifiers_.begin(); }
  auto end() const { return verifiers_.end(); }

 private:
  std::vector<std::unique_ptr<Verifier>> verifiers_;
};

}  // namespace foretoken::verify
