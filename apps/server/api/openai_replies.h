// SPDX-License-Identifier: Apache-2.0
// server/api/openai_replies.h: writes replies, as JSON on one line. Bytes that are not UTF-8 become
// U+FFFD. A rate without a denominator is absent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calls/call_format.h"
#include "calls/thought.h"
#include "foretoken/async_engine.h"
#include "server/api/answer_facts.h"
#include "server/api/api_error.h"
#include "server/api/long_text.h"
#include "server/overload.h"
#include "server/totals.h"

namespace foretoken::server {

// A token's bytes as text, control tokens by their names.
using PieceOf = std::function<std::string(std::int32_t)>;
// The same for one token: a leading space stays if it is part of it.
std::string Piece(const Engine& engine, std::int32_t token, bool special = true);

// What all chunks of one reply share.
struct ReplyFrame {
  bool chat = false;
  std::string id;  // "cmpl-..." or "chatcmpl-..."
  std::int64_t created = 0;
  std::string model;
  const EngineSummary* engine = nullptr;
  // What may draft for this request ("none": nothing), and K or the most for a controller.
  std::string method;
  int num_speculative_tokens = 0;
  PieceOf piece;
  PieceOf text_of;  // of one token in a text: nothing for a control token
  bool logprobs = false;
  bool echo_logprobs = false;  // those of the prompt too
  bool include_usage = false;
  bool trace = false;
  std::vector<std::string> notices;
  std::optional<calls::AnswerForm> answers = {};  // of chats
  const calls::CallFormat* calls = nullptr;  // of the calls in its answers; null: they have none
  std::vector<calls::Tool> tools;
  const calls::ControlTokens* control = nullptr;  // the model's

  // Reads one of its answers. Null: an answer is its text. The frame must outlive it.
  std::unique_ptr<calls::CallReader> Reader() const;
  // The parts of a whole answer; its text, if there is no reader.
  std::vector<calls::AnswerPart> PartsOf(const std::string& text) const;
};

// The prompt, if it was asked for.
struct Echo {
  std::string text;
  std::vector<std::int32_t> tokens;
};

struct Choice {
  Echo echo;
  ChoiceEnd end;
  AnswerFacts facts = {};  // once it has ended
};
// "tool_calls" where the answer ends with calls.
const char* FinishName(FinishReason reason, bool has_calls);

struct Usage {
  std::int64_t prompt_tokens = 0, completion_tokens = 0;
  std::int64_t cached_prompt_tokens = 0, reasoning_tokens = 0;
  std::int64_t accepted_prediction_tokens = 0, rejected_prediction_tokens = 0;
};
// prompts: choices of one prompt are adjacent, n each; a prompt counts once.
Usage UsageOf(std::span<const Choice> choices, int n);

// The notices of the request's fields, then those of the engine, each once.
std::vector<std::string> NoticesOf(const ReplyFrame& frame, std::span<const Choice> choices);

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

std::string ErrorJson(const ApiError& error);

// piece: null if pieces were not asked for.
LongText TokensText(std::vector<std::int32_t> tokens, PieceOf piece);
// {"name": text}
LongText NamedText(std::string_view name, std::string text);
// `files`: Engine::FileStatus.
std::string HealthJson(bool draining, AsyncLoad load, const Overload& overload,
                       const Status& files);
std::string VersionJson();

}  // namespace foretoken::server
