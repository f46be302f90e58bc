// SPDX-License-Identifier: Apache-2.0
// server/api/openai_replies.h: writes OpenAI's replies, as JSON on one line. Bytes that are not UTF-8 become
// U+FFFD. A rate without a denominator is absent.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/api/long_text.h"
#include "server/api/reply_frame.h"
#include "server/api/reply_statistics.h"

namespace foretoken::server {

// The arguments must outlive it.
LongText ReplyText(const ReplyFrame& frame, std::span<const Choice> choices, int n);

// The reply of /v1/verify. The arguments must outlive it.
LongText VerifiedText(const ReplyFrame& frame, const Choice& choice);

// A chunk of a streamed reply. The text continues; rounds are shown if the frame asks for traces.
struct StreamPart {
  int choice = 0;
  bool first = false;  // the first of its choice: it has the role
  std::string text;
  // In place of the text, where the frame has a reader.
  std::optional<std::vector<calls::AnswerPart>> parts = {};
  int n_calls = 0;  // of the choice, before these
  const RoundRecord* round = nullptr;
  int round_number = 0;         // from 1
  std::size_t text_offset = 0;  // in bytes, of this part's text
};
std::string PartJson(const ReplyFrame& frame, const StreamPart& part);
// The prompt, as events: its text, with `logprobs` of all tokens but the first if the frame wants
// them. Frame and echo must outlive it.
LongText EchoParts(const ReplyFrame& frame, int choice, const Echo& echo,
                   std::vector<TokenLogprobs> logprobs);
// A choice's last chunk; with `all` (the choices, if this is the last one to end) also the
// statistics. has_calls: the choice has called tools.
std::string EndPartJson(const ReplyFrame& frame, int choice, FinishReason reason, bool has_calls,
                        std::span<const Choice> all);
std::string UsagePartJson(const ReplyFrame& frame, const Usage& usage);

}  // namespace foretoken::server
