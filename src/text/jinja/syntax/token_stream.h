// SPDX-License-Identifier: Apache-2.0
// text/jinja/syntax/token_stream.h: the tokens of a template, read one after the other.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "foretoken/result.h"
#include "text/jinja/syntax/token.h"

namespace foretoken::text::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& Current() const { return tokens_[at_]; }
  const Token& Ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  int line() const { return Current().line; }
  // The current token, and moves to the next one. The end is never left.
  const Token& Take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }

  bool IsAt(TokenKind kind) const { return Current().kind == kind; }
  bool IsAtSign(std::string_view sign) const { return Current().IsSign(sign); }
  bool IsAtName(std::string_view name) const { return Current().IsName(name); }
  bool SkipSign(std::string_view sign) { return IsAtSign(sign) && (Take(), true); }
  bool SkipName(std::string_view name) { return IsAtName(name) && (Take(), true); }

  [[nodiscard]] Status ExpectSign(std::string_view sign);
  [[nodiscard]] Status ExpectName(std::string_view name);
  [[nodiscard]] Status Expect(TokenKind kind);
  [[nodiscard]] Result<std::string> TakeName();
  // "line N: " and the reason.
  tl::unexpected<Error> Bad(std::string why) const;
  tl::unexpected<Error> Unexpected(std::string_view wanted) const;
  // kTooLarge: `what` are so deep inside each other that the thread's stack is used up.
  tl::unexpected<Error> NoStack(std::string_view what) const;

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace foretoken::text::jinja
