// SPDX-License-Identifier: Apache-2.0
#include "calls/row_text.h"

#include <fmt/format.h>

#include "calls/marked_text.h"

namespace foretoken::calls {

std::vector<std::string_view> RowPieces(std::string_view text) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    std::size_t size = text.find_first_of("<[");
    if (size == 0) size = text.find(text.front() == '<' ? '>' : ']') + 1;
    pieces.push_back(text.substr(0, size));
    text.remove_prefix(pieces.back().size());
  }
  return pieces;
}

std::string RowRule(std::string_view text, std::string_view between, const ControlTokens& control) {
  std::string rule;
  for (const std::string_view piece : RowPieces(text))
    rule += fmt::format("{} {}", rule.empty() ? "" : between, control.InGrammar(piece));
  return rule;
}

std::string_view WithoutOuterSpaces(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

RowReader::RowReader(std::string_view text, const ControlTokens& control) {
  for (const std::string_view piece : RowPieces(text))
    pieces_.push_back(control.InText(WithoutOuterSpaces(piece)));
}

RowReader::State RowReader::Read(char c) {
  if (state_ != State::kOpen || (at_ == 0 && IsSpace(c))) return state_;
  if (n_ == pieces_.size() || c != pieces_[n_][at_]) return state_ = State::kOther;
  if (++at_ == pieces_[n_].size()) ++n_, at_ = 0;
  if (n_ == pieces_.size()) state_ = State::kRead;
  return state_;
}

}  // namespace foretoken::calls
