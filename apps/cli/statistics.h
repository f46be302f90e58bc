// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/generation.h"

namespace foretoken::cli {

// One line before the text: who drafts and who judges.
std::string StartLine(const EngineSummary& engine);

// The block of a few lines that follows the text.
std::string Statistics(const Generation& generation);

}  // namespace foretoken::cli
