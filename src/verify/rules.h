// SPDX-License-Identifier: Apache-2.0
// verify/rules.h: the verifiers of all strategies, with their settings from the options.
#pragma once

#include <array>
#include <memory>

#include "foretoken/options.h"
#include "verify/verifier.h"

namespace foretoken::verify {

class Rules {
 public:
  static constexpr std::size_t kCount = 9;  // strategies, kAuto included

  // REQUIRES: checked by SpeculativeConfig.
  explicit Rules(const SpeculativeOptions& options);

  // REQUIRES: not kAuto.
  const verify::Verifier& Of(VerifyStrategy strategy) const {
    return *verifiers_[static_cast<std::size_t>(strategy)];
  }

 private:
  std::array<std::unique_ptr<verify::Verifier>, kCount> verifiers_;  // by strategy; kAuto: null
};

}  // namespace foretoken::verify
