// SPDX-License-Identifier: Apache-2.0
// server/api/reply_frame.h: what the parts of a reply have in common, and its choices.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calls/call_format.h"
#include "calls/thought.h"
#include "foretoken/async_engine.h"
#include "server/api/answer_facts.h"

namespace foretoken::server {

// A token's bytes as text, control tokens by their names.
using PieceOf = std::function<std::string(std::int32_t)>;
// The text of one token: a leading space stays if it is part of it.
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

}  // namespace foretoken::server
