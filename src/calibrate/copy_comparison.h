// SPDX-License-Identifier: Apache-2.0
// calibrate/copy_comparison.h: how often a copy of the target in fewer bits says what the target says, and what
// its passes cost, in short texts of the target's own making.
//
// Uses sequence 0 of a cache without running sequences, and leaves the cache empty.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "calibrate/subject.h"

namespace foretoken::calibrate {

struct CopyComparison {
  int agreed = 0, positions = 0;  // positions at which both have the same most probable token
  double cost = 0;                // of a pass of one row, in such passes of the target
};

// The target continues each of the beginnings by its most probable tokens, 24 at most; an end token ends a text.
// Before each pass of the target the copy computes the same row in the target's cache, as it does for its first
// draft. Its reduced output is used, if it has one. Nothing where `go_on`, which is told the done share, stops
// it, or no position was compared. REQUIRES: beginnings are not empty; the copy reads the subject's cache.
std::optional<CopyComparison> CompareCopy(const Subject& subject, model::Runner& copy,
                                          std::span<const std::vector<Token>> beginnings,
                                          std::span<const Token> end_tokens,
                                          const std::function<bool(double)>& go_on);

}  // namespace foretoken::calibrate
