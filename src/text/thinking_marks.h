// SPDX-License-Identifier: Apache-2.0
// text/thinking_marks.h: the texts between which a model thinks before it answers, for example
// <think> and </think>.
//
// A part that thinks begins behind the first mark and ends with the second one. A mark that is one
// token of the vocabulary is that token, so text that merely spells it is no mark. Any other mark is
// looked for in the tokens' texts, however they divide it.
//
// Immutable; any thread may use it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "foretoken/result.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::text {

inline constexpr std::size_t kMostMarkBytes = 64;

// The end of a text, as far as marks are concerned. The default: nothing was read yet.
struct ThinkingPlace {
  bool thinks = false;      // the next token belongs to a part that thinks
  std::size_t matched = 0;  // bytes of the mark that is awaited, at the text's end
};

class ThinkingMarks {
 public:
  // Two empty texts: the marks of `chat_template`, or, if it has none, two tokens of the vocabulary,
  // among the marks that models are known to write. Errors: kInvalidArgument (there are none, a
  // single one is given, or one that cannot be looked for). The tokenizer must outlive the marks.
  [[nodiscard]] static Result<ThinkingMarks> Find(const Tokenizer& tokenizer,
                                                  std::string_view chat_template,
                                                  std::string_view begin, std::string_view end);

  // Moves a place behind the next token. Takes time in proportion to the token's text.
  void Follow(Token token, ThinkingPlace& place) const noexcept;

  const std::string& begin() const noexcept { return begin_.text; }
  const std::string& end() const noexcept { return end_.text; }

 private:
  struct Mark {
    std::string text;
    Token token = kNoToken;  // it is this one; kNoToken: it is several
    std::vector<std::size_t>
        borders;  // [n]: the longest proper prefix of the first n + 1 bytes that
                  // is a suffix of them, too
  };

  ThinkingMarks(const Tokenizer& tokenizer, Mark begin, Mark end)
      : tokenizer_(&tokenizer), begin_(std::move(begin)), end_(std::move(end)) {}
  static Result<Mark> MarkOf(const Tokenizer& tokenizer, std::string_view text);

  const Tokenizer* tokenizer_;
  Mark begin_, end_;
};

}  // namespace foretoken::text
