// SPDX-License-Identifier: Apache-2.0
// text/frequent_tokens.h: the tokens that a drafter's reduced output head keeps.
#pragma once

#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::text {

// n tokens of the vocabulary, ascending (or all of them): first those that end a generation, then
// those of `sample`, the most frequent first, then single ASCII characters, which vocabularies put
// anywhere, then by id, which is the order in which the vocabulary's training added them.
std::vector<Token> FrequentTokens(const Tokenizer& tokenizer, int n, std::string_view sample);

}  // namespace foretoken::text
