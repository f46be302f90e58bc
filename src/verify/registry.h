// SPDX-License-Identifier: Apache-2.0
// verify/registry.h: the table of verification strategies.
//
// A strategy is one file in strategies/ and one row in registry.cpp. Its file ends with its
// VerifierSpec. Names, checks, help texts, documents and the tests of every strategy are made from
// the table.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "foretoken/catalogue.h"
#include "foretoken/options.h"
#include "foretoken/result.h"
#include "foretoken/verifier.h"
#include "verify/verifier.h"

namespace foretoken::verify {

struct VerifierSpec {
  StrategyInfo info;
  // Each strategy reads its own settings.
  std::unique_ptr<Verifier> (*make)(const SpeculativeOptions& settings);
};

// What its row says of a strategy.
class ListedVerifier : public Verifier {
 public:
  explicit ListedVerifier(const VerifierSpec& spec) : info_(spec.info) {}
  std::string_view name() const final { return info_.name; }
  bool Lossless() const override { return info_.lossless; }
  bool NeedsDistributions() const final { return info_.needs_q; }
  bool NeedsLogits() const final { return info_.needs_logits; }
  bool SharesNoise() const final { return info_.same_text; }
  // Without drafts each strategy takes the target's own token, and at temperature 0 each is `greedy`.
  RowUse Use(int n_drafts, bool greedy) const override {
    return n_drafts == 0 || greedy ? RowUse::kSample : RowUse::kWhole;
  }

 private:
  const StrategyInfo& info_;
};

// For VerifierSpec::make.
template <typename T>
std::unique_ptr<Verifier> Make([[maybe_unused]] const SpeculativeOptions& settings) {
  if constexpr (std::is_constructible_v<T, const SpeculativeOptions&>)
    return std::make_unique<T>(settings);
  else
    return std::make_unique<T>();
}

// In the order of AllStrategies().
std::span<const VerifierSpec* const> Strategies();

}  // namespace foretoken::verify
