// SPDX-License-Identifier: Apache-2.0
// calls/marked_text.h: finds a mark in a text that comes in pieces.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken::calls {

inline bool IsSpace(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

// Finds the first occurrence of a mark. What may belong to it, and white space before it, waits.
class MarkFinder {
 public:
  explicit MarkFinder(std::string mark);

  // Reads the next character. True: the mark has ended; then waiting() is the white space that stood
  // before it. Otherwise the text that has become certain is added to `text`.
  bool Read(char c, std::string& text);
  // What waits, which is text if nothing follows; begins anew.
  std::string Take();
  const std::string& mark() const { return mark_; }

 private:
  std::string mark_;
  std::vector<std::size_t> borders_;  // [n]: the longest proper beginning of the first n + 1
                                      // characters that also ends them
  std::size_t matched_ = 0;
  std::string spaces_;  // before the part of the mark that has been matched
};

// Waits for the mark behind a call, before which white space may stand; anything else is text.
class ClosingMark {
 public:
  explicit ClosingMark(std::string mark) : mark_(std::move(mark)) {}

  // Reads the next character. Nothing: the mark may still come. "": it came. Otherwise the text that came in
  // its place. Behind both it begins anew.
  std::optional<std::string> Read(char c);
  // What waits, which is text if nothing follows; begins anew.
  std::string Take();
  bool empty() const { return mark_.empty(); }

 private:
  std::string mark_, waiting_;
  std::size_t matched_ = 0;
};

}  // namespace foretoken::calls
