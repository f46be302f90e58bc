// SPDX-License-Identifier: Apache-2.0
// cli/sampling_texts.h: turns sampling flags that are text into what the engine needs.
#pragma once

#include "foretoken/engine.h"
#include "settings/generate_flags.h"

namespace foretoken::cli {

// Reads --grammar-file, --json-schema and --json-schema-file into the grammar and turns each
// --dry-sequence-breaker into its token, for the request and the drafter. Errors: a file that
// cannot be read, a schema that makes no grammar, two grammars, a breaker that is more than one
// token.
[[nodiscard]] Status ReadSamplingTexts(const Engine& engine, settings::GenerateSettings& settings);

// Reads them without an engine: breakers, which need its tokens, are an error.
[[nodiscard]] Status ReadSamplingTexts(settings::GenerateSettings& settings);

}  // namespace foretoken::cli
