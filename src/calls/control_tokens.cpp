// SPDX-License-Identifier: Apache-2.0
#include "calls/control_tokens.h"

#include <fmt/format.h>

#include "base/control_text.h"
#include "calls/answer_grammar.h"

namespace foretoken::calls {

template <typename Text, typename Control>
void ControlTokens::Divide(std::string_view mark, const Text& text, const Control& control) const {
  std::size_t begin = 0;  // of the text that is no control token
  for (std::size_t i = 0; i < mark.size();) {
    std::size_t length = mark.size() - i;
    auto found = tokens_.end();
    for (; length > 0 && found == tokens_.end(); --length)
      found = tokens_.find(mark.substr(i, length));
    if (found == tokens_.end()) {
      ++i;
      continue;
    }
    if (i > begin) text(mark.substr(begin, i - begin));
    control(found->first, found->second);
    begin = i += found->first.size();
  }
  if (begin < mark.size()) text(mark.substr(begin));
}

std::string ControlTokens::InText(std::string_view mark) const {
  std::string out;
  Divide(
      mark, [&](std::string_view text) { out += text; },
      [&](const std::string& name, std::int32_t) { out += ControlText(name); });
  return out;
}

std::string ControlTokens::InGrammar(std::string_view mark) const {
  std::string out;
  const auto add = [&](const std::string& item) { out += (out.empty() ? "" : " ") + item; };
  Divide(
      mark, [&](std::string_view text) { add(Quoted(text)); },
      [&](const std::string&, std::int32_t token) { add(fmt::format("<[{}]>", token)); });
  return out.empty() ? "\"\"" : out;
}

}  // namespace foretoken::calls
