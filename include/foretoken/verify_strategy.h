// SPDX-License-Identifier: Apache-2.0
// foretoken/verify_strategy.h: the verification strategies, by name.
#pragma once

#include <optional>
#include <string_view>

namespace foretoken {

// How drafts are verified. docs/speculation.md has the rules, and AllStrategies() (catalogue.h)
// lists the strategies of this build. kAuto: greedy at temperature 0. Above it, sample-match, whose
// text depends on no draft, for deterministic drafters and where the draft length follows measured
// time or the load (cost-model, batch-size); otherwise residual. kGreedy, kResidual, kSampleMatch,
// kTargetProbability and kBlock are lossless. The others change the distribution of the text and
// say so in every result.
class VerifyStrategy {
 public:
  static const VerifyStrategy kAuto, kGreedy, kResidual, kSampleMatch, kTypicalAcceptance,
      kTargetProbability, kLogitComparison, kBlock, kRelaxed;

  // kAuto.
  constexpr VerifyStrategy() = default;
  // Any strategy of this build, or "auto". Empty: there is none of this name.
  static std::optional<VerifyStrategy> Named(std::string_view name);

  constexpr const char* name() const { return name_; }
  friend constexpr bool operator==(VerifyStrategy a, VerifyStrategy b) {
    return std::string_view(a.name_) == b.name_;
  }

 private:
  constexpr explicit VerifyStrategy(const char* name) : name_(name) {}
  const char* name_ = "auto";  // of the registry's row, or of a constant above
};

inline constexpr VerifyStrategy VerifyStrategy::kAuto = VerifyStrategy("auto");
inline constexpr VerifyStrategy VerifyStrategy::kGreedy = VerifyStrategy("greedy");
inline constexpr VerifyStrategy VerifyStrategy::kResidual = VerifyStrategy("residual");
inline constexpr VerifyStrategy VerifyStrategy::kSampleMatch = VerifyStrategy("sample-match");
inline constexpr VerifyStrategy VerifyStrategy::kTypicalAcceptance =
    VerifyStrategy("typical-acceptance");
inline constexpr VerifyStrategy VerifyStrategy::kTargetProbability =
    VerifyStrategy("target-probability");
inline constexpr VerifyStrategy VerifyStrategy::kLogitComparison =
    VerifyStrategy("logit-comparison");
inline constexpr VerifyStrategy VerifyStrategy::kBlock = VerifyStrategy("block");
inline constexpr VerifyStrategy VerifyStrategy::kRelaxed = VerifyStrategy("relaxed");

inline const char* Name(VerifyStrategy strategy) {  // "auto", "typical-acceptance"
  return strategy.name();
}

}  // namespace foretoken
