// SPDX-License-Identifier: Apache-2.0
// loader/drafts/caller_parts.h: checks the drafter and the verifier that a program brings to an engine
// (EngineOptions::drafter, EngineOptions::verifier).
#pragma once

#include <string>

#include "foretoken/options.h"
#include "foretoken/result.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::loader {

// Takes the name of the program's drafter out of a list of methods, because SpeculativeConfig knows
// only foretoken's. Returns whether the list named it; an empty list does. Errors: kInvalidArgument
// (a bad name, or one of foretoken's).
[[nodiscard]] Result<bool> TakeOwnMethod(const EngineOptions& options, std::string& methods);

// Errors: kInvalidArgument (a bad name; a strategy that is named too).
[[nodiscard]] Status CheckOwnVerifier(const EngineOptions& options);

// Whether the program's drafter can serve so many requests of this target. Errors: kMismatch.
[[nodiscard]] Status CheckOwnDrafter(const EngineOptions& options, const text::Tokenizer& target);

}  // namespace foretoken::loader
