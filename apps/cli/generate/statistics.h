// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/generate/generation.h"

namespace foretoken::cli {

// One line before the text: what drafts, and what verifies. use: of the request; greedy: it is at
// temperature 0.
std::string StartLine(const EngineSummary& engine, const SpeculativeUse& use, bool greedy);

// What follows the text: one line, or all statistics; after a comparison one more line.
std::string Statistics(const Generation& generation, bool all);

}  // namespace foretoken::cli
