// SPDX-License-Identifier: Apache-2.0
// engine/lookahead.h: how many tokens a sequence drafts in its next round. One controller for each
// running request; it changes the speed, never the text.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "engine/round_costs.h"
#include "engine/survival.h"

namespace foretoken::engine {

struct RoundOutcome {
  int drafted = 0, accepted = 0;
  double us = 0;  // of the whole round
};

class Lookahead {
 public:
  virtual ~Lookahead() = default;

  // Drafts to ask for, at least 0. The engine takes fewer where the context or the request ends.
  // others: sequences that decode in the same pass.
  virtual int Next(int others) noexcept = 0;

  // A decoding round of the sequence has ended.
  virtual void Observe(const RoundOutcome& round) noexcept = 0;
};

struct LookaheadSettings {
  std::string_view name;  // one of LookaheadNames()
  int ceiling = 0;        // no more drafts than this, ever
  // For cost-model: what the engine knows of rounds and of earlier requests. They outlive it.
  const RoundCosts* costs = nullptr;
  Survival* shared = nullptr;
};

// fixed      always the ceiling
// ewma       AdaptiveLookahead's defaults, within the ceiling
// heuristic  two more after a draft that was accepted whole, else one less; at least 1; it starts
//            with the ceiling's half
// cost-model the number of drafts, 0 included, that promises the most tokens per second
// Null where the ceiling is 0. REQUIRES: one of LookaheadNames().
std::unique_ptr<Lookahead> MakeLookahead(const LookaheadSettings& settings);
std::span<const std::string_view> LookaheadNames();
// The ceiling where the user names none.
int DefaultCeiling(std::string_view name);

}  // namespace foretoken::engine
