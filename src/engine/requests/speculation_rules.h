// SPDX-License-Identifier: Apache-2.0
// engine/requests/speculation_rules.h: which drafters and which verifier a request has, and whether
// they fit each other. They follow from the engine's settings and the request's own.
//
// Any thread: all of it reads what does not change once an engine is open.
#pragma once

#include <string>
#include <vector>

#include "foretoken/options.h"
#include "foretoken/request.h"
#include "loader/drafts/drafter_set.h"
#include "verify/verifiers.h"

namespace foretoken::engine {

class SpeculationRules {
 public:
  // Both references must outlive it.
  SpeculationRules(const EngineOptions& options, const loader::DrafterSet& drafters,
                   verify::Verifiers verifiers)
      : options_(options), drafters_(drafters), verifiers_(std::move(verifiers)) {}

  // Errors: kInvalidArgument (a method, strategy or draft length that does not fit).
  [[nodiscard]] Status Check(const Request& request) const;

  // What follows REQUIRES a request that Check accepts.
  std::vector<int> DraftersFor(const Request& request) const;
  const verify::Verifier& VerifierFor(const Request& request) const;
  // The verifier of drafts in parts that think; null: VerifierFor verifies these, too.
  const verify::Verifier* ThinkingVerifierFor(const Request& request) const;
  // The first token is chosen by the target alone.
  bool FirstTokenIsTargets(const Request& request) const {
    return request.speculative.first_target.value_or(options_.speculative.first_target);
  }
  // The fewest drafts of a round that has any.
  int LeastDraftsOf(const Request& request) const;
  // Other drafts would give another text, of the same distribution where the strategy is lossless.
  bool FollowsDrafts(const Request& request, const verify::Verifier& verifier) const;
  // The result's distribution is that of plain decoding.
  bool Lossless(const verify::Verifier& verifier, bool drafts) const;
  // The draft-length controller of a request; "" where it drafts nothing.
  std::string ControllerOf(bool drafts, bool follows_drafts) const;

  const verify::Verifier& Of(VerifyStrategy strategy) const { return verifiers_.Of(strategy); }
  const verify::Verifiers& verifiers() const { return verifiers_; }

  // What the request sets and nothing reads, as lines "key: why".
  std::vector<std::string> NoticesOf(const Request& request) const;
  SpeculativeUse UseFor(const Request& request) const;
  SpeculativeUse UseForAny() const;
  // The strategies that some drafter of the engine fits.
  std::vector<std::string> StrategyNames() const;

 private:
  VerifyStrategy StrategyOf(const Request& request) const {
    return request.speculative.strategy.value_or(options_.speculative.strategy);
  }
  const verify::Verifier* AskedFor(const Request& request) const;
  [[nodiscard]] Status CheckGivenDrafts(const Request& request) const;
  [[nodiscard]] Status CheckLeastDrafts(const Request& request) const;
  [[nodiscard]] Status CheckDrafters(const Request& request) const;
  bool VerifiesDistributions(const Request& request) const;

  const EngineOptions& options_;
  const loader::DrafterSet& drafters_;
  const verify::Verifiers verifiers_;
};

}  // namespace foretoken::engine
