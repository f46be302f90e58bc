// SPDX-License-Identifier: Apache-2.0
#include "server/routes/thought_budget.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken::server {
namespace {

using Tokens = std::vector<std::int32_t>;

Tokens TokensOf(const Engine& engine, std::string_view mark) {
  const std::string text(mark);
  if (const auto token = engine.TokenOf(text, true)) return {*token};
  return engine.Tokenize(text, false, true);
}

// Whether a thought has begun and goes on at the end of the answer's text.
bool StillThinks(std::string_view answer, const ThoughtMarks& marks, bool begun) {
  if (begun) return answer.find(marks.end) == answer.npos;
  answer.remove_prefix(std::min(answer.find_first_not_of(" \n"), answer.size()));
  return answer.starts_with(marks.begin) &&
         answer.find(marks.end, marks.begin.size()) == answer.npos;
}

}  // namespace

LogitsProcessor ThoughtBudget(const Engine& engine, const ThoughtMarks& marks, ThoughtPlace place,
                              int budget) {
  const Tokens end = TokensOf(engine, marks.end);
  std::size_t spent = static_cast<std::size_t>(budget);  // tokens of the answer
  if (!place.begun) spent += TokensOf(engine, marks.begin).size();
  return [&engine, marks, place, spent, end](std::span<const std::int32_t> text,
                                             std::span<float> logits) {
    // The mark's tokens have fixed places, so all other tokens of an answer cost two comparisons.
    const std::size_t n = text.size() - std::min(text.size(), place.prompt);
    if (n < spent || n >= spent + end.size()) return;
    const auto answer = text.subspan(place.prompt);
    if (!std::equal(answer.begin() + static_cast<std::ptrdiff_t>(spent), answer.end(), end.begin()))
      return;
    if (!StillThinks(engine.Detokenize(answer.first(spent), true), marks, place.begun)) return;
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    float& forced = logits[static_cast<std::size_t>(end[n - spent])];
    if (forced == kNever) return;  // a grammar wants something else
    const float kept = std::exchange(forced, kNever);
    std::fill(logits.begin(), logits.end(), kNever);
    forced = kept;
  };
}

}  // namespace foretoken::server
