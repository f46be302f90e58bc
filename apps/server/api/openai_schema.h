// SPDX-License-Identifier: Apache-2.0
// server/api/openai_schema.h: reads the bodies of requests. It checks everything that needs only
// the model's sizes. An unknown field is an error, with the nearest known one.
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
#include "server/api/api_error.h"
#include "server/api/request_rules.h"
#include "server/api/tool_fields.h"

namespace foretoken::server {

class JsonFields;

// What a body is checked against.
struct ModelLimits {
  std::string name;                  // the served model's, in replies
  std::vector<std::string> aliases;  // other names that requests may give as "model"
  int vocabulary_size = 0;
  std::string method;                // the server's method, for requests with a prediction
  int max_choices = 0;               // prompts times n, for one request
  int slots = 1;                     // that a request may name
  int embedding_size = 0;            // numbers of a hidden state
  Pooling pooling = Pooling::kLast;  // of embeddings, for requests that name none
  bool scores_pairs = false;         // the model has a head that does
  std::string pair_template = {};    // with {query} and {document}
  RequestRules rules = {};

  bool Serves(std::string_view model) const;
};

// Texts for DryPenalty.breakers. A client's texts must be tokens; of the default ones those that
// are tokens count.
struct DryBreakers {
  std::vector<std::string> texts;
  bool of_client = false;
};

// Reads "model", which may be left out.
void ReadModel(JsonFields& fields, const ModelLimits& limits);

// Reads "cache_salt", of bounded length.
void ReadCacheSalt(JsonFields& fields, std::string& salt);

using Prompt = std::variant<std::string, std::vector<std::int32_t>>;

// A body of /v1/completions or /v1/chat/completions.
struct GenerationCall {
  bool chat = false;
  std::vector<Prompt> prompts;        // completions: at least one
  std::vector<ChatMessage> messages;  // chat: at least one
  Request request;                    // for every choice, except prompt, seed and id
  // Whether to write the template's last part, which asks for an answer.
  bool add_generation_prompt = true;
  ToolFields tools;
  std::string template_kwargs_json;   // as the client wrote it, for the template; empty: none
  DryBreakers dry_breakers;           // for Request.sampling.dry.breakers
  std::optional<int> max_tokens;      // absent: as many as fit
  std::optional<std::uint64_t> seed;  // absent: the server chooses one
  int n = 1;                          // choices of each prompt
  std::optional<Prompt> drafts;       // of /v1/verify: for Request.drafts
  bool stream = false, include_usage = false;
  bool echo = false;
  bool trace = false;  // speculative.trace
  // Chats: whether what the model thinks is apart from its answer (reasoning_format).
  bool divides_thoughts = true;
  std::optional<int> thought_budget;  // tokens that a thought may take
  // A variable of the template that a field sets, which tells how much to think; "": none.
  std::string_view effort_variable = {};
  // For the reply: fields that are accepted without effect.
  std::vector<std::string> notices;
};
[[nodiscard]] Parsed<GenerationCall> ParseCompletionCall(std::string_view body,
                                                         const ModelLimits& limits);
[[nodiscard]] Parsed<GenerationCall> ParseChatCall(std::string_view body,
                                                   const ModelLimits& limits);
// A body that is JSON already.
[[nodiscard]] Parsed<GenerationCall> ReadCompletionCall(const Json& body,
                                                        const ModelLimits& limits);
[[nodiscard]] Parsed<GenerationCall> ReadChatCall(const Json& body, const ModelLimits& limits);
// A body of /v1/verify: that of a completion, or with messages that of a chat, and drafts.
[[nodiscard]] Parsed<GenerationCall> ParseVerifyCall(std::string_view body,
                                                     const ModelLimits& limits);

struct TokenizeCall {
  std::string content;
  std::vector<ChatMessage> messages;  // instead of the content, for the chat template
  bool add_generation_prompt = true;
  std::string tools_json, template_kwargs_json;  // as the client wrote them, for the template
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
