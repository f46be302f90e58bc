// SPDX-License-Identifier: Apache-2.0
// engine/lookahead.h: how many tokens a sequence drafts in its next round. One controller for each
// running request; it changes the speed, never the text.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "foretoken/result.h"

namespace foretoken::engine {

class Lookahead {
 public:
  virtual ~Lookahead() = default;

  // Drafts to ask for, at least 0. The engine takes fewer where the context or the request ends.
  virtual int Next() const noexcept = 0;

  // A round drafted `drafted` tokens (at least one), of which `accepted` were.
  virtual void Observe(int drafted, int accepted) noexcept = 0;
};

struct LookaheadSettings {
  std::string_view name;  // "fixed", "ewma", "heuristic"
  int ceiling = 0;        // no more drafts than this, ever
};

// fixed      always the ceiling
// ewma       AdaptiveLookahead's defaults, within the ceiling
// heuristic  two more after a draft that was accepted whole, else one less; at least 1; it starts
//            with the ceiling's half
// Null where the ceiling is 0. REQUIRES: one of LookaheadNames().
std::unique_ptr<Lookahead> MakeLookahead(const LookaheadSettings& settings);
std::span<const std::string_view> LookaheadNames();
// The ceiling where the user names none.
int DefaultCeiling(std::string_view name);

}  // namespace foretoken::engine
