// SPDX-License-Identifier: Apache-2.0
#include "server/api/reply_frame.h"

#include <array>

#include "foretoken/catalogue.h"

namespace foretoken::server {

std::unique_ptr<calls::CallReader> ReplyFrame::Reader() const {
  if (!answers) return nullptr;
  return std::make_unique<calls::AnswerReader>(
      *answers, *control, calls != nullptr ? calls->reader(tools, *control) : nullptr);
}

std::vector<calls::AnswerPart> ReplyFrame::PartsOf(const std::string& text) const {
  const auto reader = Reader();
  if (reader == nullptr) return {{calls::AnswerPart::Kind::kText, text}};
  std::vector<calls::AnswerPart> parts;
  reader->Read(text, parts);
  reader->End(parts);
  return parts;
}

// Doubled, so that a leading space, which the beginning of a text may drop, shows in the second
// one.
std::string Piece(const Engine& engine, std::int32_t token, bool special) {
  const std::array twice = {token, token};
  const std::string text = engine.Detokenize(twice, special);
  return text.substr(text.size() / 2);
}

const char* FinishName(FinishReason reason, bool has_calls) {
  return has_calls && reason == FinishReason::kStop ? "tool_calls" : Name(reason);
}

}  // namespace foretoken::server
