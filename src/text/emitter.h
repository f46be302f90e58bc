// SPDX-License-Identifier: Apache-2.0
// text/emitter.h: turns the committed tokens of a request into text and finds the request's end.
//
// It checks every token in order, so the earliest end wins, wherever it falls in a round. Text that
// may be the beginning of a stop string or of a character is held back until that is known.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "foretoken/request.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/utf8_stream.h"

namespace foretoken::text {

class Emitter {
 public:
  // end_tokens: all tokens that end this request. limit: the request ends with its limit-th token.
  // control: how control tokens stand in the text. The tokenizer must outlive the emitter.
  Emitter(const Tokenizer& tokenizer, std::span<const std::string> stops,
          std::span<const Token> end_tokens, int limit, ControlTexts control = ControlTexts::kNone);

  // Takes the next committed token and appends to `shown` the text that may be shown now. Returns a
  // reason if the request ends with this token.
  std::optional<FinishReason> Push(Token token, std::string& shown);
  // Goes on behind tokens whose text was shown elsewhere. REQUIRES: nothing was pushed before, and the
  // text does not end with one of them.
  void GoOnBehind(std::span<const Token> tokens);
  // Appends the text that was held back. For a request that ends for a reason from outside.
  void Flush(std::string& shown);

  // Forgets it, where the text goes on elsewhere.
  void DropHeldBack() noexcept { text_.resize(released_); }

  const std::string& text() const { return text_; }  // with the part that is held back
  // Without what was shown elsewhere. REQUIRES: no later call.
  std::string TakeText() noexcept {
    text_.erase(0, shown_elsewhere_);
    return std::move(text_);
  }
  int n_tokens() const { return n_tokens_; }
  int tokens_left() const { return limit_ - n_tokens_; }

 private:
  bool IsEnd(Token token) const;
  void AddText(Token token);
  std::size_t FindStop(std::size_t searched) const;
  std::size_t HeldBack() const;
  void Release(std::size_t end, std::string& shown);

  const Tokenizer& tokenizer_;
  std::vector<std::string> stops_;
  std::vector<Token> end_tokens_;
  std::size_t longest_stop_ = 0;
  int limit_ = 0, n_tokens_ = 0;
  ControlTexts control_ = ControlTexts::kNone;
  Utf8Stream stream_;
  std::string text_;
  std::size_t released_ = 0;
  std::size_t shown_elsewhere_ = 0;
};

}  // namespace foretoken::text
