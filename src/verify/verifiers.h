// SPDX-License-Identifier: Apache-2.0
// verify/verifiers.h: the verifiers of an engine. Fixed once it is open.
#pragma once

#include <memory>

#include "verify/rules.h"
#include "verify/verifier.h"

namespace foretoken::verify {

struct Verifiers {
  Rules rules;                          // one for each strategy
  std::unique_ptr<Verifier> own;        // the program's, in their place; null: none
  std::unique_ptr<Verifier> synthetic;  // for benchmarks, before all others; null: none

  explicit Verifiers(const SpeculativeOptions& options) : rules(options) {}
  const Verifier& Of(VerifyStrategy strategy) const { return rules.Of(strategy); }
  // One verifier serves every request.
  bool one_for_all() const { return synthetic != nullptr || own != nullptr; }
};

}  // namespace foretoken::verify
