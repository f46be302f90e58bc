// SPDX-License-Identifier: Apache-2.0
#include "server/api/anthropic_schema.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "server/api/body_limits.h"
#include "server/api/json_fields.h"

namespace foretoken::server {
namespace {

// Fields that chats have too, of Anthropic's and of this server's.
constexpr const char* kFieldsOfChats[] = {
    "model", "stream",      "temperature", "top_p",        "top_k",     "min_p",
    "seed",  "speculative", "cache_salt",  "cache_prompt", "logit_bias"};
// Fields for Anthropic's own service, which change no answer here.
constexpr const char* kOfTheirService[] = {
    "metadata",      "service_tier",  "betas", "context_management",
    "cache_control", "inference_geo", "speed", "diagnostics"};

class MessagesReader {
 public:
  MessagesReader(const Json& body, bool counts) : counts_(counts), fields_(body, "", error_) {}

  // The body of a chat.
  Parsed<Json> Read() {
    ReadSystem();
    ReadMessages();
    for (const char* const name : kFieldsOfChats)
      if (const Json* const value = fields_.Find(name)) chat_[name] = *value;
    ReadLimits();
    ReadTools();
    ReadChoice();
    ReadThinking();
    for (const char* const name : kOfTheirService) fields_.Idle(name);
    for (const char* const name : {"container", "mcp_servers"})
      if (const Json* const value = fields_.Find(name); value != nullptr && !value->empty())
        fields_.Bad(name, "nothing runs beside the model here; leave it out",
                    "unsupported_parameter");
    fields_.Finish();
    if (error_) return Refuse(*std::move(error_));
    chat_["messages"] = std::move(messages_);
    return std::move(chat_);
  }

 private:
  void AddText(std::string_view role, std::string_view text) {
    messages_.push_back({{"role", role}, {"content", text}});
  }

  // A text, or a list of text blocks.
  std::string TextOfBlocks(const Json& value, const std::string& where) {
    if (value.is_string()) return value.text();
    std::string text;
    if (!value.is_array()) fields_.Bad(where, "it is not a text or a list of blocks; give one");
    if (value.is_array())
      for (const Json& block : value) {
        const Json &type = block.at("type"), &content = block.at("text");
        if (type != "text" || !content.is_string())
          fields_.Bad(where,
                      fmt::format("a block of type {} is no text, and models here read texts "
                                  "only; leave it out",
                                  JsonFields::Shown(type)),
                      "unsupported_parameter");
        else
          text.append(text.empty() ? "" : "\n").append(content.text());
      }
    return text;
  }

  void ReadSystem() {
    const Json* const system = fields_.Find("system");
    if (system == nullptr) return;
    const std::string text = TextOfBlocks(*system, "system");
    if (!text.empty()) AddText("system", text);
  }

  void ReadMessages() {
    const Json* const list = fields_.Find("messages");
    if (list == nullptr || !list->is_array() || list->empty() || list->size() > kMostMessages)
      return fields_.Bad(
          "messages", fmt::format("it is not a list of 1 to {} messages; give one", kMostMessages));
    for (std::size_t i = 0; i < list->size() && !fields_.failed(); ++i) {
      const std::string where = fmt::format("messages[{}]", i);
      const Json& message = (*list)[i];
      if (!message.is_object()) return fields_.Bad(where, "it is not an object; give one");
      const Json &role = message.at("role"), &content = message.at("content");
      if (role == "system")
        AddText("system", TextOfBlocks(content, where + ".content"));
      else if (role != "user" && role != "assistant")
        fields_.Bad(where + ".role", fmt::format("{} is not a role; use user or assistant",
                                                 JsonFields::Shown(role)));
      else if (content.is_string())
        AddText(role.text(), content.text());
      else if (!content.is_array())
        fields_.Bad(where + ".content", "it is not a text or a list of blocks; give one");
      else if (role == "user")
        ReadUser(content, where + ".content");
      else
        ReadAssistant(content, where + ".content");
    }
  }

  void BadBlock(const std::string& where, const Json& type) {
    fields_.Bad(where,
                fmt::format("a block of type {} cannot be read by models here; leave it out",
                            JsonFields::Shown(type)),
                "unsupported_parameter");
  }

  // Results of tools are messages of their own, in their places between the texts.
  void ReadUser(const Json& blocks, const std::string& where) {
    std::string text;
    bool has_text = false, has_results = false;
    const auto flush = [&] {
      if (has_text) AddText("user", text);
      text.clear(), has_text = false;
    };
    for (const Json& block : blocks) {
      const Json& type = block.at("type");
      if (type == "text" && block.at("text").is_string()) {
        text.append(has_text ? "\n" : "").append(block.at("text").text());
        has_text = true;
      } else if (type == "tool_result") {
        flush();
        has_results = true;
        const Json &id = block.at("tool_use_id"), &content = block.at("content");
        if (!id.is_string()) fields_.Bad(where, "a tool_result has no tool_use_id; give one");
        messages_.push_back({{"role", "tool"},
                             {"tool_call_id", id},
                             {"content", content.is_null() ? "" : TextOfBlocks(content, where)}});
      } else {
        return BadBlock(where, type);
      }
    }
    if (has_text || !has_results) AddText("user", text);
  }

  // What the model thought goes to the template, which may leave it out.
  void ReadAssistant(const Json& blocks, const std::string& where) {
    std::string thought, text;
    Json calls = Json::array();
    for (const Json& block : blocks) {
      const Json& type = block.at("type");
      if (type == "thinking" || type == "redacted_thinking") {
        if (const Json& said = block.at("thinking"); said.is_string())
          thought.append(thought.empty() ? "" : "\n").append(said.text());
      } else if (type == "text" && block.at("text").is_string()) {
        text.append(text.empty() ? "" : "\n").append(block.at("text").text());
      } else if (type == "tool_use") {
        const Json &id = block.at("id"), &name = block.at("name"), &input = block.at("input");
        if (!id.is_string() || !name.is_string() || !input.is_object())
          return fields_.Bad(where, "a tool_use lacks its id, its name or its input; give all");
        calls.push_back({{"id", id},
                         {"type", "function"},
                         {"function", {{"name", name}, {"arguments", input.written()}}}});
      } else {
        return BadBlock(where, type);
      }
    }
    Json message = {{"role", "assistant"}, {"content", text}};
    if (!thought.empty()) message["reasoning_content"] = thought;
    if (!calls.empty()) message["tool_calls"] = std::move(calls);
    messages_.push_back(std::move(message));
  }

  void ReadLimits() {
    std::optional<int> most;
    fields_.Integer("max_tokens", 1, kMaxTextTokens, most);
    if (!most && !counts_) fields_.Bad("max_tokens", "it is missing; give a number");
    if (most) chat_["max_tokens"] = *most;
    const Json* const stops = fields_.Find("stop_sequences");
    if (stops == nullptr) return;
    if (!stops->is_array()) fields_.Bad("stop_sequences", "it is not a list of texts; give one");
    chat_["stop"] = *stops;
  }

  void ReadTools() {
    const Json* const tools = fields_.Find("tools");
    if (tools == nullptr) return;
    if (!tools->is_array()) return fields_.Bad("tools", "it is not a list; give a list of tools");
    Json& list = chat_["tools"] = Json::array();
    for (std::size_t i = 0; i < tools->size(); ++i) {
      const Json& tool = (*tools)[i];
      if (!tool.is_object())
        return fields_.Bad(fmt::format("tools[{}]", i), "it is not an object; give one");
      const Json& type = tool.at("type");
      if (!type.is_null() && type != "custom") {
        list.push_back({{"type", type}});
        continue;
      }
      Json function = Json::object();
      for (const auto& [name, chat] : {std::pair("name", "name"),
                                       {"description", "description"},
                                       {"input_schema", "parameters"}})
        if (tool.contains(name)) function[chat] = tool.at(name);
      list.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
  }

  void ReadChoice() {
    const Json* const choice = fields_.Object("tool_choice");
    if (choice == nullptr) return;
    const Json& type = choice->at("type");
    const Json& single = choice->at("disable_parallel_tool_use");
    if (!single.is_null() && !single.is_boolean())
      return fields_.Bad("tool_choice", "disable_parallel_tool_use is not true or false; give one");
    if (single == true) chat_["parallel_tool_calls"] = false;
    if (type == "auto" || type == "none")
      chat_["tool_choice"] = type;
    else if (type == "any")
      chat_["tool_choice"] = "required";
    else if (type == "tool")
      chat_["tool_choice"] = {{"type", "function"}, {"name", choice->at("name")}};
    else
      fields_.Bad("tool_choice",
                  fmt::format("its type {} is not known; use auto, any, tool or none",
                              JsonFields::Shown(type)));
  }

  // Whether the model thinks, and how much, where its template knows that.
  void ReadThinking() {
    constexpr std::string_view kThinking[] = {"enabled", "disabled", "adaptive"};
    std::string type, effort;
    std::optional<int> budget;
    if (const Json* const thinking = fields_.Object("thinking")) {
      JsonFields fields(*thinking, "thinking.", error_);
      fields.OneOf("type", "a way to think", kThinking, type);
      fields.Integer("budget_tokens", -1, kMaxTextTokens, budget);
    }
    const Json* const config = fields_.Object("output_config");
    if (config != nullptr) {
      constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium",
                                               "high", "xhigh",   "max"};
      JsonFields(*config, "output_config.", error_).OneOf("effort", "an effort", kEfforts, effort);
    }
    if (type == "disabled")
      chat_["reasoning_effort"] = "none";
    else if (!effort.empty())
      chat_["reasoning_effort"] = effort == "max" ? "xhigh" : effort;
    if (budget) chat_["thinking_budget_tokens"] = *budget;
    const Json format = config != nullptr ? config->at("format") : Json();
    if (format.is_null()) return;
    if (format.at("type") != "json_schema")
      return fields_.Bad("output_config.format", "its type is not known; use json_schema");
    chat_["response_format"] = {
        {"type", "json_schema"},
        {"json_schema", {{"name", "answer"}, {"schema", format.at("schema")}}}};
  }

  const bool counts_;
  std::optional<ApiError> error_;
  JsonFields fields_;
  Json chat_, messages_ = Json::array();
};

}  // namespace

Parsed<GenerationCall> ParseMessagesCall(std::string_view body, const ModelLimits& limits,
                                         bool counts) {
  const Parsed<Json> json = ReadJsonObject(body);
  if (!json) return Refuse(json.error());
  const Parsed<Json> chat = MessagesReader(*json, counts).Read();
  if (!chat) return Refuse(chat.error());
  return ReadChatCall(*chat, limits);
}

}  // namespace foretoken::server
