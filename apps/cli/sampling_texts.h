// SPDX-License-Identifier: Apache-2.0
// cli/sampling_texts.h: what flags of sampling give as text, as the engine takes it.
#pragma once

#include "foretoken/engine.h"
#include "settings/generate_flags.h"

namespace foretoken::cli {

// Reads --grammar-file and turns each --dry-sequence-breaker into its token, in the request's
// sampling and the drafter's. Errors: a file that cannot be read, a grammar given twice, a breaker
// that is more than one token.
[[nodiscard]] Status ReadSamplingTexts(const Engine& engine, settings::GenerateSettings& settings);

}  // namespace foretoken::cli
