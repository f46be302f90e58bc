// SPDX-License-Identifier: Apache-2.0
// calls/quoted_text.h: turns a quoted text of Python, or of JSON, into the inside of a JSON string.
//
// Models often leave quotes in a text as they are. A quote therefore ends a text only if one of
// ,)]}:= or the end of the call follows, perhaps after white space.
#pragma once

#include <string>

namespace foretoken::calls {

class QuotedText {
 public:
  enum class State {
    kOpen,
    kEnded,       // the character is the last one
    kEndedBefore  // the character does not belong to the text
  };

  // quote: that opened the text. raw: a backslash stands for itself.
  QuotedText(char quote, bool raw) : quote_(quote), raw_(raw) {}
  QuotedText() : QuotedText('"', false) {}

  // Reads the next character behind the first quote; adds to `inside` what is certain by now.
  State Read(char c, std::string& inside);

 private:
  // kQuoted: a quote came, which may be the last one.
  enum class At { kText, kQuoted, kBackslash, kDigits };

  State ReadText(char c, std::string& inside);
  State ReadQuoted(char c, std::string& inside);
  void ReadEscape(char c, std::string& inside);
  void BeginDigits(int base, int least, int most, std::string written);
  State ReadDigits(char c, std::string& inside);
  void AddText(const std::string& text, std::string& inside);
  void AddCode(char32_t code, std::string& inside);

  char quote_;
  bool raw_;
  At at_ = At::kText;
  bool triple_ = false, empty_ = true;
  int n_quotes_ = 0;     // of the three that may end a text
  std::string waiting_;  // white space behind a quote
  std::string escape_;   // a number's escape as it was written
  int base_ = 16, least_ = 0, most_ = 0, n_digits_ = 0;
  char32_t code_ = 0, high_ = 0;  // high_: the first half of a pair of surrogates
};

}  // namespace foretoken::calls
