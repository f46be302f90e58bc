// SPDX-License-Identifier: Apache-2.0
// calls/control_tokens.h: the control tokens of a vocabulary, which may be marks of a form.
//
// In an answer that is read for calls, a control token stands as base/control_text.h says. A form
// writes each of its marks by InText for its reader and by InGrammar for its grammar, so it need not
// know which marks are control tokens in the vocabulary at hand.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace foretoken::calls {

class ControlTokens {
 public:
  // Where tokens share a text, the first one counts.
  void Add(std::string text, std::int32_t token) { tokens_.emplace(std::move(text), token); }
  bool Has(std::string_view mark) const { return tokens_.find(mark) != tokens_.end(); }

  // The mark as it stands in an answer: its text, in which control tokens are told apart.
  std::string InText(std::string_view mark) const;
  // The mark as items of GBNF: literals and control tokens. REQUIRES: it is UTF-8.
  std::string InGrammar(std::string_view mark) const;

 private:
  // Calls text(a part) and control(name, token) for the parts of a mark.
  template <typename Text, typename Control>
  void Divide(std::string_view mark, const Text& text, const Control& control) const;

  std::map<std::string, std::int32_t, std::less<>> tokens_;
};

}  // namespace foretoken::calls
