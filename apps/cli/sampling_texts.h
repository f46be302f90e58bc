// SPDX-License-Identifier: Apache-2.0
// cli/sampling_texts.h: what flags of sampling give as text, as the engine takes it.
#pragma once

#include "foretoken/engine.h"
#include "settings/generate_flags.h"

namespace foretoken::cli {

// Reads --grammar-file, --json-schema and --json-schema-file into the grammar and turns each
// --dry-sequence-breaker into its token, in the request's sampling and the drafter's. Errors: a
// file that cannot be read, a schema that makes no grammar, a grammar given twice, a breaker that
// is more than one token.
[[nodiscard]] Status ReadSamplingTexts(const Engine& engine, settings::GenerateSettings& settings);

// The same before there is an engine, whose tokens breakers need: they are an error.
[[nodiscard]] Status ReadSamplingTexts(settings::GenerateSettings& settings);

}  // namespace foretoken::cli
