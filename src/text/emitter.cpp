// SPDX-License-Identifier: Apache-2.0
#include "text/emitter.h"

#include <algorithm>

#include "base/control_text.h"

namespace foretoken::text {

Emitter::Emitter(const Tokenizer& tokenizer, std::span<const std::string> stops,
                 std::span<const Token> end_tokens, int limit, ControlTexts control)
    : tokenizer_(tokenizer),
      stops_(stops.begin(), stops.end()),
      end_tokens_(end_tokens.begin(), end_tokens.end()),
      limit_(limit),
      control_(control) {
  for (const auto& stop : stops_) longest_stop_ = std::max(longest_stop_, stop.size());
  text_.reserve(static_cast<std::size_t>(std::max(0, limit_)) * 6);
}

bool Emitter::IsEnd(Token token) const {
  return std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
}

void Emitter::AddText(Token token) {
  if (control_ == ControlTexts::kNone || !tokenizer_.IsControl(token)) {
    text_ += stream_.Push(tokenizer_.Piece(token));
    return;
  }
  text_ += stream_.Finish();  // a character does not go on behind a control token
  const std::string name = tokenizer_.Piece(token, true);
  text_ += control_ == ControlTexts::kMarked ? ControlText(name) : name;
}

std::optional<FinishReason> Emitter::Push(Token token, std::string& shown) {
  ++n_tokens_;
  if (IsEnd(token)) {
    Flush(shown);
    return FinishReason::kStop;
  }
  // A stop string may begin in text that was held back, never in text that was released.
  const std::size_t searched = text_.size() - std::min(text_.size(), longest_stop_);
  AddText(token);
  if (const std::size_t at = FindStop(std::max(searched, released_)); at != std::string::npos) {
    text_.resize(at);
    Release(at, shown);
    return FinishReason::kStop;
  }
  if (n_tokens_ >= limit_) {
    Flush(shown);
    return FinishReason::kLength;
  }
  Release(text_.size() - HeldBack(), shown);
  return std::nullopt;
}

void Emitter::GoOnBehind(std::span<const Token> tokens) {
  std::string shown;
  for (const Token token : tokens) Push(token, shown);
  shown_elsewhere_ = released_;
}

void Emitter::Flush(std::string& shown) {
  text_ += stream_.Finish();
  Release(text_.size(), shown);
}

void Emitter::Release(std::size_t end, std::string& shown) {
  if (end <= released_) return;
  shown.append(text_, released_, end - released_);
  released_ = end;
}

std::size_t Emitter::FindStop(std::size_t searched) const {
  std::size_t first = std::string::npos;
  for (const auto& stop : stops_)
    if (!stop.empty()) first = std::min(first, text_.find(stop, searched));
  return first;
}

// The longest end of the text that a stop string could begin with.
std::size_t Emitter::HeldBack() const {
  std::size_t held = 0;
  for (const auto& stop : stops_)
    for (std::size_t n = std::min(stop.empty() ? 0 : stop.size() - 1, text_.size() - released_);
         n > held; --n)
      if (text_.compare(text_.size() - n, n, stop, 0, n) == 0) held = n;
  return held;
}

}  // namespace foretoken::text
