// SPDX-License-Identifier: Apache-2.0
#include "server/api/responses_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "server/api/body_limits.h"
#include "server/api/object_text.h"
#include "server/api/responses_input.h"

namespace foretoken::server {
namespace {

// Fields that chats have too, of OpenAI's and of this server's.
constexpr const char* kSharedWithChats[] = {"model",
                                            "stream",
                                            "temperature",
                                            "top_p",
                                            "tool_choice",
                                            "seed",
                                            "stop",
                                            "stop_token_ids",
                                            "top_k",
                                            "min_p",
                                            "typical_p",
                                            "presence_penalty",
                                            "frequency_penalty",
                                            "repetition_penalty",
                                            "logit_bias",
                                            "min_tokens",
                                            "ignore_eos",
                                            "cache_prompt",
                                            "cache_salt",
                                            "speculative"};

// Fields for OpenAI's own service, which change no answer here.
constexpr const char* kResponsesIgnore[] = {"client_metadata",        "prompt_cache_key",
                                            "prompt_cache_retention", "prompt_cache_options",
                                            "safety_identifier",      "user",
                                            "service_tier",           "max_tool_calls",
                                            "access_programs",        "moderation"};

// What clients of chats may write by mistake, with what responses have in place of it.
constexpr std::pair<const char*, const char*> kNamesOfChats[] = {
    {"messages", "input"},
    {"max_tokens", "max_output_tokens"},
    {"max_completion_tokens", "max_output_tokens"},
    {"response_format", "text.format"},
    {"reasoning_effort", "reasoning.effort"}};

constexpr const char* kNoResponseSetting = "models here have no such setting; it changes nothing";

struct ChatOfResponses {
  Json body;  // a chat's
  std::vector<std::string> notices;
};

// Translates a body into one of a chat, and gathers what the reply repeats.
class ResponsesReader {
 public:
  ResponsesReader(const Json& body, EarlierItems& earlier, ResponsesRequest& request)
      : earlier_(earlier), request_(request), fields_(body, "", error_) {}

  Parsed<ChatOfResponses> Read() {
    if (fields_.Has("conversation"))
      fields_.Bad("conversation",
                  "conversations have no ids here; use previous_response_id, or send the items of "
                  "earlier turns in input",
                  "unsupported_parameter");
    if (fields_.Has("prompt"))
      fields_.Bad("prompt", "no prompts are stored here; send its items in input",
                  "unsupported_parameter");
    for (const auto& [name, own] : kNamesOfChats)
      if (fields_.Has(name))
        fields_.Bad(name, fmt::format("responses have no such field; use {}", own),
                    "unknown_field");
    ReadInput();
    for (const char* const name : kSharedWithChats)
      if (const Json* const value = fields_.Find(name)) chat_[name] = *value;
    if (const Json* const more = fields_.Object("chat_template_kwargs"))
      chat_["chat_template_kwargs"] = *more;
    ReadLength();
    ReadTools();
    ReadText();
    ReadReasoning();
    ReadServing();
    ReadReplies();
    for (const char* const name : kResponsesIgnore) fields_.Idle(name);
    fields_.Finish();
    if (error_) return Refuse(*std::move(error_));
    AddEcho();
    request_.echo = echo_.members();
    return ChatOfResponses{std::move(chat_), std::move(notices_)};
  }

 private:
  void AddEcho() {
    for (const auto& [name, otherwise] : {std::pair("metadata", "{}"),
                                          {"temperature", "null"},
                                          {"tool_choice", "\"auto\""},
                                          {"top_p", "null"},
                                          {"truncation", "\"disabled\""}}) {
      const Json* const value = fields_.Find(name);
      echo_.Put(name, value != nullptr ? OneLine(*value) : otherwise);
    }
  }

  void ReadInput() {
    std::optional<std::string> instructions;
    if (std::string text; fields_.Text("instructions", text) && !text.empty())
      instructions = std::move(text);
    echo_.Put("instructions", instructions ? QuotedJson(*instructions) : "null");
    fields_.Switch("store", request_.store);
    fields_.Text("previous_response_id", request_.previous);
    const Json* const input = fields_.Find("input");
    if (input == nullptr)
      return fields_.Bad("input", "it is missing; give a text or a list of items");
    InputItems items(earlier_, request_.store, error_);
    if (instructions) items.AddText("system", *instructions);
    if (!request_.previous.empty()) items.AddEarlier(request_.previous);
    items.AddInput(*input, fields_);
    chat_["messages"] = items.TakeMessages();
    request_.input = items.TakeStored();
  }

  void ReadLength() {
    std::optional<int> most;
    fields_.Integer("max_output_tokens", 1, kMaxTextTokens, most);
    if (most) chat_["max_tokens"] = *most;
    echo_.Put("max_output_tokens", most ? std::to_string(*most) : "null");
  }

  // Chats have what tells of a function in an object of its own.
  static Json ChatTool(const Json& tool) {
    if (!tool.is_object() || tool.contains("function")) return tool;
    const Json type = tool.at("type", "function");
    if (type != "function") return {{"type", type}};
    Json function = Json::object();
    for (const char* const name : {"name", "description", "parameters", "strict"})
      if (!tool.at(name).is_null()) function[name] = tool.at(name);
    return {{"type", "function"}, {"function", std::move(function)}};
  }

  void ReadTools() {
    bool several = true;
    if (fields_.Switch("parallel_tool_calls", several)) chat_["parallel_tool_calls"] = several;
    echo_.Put("parallel_tool_calls", several ? "true" : "false");
    const Json* const tools = fields_.Find("tools");
    if (tools != nullptr && !tools->is_array())
      fields_.Bad("tools", "it is not a list; give a list of tools, or leave it out");
    if (fields_.failed() || tools == nullptr) return void(echo_.Put("tools", "[]"));
    Json& translated = chat_["tools"] = Json::array();
    for (const Json& tool : *tools) translated.push_back(ChatTool(tool));
    echo_.Put("tools", WithoutSpace(tools->written()));
  }

  void ReadText() {
    const Json* const text = fields_.Object("text");
    std::string format = R"({"type":"text"})", verbosity = "medium";
    if (text != nullptr) {
      JsonFields fields(*text, "text.", error_);
      if (fields.Text("verbosity", verbosity) && verbosity != "medium")
        notices_.push_back(std::string("text.verbosity: ") + kNoResponseSetting);
      if (const Json* const value = fields.Object("format")) {
        ReadFormat(*value);
        format = WithoutSpace(value->written());
      }
      fields.Finish();
    }
    echo_.Put("text",
              ObjectText().Put("format", format).Put("verbosity", QuotedJson(verbosity)).Text());
  }

  void ReadFormat(const Json& format) {
    JsonFields fields(format, "text.format.", error_);
    std::string type;
    fields.Text("type", type);
    if (type == "json_schema") {
      Json named = Json::object();
      for (const char* const name : {"name", "description", "schema", "strict"})
        if (const Json* const value = fields.Find(name)) named[name] = *value;
      if (!fields.Has("schema")) fields.Bad("schema", "it is missing; give a JSON Schema");
      chat_["response_format"] = {{"type", "json_schema"}, {"json_schema", std::move(named)}};
    } else if (type == "json_object") {
      chat_["response_format"] = {{"type", "json_object"}};
    } else if (type != "text") {
      fields.Bad("type", fmt::format("{} is not known; use text, json_object or json_schema",
                                     JsonFields::Shown(Json(type))));
    }
    fields.Finish();
  }

  void ReadReasoning() {
    const Json* const reasoning = fields_.Object("reasoning");
    const Json effort = reasoning != nullptr ? reasoning->at("effort") : Json();
    if (!effort.is_null()) chat_["reasoning_effort"] = effort;
    echo_.Put("reasoning",
              reasoning != nullptr ? OneLine(*reasoning) : R"({"effort":null,"summary":null})");
  }

  void ReadServing() {
    bool background = false;
    if (fields_.Switch("background", background) && background)
      fields_.Bad("background", "nothing runs without a client that waits; set it to false",
                  "unsupported_parameter");
    std::string truncation = "disabled";
    fields_.Text("truncation", truncation);
    if (truncation != "disabled" && truncation != "auto")
      fields_.Bad("truncation", fmt::format("{} is not known; use disabled or auto",
                                            JsonFields::Shown(Json(truncation))));
    if (truncation == "auto")
      notices_.emplace_back(
          "truncation: no items are left out; those that do not fit are an error");
    const Json* const context = fields_.Find("context_management");
    if (context != nullptr && !context->empty())
      notices_.emplace_back("context_management: no items are put together; it changes nothing");
    fields_.Object("metadata");
  }

  void ReadReplies() {
    std::optional<int> top;
    fields_.Integer("top_logprobs", 0, kMostAlternatives, top);
    if (top.value_or(0) > 0)
      notices_.emplace_back("top_logprobs: replies here do not have it; use chats");
    const Json* const include = fields_.Find("include");
    if (include != nullptr && !include->is_array())
      fields_.Bad("include", "it is not a list; give one, or leave it out");
    if (include != nullptr && include->is_array() &&
        std::find(include->begin(), include->end(), "message.output_text.logprobs") !=
            include->end())
      notices_.emplace_back("include: replies here have no log-probabilities; use chats");
    fields_.NoteIdle("include", include);
    const Json* const options = fields_.Object("stream_options");
    if (options == nullptr) return;
    JsonFields fields(*options, "stream_options.", error_);
    bool padding = false, usage = true;
    if (fields.Switch("include_obfuscation", padding) && padding)
      notices_.emplace_back("stream_options.include_obfuscation: nothing is padded");
    fields.Switch("include_usage", usage);
    fields.Idle("include_usage");  // it always comes
    fields.Finish();
  }

  EarlierItems& earlier_;
  ResponsesRequest& request_;
  std::optional<ApiError> error_;
  JsonFields fields_;
  Json chat_;
  ObjectText echo_;
  std::vector<std::string> notices_;
};

}  // namespace

Parsed<GenerationCall> ParseResponsesCall(std::string_view body, const ModelLimits& limits,
                                          EarlierItems& earlier, ResponsesRequest& request) {
  const Parsed<Json> json = ReadJsonObject(body);
  if (!json) return Refuse(json.error());
  Parsed<ChatOfResponses> chat = ResponsesReader(*json, earlier, request).Read();
  if (!chat) return Refuse(std::move(chat).error());
  Parsed<GenerationCall> call = ReadChatCall(chat->body, limits);
  if (!call) return call;
  call->notices.insert(call->notices.begin(), std::make_move_iterator(chat->notices.begin()),
                       std::make_move_iterator(chat->notices.end()));
  return call;
}

}  // namespace foretoken::server
