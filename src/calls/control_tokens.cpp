// SPDX-License-Identifier: Apache-2.0
#include "calls/control_tokens.h"

#include <fmt/format.h>

#include "base/control_text.h"
#include "calls/answer_grammar.h"

namespace foretoken::calls {

std::string ControlTokens::InText(std::string_view mark) const {
  return Has(mark) ? ControlText(mark) : std::string(mark);
}

std::string ControlTokens::InGrammar(std::string_view mark) const {
  const auto found = tokens_.find(mark);
  return found == tokens_.end() ? Quoted(mark) : fmt::format("<[{}]>", found->second);
}

}  // namespace foretoken::calls
