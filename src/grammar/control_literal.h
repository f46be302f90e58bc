// SPDX-License-Identifier: Apache-2.0
// grammar/control_literal.h: a control token as bytes, so that a grammar may name one.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace foretoken::grammar {

// What the vocabulary has as the text of a control token, and a grammar for <[id]>: by its number,
// because several may have one name. No character of a grammar has such bytes.
std::string ControlLiteral(Token token);

// Whether a token's bytes could be part of a control literal; then they may be no text of a
// vocabulary. No valid UTF-8 has them.
bool LooksLikeControl(std::string_view bytes);

// Cuts bytes into tokens: text by `cut`, control literals by their numbers. What there is of a
// literal that does not end gives nothing.
std::vector<Token> CutWithControls(std::string_view bytes,
                                   const std::function<std::vector<Token>(std::string_view)>& cut);

}  // namespace foretoken::grammar
