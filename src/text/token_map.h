// SPDX-License-Identifier: Apache-2.0
// text/token_map.h: makes the map between the vocabularies of a target and of a draft model.
#pragma once

#include "foretoken/tools/model_file.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::text {

TokenMap MapTokens(const Tokenizer& target, const Tokenizer& draft);

}  // namespace foretoken::text
