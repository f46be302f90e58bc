// SPDX-License-Identifier: Apache-2.0
// calls/row_text.h: a text of a form's row, as templates write it.
//
// Marks in it stand in <> or [], and each may be a control token.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "calls/control_tokens.h"

namespace foretoken::calls {

// The marks of a row's text, and what stands between them.
std::vector<std::string_view> RowPieces(std::string_view text);

// A row's text as a part of a rule, with a space before it; `between` stands before each piece but
// the first.
std::string RowRule(std::string_view text, std::string_view between, const ControlTokens& control);

std::string_view WithoutOuterSpaces(std::string_view text);

// Compares what comes with a row's text, whose pieces may have any white space before them.
class RowReader {
 public:
  enum class State { kOpen, kRead, kOther };

  RowReader(std::string_view text, const ControlTokens& control);

  bool empty() const { return pieces_.empty(); }
  void Begin() { n_ = at_ = 0, state_ = State::kOpen; }
  // Reads the next character. Once it is not kOpen, it stays what it is.
  State Read(char c);

 private:
  std::vector<std::string> pieces_;
  std::size_t n_ = 0, at_ = 0;  // pieces that have come, and characters of the next one
  State state_ = State::kOpen;
};

}  // namespace foretoken::calls
