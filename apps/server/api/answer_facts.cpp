// SPDX-License-Identifier: Apache-2.0
#include "server/api/answer_facts.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calls/thought.h"
#include "server/api/openai_replies.h"

namespace foretoken::server {
namespace {

using PartKind = calls::AnswerPart::Kind;

bool HasKind(const std::vector<calls::AnswerPart>& parts, PartKind kind) {
  return std::any_of(parts.begin(), parts.end(),
                     [kind](const calls::AnswerPart& part) { return part.kind == kind; });
}

// A token as it stands in the text of an answer that is read. A control token is no text.
std::string TokenInAnswer(const ReplyFrame& frame, std::int32_t token) {
  std::string text = frame.text_of(token);
  return text.empty() ? frame.control->InText(frame.piece(token)) : text;
}

// Tokens that say nothing, such as a mark in pieces, belong to what follows them; behind the last
// thought they belong to none.
std::int64_t CountThoughts(const ReplyFrame& frame, std::span<const std::int32_t> tokens) {
  const auto reader = frame.Reader();
  if (reader == nullptr) return 0;
  std::int64_t counted = 0, waiting = 0;
  std::vector<calls::AnswerPart> parts;
  for (const std::int32_t token : tokens) {
    const calls::Thinking before = reader->thinking();
    if (before == calls::Thinking::kNever) break;
    parts.clear();
    reader->Read(TokenInAnswer(frame, token), parts);
    ++waiting;
    if (before == calls::Thinking::kNow || reader->thinking() == calls::Thinking::kNow ||
        HasKind(parts, PartKind::kThought))
      counted += std::exchange(waiting, 0);
    else if (!parts.empty())
      waiting = 0;
  }
  return counted;
}

}  // namespace

AnswerFacts FactsOf(const ReplyFrame& frame, const Completion& completion) {
  return {.has_calls =
              frame.calls != nullptr && HasKind(frame.PartsOf(completion.text), PartKind::kName),
          .reasoning_tokens = CountThoughts(frame, completion.token_ids)};
}

}  // namespace foretoken::server
