// SPDX-License-Identifier: Apache-2.0
#include "calls/marked_text.h"

#include <utility>

namespace foretoken::calls {
namespace {

// More of it is text, whatever follows: white space alone must not grow without an end.
constexpr std::size_t kMostSpaces = 256;

}  // namespace

MarkFinder::MarkFinder(std::string mark) : mark_(std::move(mark)), borders_(mark_.size(), 0) {
  for (std::size_t i = 1, n = 0; i < mark_.size(); ++i) {
    while (n > 0 && mark_[i] != mark_[n]) n = borders_[n - 1];
    borders_[i] = n += mark_[i] == mark_[n] ? 1 : 0;
  }
}

bool MarkFinder::Read(char c, std::string& text) {
  const std::size_t before = matched_;
  while (matched_ > 0 && c != mark_[matched_]) matched_ = borders_[matched_ - 1];
  const bool matches = c == mark_[matched_];
  // What of the earlier beginning is no beginning any more.
  if (const std::size_t dropped = before - matched_; dropped > 0) {
    text += std::exchange(spaces_, {});
    text += mark_.substr(0, dropped);
  }
  if (matches) {
    if (++matched_ < mark_.size()) return false;
    matched_ = 0;
    return true;
  }
  if (IsSpace(c) && spaces_.size() < kMostSpaces) {
    spaces_ += c;
    return false;
  }
  text += std::exchange(spaces_, {});
  text += c;
  return false;
}

std::string MarkFinder::Take() {
  return std::exchange(spaces_, {}) + mark_.substr(0, std::exchange(matched_, 0));
}

std::optional<std::string> ClosingMark::Read(char c) {
  waiting_ += c;
  if (matched_ == 0 && IsSpace(c)) return std::nullopt;
  const bool fits = c == mark_[matched_];
  if (fits && ++matched_ < mark_.size()) return std::nullopt;
  std::string text = Take();
  if (fits) text.clear();
  return text;
}

std::string ClosingMark::Take() {
  matched_ = 0;
  return std::exchange(waiting_, {});
}

}  // namespace foretoken::calls
