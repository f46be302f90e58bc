// SPDX-License-Identifier: Apache-2.0
#include "text/thinking_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/thought_marks.h"

namespace foretoken::text {
namespace {

// The token that a text is; empty if it is several.
std::optional<Token> TokenOf(const Tokenizer& tokenizer, std::string_view text) {
  const auto tokens = tokenizer.Encode(text, {.add_special = false, .parse_special = true});
  if (tokens.size() != 1 || tokenizer.TokenText(tokens[0]) != text) return std::nullopt;
  return tokens[0];
}

std::optional<ThoughtMarks> MarksOf(const Tokenizer& tokenizer, std::string_view chat_template) {
  for (const ThoughtMarks& marks : kThoughtMarks)
    if (marks.StandIn(chat_template)) return marks;
  for (const ThoughtMarks& marks : kThoughtMarks)
    if (TokenOf(tokenizer, marks.begin) && TokenOf(tokenizer, marks.end)) return marks;
  return std::nullopt;
}

}  // namespace

// Tokens spell printable ASCII as it is, and other bytes each family in its own way.
Result<ThinkingMarks::Mark> ThinkingMarks::MarkOf(const Tokenizer& tokenizer,
                                                  std::string_view text) {
  Mark mark;
  mark.text = text;
  if (const auto token = TokenOf(tokenizer, text)) mark.token = *token;
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (text.size() > kMostMarkBytes || (mark.token == kNoToken && !plain))
    return InvalidArgument(
        fmt::format("'{}' is no token of the model's, and not 1 to {} printable ASCII characters "
                    "without spaces; give such a text",
                    Shown(text), kMostMarkBytes));
  mark.borders.resize(text.size());
  for (std::size_t i = 1, n = 0; i < text.size(); ++i) {
    while (n > 0 && text[i] != text[n]) n = mark.borders[n - 1];
    mark.borders[i] = n += text[i] == text[n];
  }
  return mark;
}

Result<ThinkingMarks> ThinkingMarks::Find(const Tokenizer& tokenizer,
                                          std::string_view chat_template, std::string_view begin,
                                          std::string_view end) {
  if (begin.empty() != end.empty())
    return InvalidArgument(
        "thinking_begin, thinking_end: one of them is given; give both, or none");
  if (begin.empty()) {
    const auto known = MarksOf(tokenizer, chat_template);
    if (!known)
      return InvalidArgument(
          "use_relaxed_acceptance_for_thinking: neither the model's chat template nor its "
          "vocabulary tells where it thinks; give thinking_begin and thinking_end, or leave it "
          "out");
    begin = known->begin, end = known->end;
  }
  auto first = MarkOf(tokenizer, begin), second = MarkOf(tokenizer, end);
  if (!first) return Fail(std::move(first).error().In("thinking_begin"));
  if (!second) return Fail(std::move(second).error().In("thinking_end"));
  return ThinkingMarks(tokenizer, *std::move(first), *std::move(second));
}

void ThinkingMarks::Follow(Token token, ThinkingPlace& place) const noexcept {
  const auto awaited = [&]() -> const Mark& { return place.thinks ? end_ : begin_; };
  const auto pass_mark = [&] { place = {.thinks = !place.thinks}; };
  if (awaited().token != kNoToken) {
    if (token == awaited().token) pass_mark();
    return;
  }
  for (const char c : tokenizer_->TokenText(token)) {
    const Mark& mark = awaited();
    if (mark.token != kNoToken) return;  // the first mark ended in this token's text
    std::size_t& n = place.matched;
    while (n > 0 && c != mark.text[n]) n = mark.borders[n - 1];
    n += c == mark.text[n];
    if (n == mark.text.size()) pass_mark();
  }
}

}  // namespace foretoken::text
