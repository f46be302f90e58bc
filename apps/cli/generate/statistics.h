// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/generate/generation.h"

namespace foretoken::cli {

// One line before the text: what drafts, and what verifies; greedy: at temperature 0.
std::string StartLine(const EngineSummary& engine, bool greedy);

// What follows the text: one line, or all statistics; after a comparison one more line.
std::string Statistics(const Generation& generation, bool all);

}  // namespace foretoken::cli
