// SPDX-License-Identifier: Apache-2.0
#include "server/api/responses_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "server/api/json_member.h"
#include "server/api/json_tree.h"
#include "server/api/object_text.h"
#include "server/api/responses_input.h"

namespace foretoken::server {
namespace {

constexpr int kMostResponseTokens = 1 << 24;
constexpr int kMostResponseLogprobs = 20;

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
  std::string body;  // a chat's
  std::vector<std::string> notices;
};

// Translates a body into one of a chat, and gathers what the reply repeats.
class ResponsesReader {
 public:
  ResponsesReader(const Json& json, std::string_view body, EarlierItems& earlier,
                  ResponsesRequest& request)
      : body_(body), earlier_(earlier), request_(request), fields_(json, "", error_) {}

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
      if (const Json* const value = fields_.Find(name)) chat_.Put(name, OneLine(*value));
    if (fields_.Object("chat_template_kwargs") != nullptr)
      chat_.Put("chat_template_kwargs", RawMember(body_, {"chat_template_kwargs"}));
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
    return ChatOfResponses{chat_.Text(), std::move(notices_)};
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
    echo_.Put("instructions", instructions ? QuotedText(*instructions) : "null");
    fields_.Switch("store", request_.store);
    fields_.Text("previous_response_id", request_.previous);
    const Json* const input = fields_.Find("input");
    if (input == nullptr)
      return fields_.Bad("input", "it is missing; give a text or a list of items");
    InputItems items(earlier_, request_.store, error_);
    if (instructions) items.AddText("system", *instructions);
    if (!request_.previous.empty()) items.AddEarlier(request_.previous);
    items.AddInput(*input, RawMember(body_, {"input"}), fields_);
    chat_.Put("messages", items.TakeMessages());
    request_.input = items.TakeStored();
  }

  void ReadLength() {
    std::optional<int> most;
    fields_.Integer("max_output_tokens", 1, kMostResponseTokens, most);
    if (most) chat_.Put("max_tokens", std::to_string(*most));
    echo_.Put("max_output_tokens", most ? std::to_string(*most) : "null");
  }

  // Chats have what tells of a function in an object of its own.
  static std::string ChatTool(const Json& tool, std::string_view raw) {
    if (!tool.is_object() || tool.contains("function")) return std::string(raw);
    const Json type = tool.value("type", Json("function"));
    if (type != "function") return ObjectText().Put("type", OneLine(type)).Text();
    ObjectText function;
    for (const char* const name : {"name", "description", "parameters", "strict"})
      if (tool.contains(name) && !tool.at(name).is_null())
        function.Put(name, RawMember(raw, {name}));
    return ObjectText().Put("type", "\"function\"").Put("function", function.Text()).Text();
  }

  void ReadTools() {
    bool several = true;
    if (fields_.Switch("parallel_tool_calls", several))
      chat_.Put("parallel_tool_calls", several ? "true" : "false");
    echo_.Put("parallel_tool_calls", several ? "true" : "false");
    const Json* const tools = fields_.Find("tools");
    if (tools != nullptr && !tools->is_array())
      fields_.Bad("tools", "it is not a list; give a list of tools, or leave it out");
    if (fields_.failed() || tools == nullptr) return void(echo_.Put("tools", "[]"));
    const std::string_view list = RawMember(body_, {"tools"});
    const std::vector<std::string_view> raw = RawElements(list);
    std::string translated;
    for (std::size_t i = 0; i < tools->size(); ++i)
      translated.append(i > 0 ? ", " : "").append(ChatTool((*tools)[i], raw[i]));
    chat_.Put("tools", "[" + translated + "]");
    echo_.Put("tools", WithoutSpace(list));
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
        format = WithoutSpace(RawMember(body_, {"text", "format"}));
      }
      fields.Finish();
    }
    echo_.Put("text",
              ObjectText().Put("format", format).Put("verbosity", QuotedText(verbosity)).Text());
  }

  void ReadFormat(const Json& format) {
    JsonFields fields(format, "text.format.", error_);
    std::string type;
    fields.Text("type", type);
    if (type == "json_schema") {
      ObjectText named;
      for (const char* const name : {"name", "description", "schema", "strict"})
        if (fields.Has(name)) named.Put(name, RawMember(body_, {"text", "format", name}));
      if (!fields.Has("schema")) fields.Bad("schema", "it is missing; give a JSON Schema");
      chat_.Put(
          "response_format",
          ObjectText().Put("type", "\"json_schema\"").Put("json_schema", named.Text()).Text());
    } else if (type == "json_object") {
      chat_.Put("response_format", R"({"type": "json_object"})");
    } else if (type != "text") {
      fields.Bad("type", fmt::format("{} is not known; use text, json_object or json_schema",
                                     JsonFields::Shown(Json(type))));
    }
    fields.Finish();
  }

  void ReadReasoning() {
    const Json* const reasoning = fields_.Object("reasoning");
    const Json effort = reasoning != nullptr ? reasoning->value("effort", Json()) : Json();
    if (!effort.is_null()) chat_.Put("reasoning_effort", OneLine(effort));
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
    fields_.Integer("top_logprobs", 0, kMostResponseLogprobs, top);
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

  const std::string_view body_;
  EarlierItems& earlier_;
  ResponsesRequest& request_;
  std::optional<ApiError> error_;
  JsonFields fields_;
  ObjectText chat_, echo_;
  std::vector<std::string> notices_;
};

// The tree of the body is gone when the chat's own is read.
Parsed<ChatOfResponses> ToChat(std::string_view body, EarlierItems& earlier,
                               ResponsesRequest& request) {
  const Parsed<Json> json = ReadJsonObject(body);
  if (!json) return Refuse(json.error());
  return ResponsesReader(*json, body, earlier, request).Read();
}

}  // namespace

Parsed<GenerationCall> ParseResponsesCall(std::string_view body, const ModelLimits& limits,
                                          EarlierItems& earlier, ResponsesRequest& request) {
  Parsed<ChatOfResponses> chat = ToChat(body, earlier, request);
  if (!chat) return Refuse(std::move(chat).error());
  Parsed<GenerationCall> call = ParseChatCall(chat->body, limits);
  if (!call) return call;
  call->notices.insert(call->notices.begin(), std::make_move_iterator(chat->notices.begin()),
                       std::make_move_iterator(chat->notices.end()));
  return call;
}

}  // namespace foretoken::server
