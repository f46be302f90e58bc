// SPDX-License-Identifier: Apache-2.0
// engine/requests/emitter.h: what leaves a request: committed tokens as text, and where the request ends.
//
// Ends are looked for at every committed token in order, so the earliest wins wherever it falls in
// a round. Text that may be the beginning of a stop string or of a character is held back until it
// is decided.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "foretoken/engine.h"
#include "foretoken/request.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/utf8_stream.h"

namespace foretoken::engine {

class Emitter {
 public:
  // end_tokens: all that end this request. room: how many tokens the context still takes. The
  // tokenizer must outlive the emitter.
  Emitter(const text::Tokenizer& tokenizer, const Request& request,
          std::span<const Token> end_tokens, int room);

  // Takes the next committed token. Appends to `shown` the text that may be shown now. A value: the
  // request ends with this token.
  std::optional<FinishReason> Push(Token token, std::string& shown);
  // The request ends for a reason from outside: gives out what was held back.
  void Flush(std::string& shown);

  const std::string& text() const { return text_; }  // all of it, the held-back part included
  std::string TakeText() noexcept { return std::move(text_); }  // the end
  int n_tokens() const { return n_tokens_; }
  int tokens_left() const { return limit_ - n_tokens_; }

 private:
  bool IsEnd(Token token) const;
  std::size_t FindStop(std::size_t searched) const;
  std::size_t HeldBack() const;
  void Release(std::size_t end, std::string& shown);

  const text::Tokenizer& tokenizer_;
  std::vector<std::string> stops_;
  std::vector<Token> end_tokens_;
  std::size_t longest_stop_ = 0;
  int limit_ = 0, n_tokens_ = 0;
  text::Utf8Stream stream_;
  std::string text_;
  std::size_t released_ = 0;
};

}  // namespace foretoken::engine
