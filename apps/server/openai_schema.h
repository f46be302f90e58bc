// SPDX-License-Identifier: Apache-2.0
// server/openai_schema.h: bodies of requests, JSON to values. Everything is checked here that needs
// no model but its sizes; a field that is not known is an error, with the nearest known one.
//
// Pure functions of their arguments; any bytes may come in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "foretoken/chat.h"
#include "foretoken/request.h"
#include "server/api_error.h"

namespace foretoken::server {

// What a body is checked against.
struct ModelLimits {
  std::string name;                  // the served model's, in replies
  std::vector<std::string> aliases;  // other names of it that requests may give as "model"
  bool any_name = false;             // they may give any
  int vocabulary_size = 0;
  std::string method;   // the server's, for requests that bring a prediction
  int max_choices = 0;  // prompts times n of one request

  bool Serves(std::string_view model) const;
};

// Texts that stand for DryPenalty.breakers. Those of a client must be tokens; of the usual ones
// those count that are.
struct DryBreakers {
  std::vector<std::string> texts;
  bool of_client = false;
};

using Prompt = std::variant<std::string, std::vector<std::int32_t>>;

// A body of /v1/completions or /v1/chat/completions.
struct GenerationCall {
  bool chat = false;
  std::vector<Prompt> prompts;        // completions: at least one
  std::vector<ChatMessage> messages;  // chat: at least one
  Request request;                    // of every choice, but for prompt, seed and id
  // The template's last part, which asks for an answer.
  bool add_generation_prompt = true;
  DryBreakers dry_breakers;           // for Request.sampling.dry.breakers
  std::optional<int> max_tokens;      // absent: as much as fits
  std::optional<std::uint64_t> seed;  // absent: one that the server makes
  int n = 1;                          // choices of each prompt
  bool stream = false, include_usage = false;
  bool echo = false;
  bool trace = false;  // speculative.trace
  // For the reply: what was asked for and is taken without effect.
  std::vector<std::string> notices;
};
[[nodiscard]] Parsed<GenerationCall> ParseCompletionCall(std::string_view body,
                                                         const ModelLimits& limits);
[[nodiscard]] Parsed<GenerationCall> ParseChatCall(std::string_view body,
                                                   const ModelLimits& limits);

struct TokenizeCall {
  std::string content;
  std::vector<ChatMessage> messages;  // in place of the content, for the chat template
  bool add_generation_prompt = true;
  bool add_special = false, parse_special = false, with_pieces = false;
};
[[nodiscard]] Parsed<TokenizeCall> ParseTokenizeCall(std::string_view body,
                                                     const ModelLimits& limits);

struct DetokenizeCall {
  std::vector<std::int32_t> tokens;
  bool special = false;
};
[[nodiscard]] Parsed<DetokenizeCall> ParseDetokenizeCall(std::string_view body,
                                                         const ModelLimits& limits);

}  // namespace foretoken::server
