// SPDX-License-Identifier: Apache-2.0
// engine/requests/verifiers.h: the verifiers of an engine. Fixed once it is open.
#pragma once

#include <memory>

#include "verify/rules.h"
#include "verify/verifier.h"

namespace foretoken::engine {

struct Verifiers {
  verify::Rules rules;                          // one for each strategy
  std::unique_ptr<verify::Verifier> own;        // the program's, in their place; null: none
  std::unique_ptr<verify::Verifier> synthetic;  // for benchmarks, before all others; null: none

  explicit Verifiers(const SpeculativeOptions& options) : rules(options) {}
  const verify::Verifier& Of(VerifyStrategy strategy) const { return rules.Of(strategy); }
  // One verifier serves every request.
  bool one_for_all() const { return synthetic != nullptr || own != nullptr; }
};

}  // namespace foretoken::engine
