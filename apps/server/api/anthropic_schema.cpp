// SPDX-License-Identifier: Apache-2.0
#include "server/api/anthropic_schema.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "server/api/json_fields.h"
#include "server/api/json_member.h"
#include "server/api/json_tree.h"
#include "server/api/object_text.h"

namespace foretoken::server {
namespace {

constexpr int kMostAnswerTokens = 1 << 24;
constexpr std::size_t kMostMessages = 4096;

// Fields that chats have too, of Anthropic's and of this server's.
constexpr const char* kFieldsOfChats[] = {
    "model", "stream",      "temperature", "top_p",        "top_k",     "min_p",
    "seed",  "speculative", "cache_salt",  "cache_prompt", "logit_bias"};
// Fields for Anthropic's own service, which change no answer here.
constexpr const char* kOfTheirService[] = {
    "metadata",      "service_tier",  "betas", "context_management",
    "cache_control", "inference_geo", "speed", "diagnostics"};

// Null where the value is no object, or has no such member.
const Json& MemberOr(const Json& value, const char* name) {
  static const Json null;
  if (!value.is_object()) return null;
  const auto found = value.find(name);
  return found == value.end() ? null : *found;
}

class MessagesReader {
 public:
  MessagesReader(const Json& json, std::string_view body, bool counts)
      : body_(body), counts_(counts), fields_(json, "", error_) {}

  // The body of a chat.
  Parsed<std::string> Read() {
    ReadSystem();
    ReadMessages();
    for (const char* const name : kFieldsOfChats)
      if (const Json* const value = fields_.Find(name)) chat_.Put(name, OneLine(*value));
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
    chat_.Put("messages", "[" + messages_ + "]");
    return chat_.Text();
  }

 private:
  void AddMessage(const ObjectText& message) {
    messages_.append(messages_.empty() ? "" : ", ").append(message.Text());
  }
  void AddText(std::string_view role, std::string_view text) {
    AddMessage(ObjectText().Put("role", QuotedText(role)).Put("content", QuotedText(text)));
  }

  // A text, or a list of text blocks.
  std::string TextOfBlocks(const Json& value, const std::string& where) {
    if (value.is_string()) return value.get<std::string>();
    std::string text;
    if (!value.is_array()) fields_.Bad(where, "it is not a text or a list of blocks; give one");
    if (value.is_array())
      for (const Json& block : value) {
        const Json &type = MemberOr(block, "type"), &content = MemberOr(block, "text");
        if (type != "text" || !content.is_string())
          fields_.Bad(where,
                      fmt::format("a block of type {} is no text, and models here read texts "
                                  "only; leave it out",
                                  JsonFields::Shown(type)),
                      "unsupported_parameter");
        else
          text.append(text.empty() ? "" : "\n").append(content.get_ref<const std::string&>());
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
    const std::vector<std::string_view> raw = RawElements(RawMember(body_, {"messages"}));
    for (std::size_t i = 0; i < list->size() && !fields_.failed(); ++i) {
      const std::string where = fmt::format("messages[{}]", i);
      const Json& message = (*list)[i];
      if (!message.is_object()) return fields_.Bad(where, "it is not an object; give one");
      const Json &role = MemberOr(message, "role"), &content = MemberOr(message, "content");
      if (role == "system")
        AddText("system", TextOfBlocks(content, where + ".content"));
      else if (role != "user" && role != "assistant")
        fields_.Bad(where + ".role", fmt::format("{} is not a role; use user or assistant",
                                                 JsonFields::Shown(role)));
      else if (content.is_string())
        AddText(role.get_ref<const std::string&>(), content.get_ref<const std::string&>());
      else if (!content.is_array())
        fields_.Bad(where + ".content", "it is not a text or a list of blocks; give one");
      else if (role == "user")
        ReadUser(content, where + ".content");
      else
        ReadAssistant(content, RawMember(raw[i], {"content"}), where + ".content");
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
      const Json& type = MemberOr(block, "type");
      if (type == "text" && MemberOr(block, "text").is_string()) {
        text.append(has_text ? "\n" : "").append(block.at("text").get_ref<const std::string&>());
        has_text = true;
      } else if (type == "tool_result") {
        flush();
        has_results = true;
        const Json &id = MemberOr(block, "tool_use_id"), &content = MemberOr(block, "content");
        if (!id.is_string()) fields_.Bad(where, "a tool_result has no tool_use_id; give one");
        AddMessage(
            ObjectText()
                .Put("role", "\"tool\"")
                .Put("tool_call_id", OneLine(id))
                .Put("content", QuotedText(content.is_null() ? "" : TextOfBlocks(content, where))));
      } else {
        return BadBlock(where, type);
      }
    }
    if (has_text || !has_results) AddText("user", text);
  }

  // What the model thought goes to the template, which may leave it out.
  void ReadAssistant(const Json& blocks, std::string_view raw_blocks, const std::string& where) {
    const std::vector<std::string_view> raw = RawElements(raw_blocks);
    std::string thought, text, calls;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const Json& block = blocks[i];
      const Json& type = MemberOr(block, "type");
      if (type == "thinking" || type == "redacted_thinking") {
        if (const Json& said = MemberOr(block, "thinking"); said.is_string())
          thought.append(thought.empty() ? "" : "\n").append(said.get_ref<const std::string&>());
      } else if (type == "text" && MemberOr(block, "text").is_string()) {
        text.append(text.empty() ? "" : "\n")
            .append(block.at("text").get_ref<const std::string&>());
      } else if (type == "tool_use") {
        const Json &id = MemberOr(block, "id"), &name = MemberOr(block, "name"),
                   &input = MemberOr(block, "input");
        if (!id.is_string() || !name.is_string() || !input.is_object())
          return fields_.Bad(where, "a tool_use lacks its id, its name or its input; give all");
        const std::string_view written = RawMember(raw[i], {"input"});
        ObjectText function, call;
        function.Put("name", OneLine(name))
            .Put("arguments", QuotedText(written.empty() ? "{}" : written));
        call.Put("id", OneLine(id)).Put("type", "\"function\"").Put("function", function.Text());
        calls.append(calls.empty() ? "" : ", ").append(call.Text());
      } else {
        return BadBlock(where, type);
      }
    }
    ObjectText message;
    message.Put("role", "\"assistant\"").Put("content", QuotedText(text));
    if (!thought.empty()) message.Put("reasoning_content", QuotedText(thought));
    if (!calls.empty()) message.Put("tool_calls", "[" + calls + "]");
    AddMessage(message);
  }

  void ReadLimits() {
    std::optional<int> most;
    fields_.Integer("max_tokens", 1, kMostAnswerTokens, most);
    if (!most && !counts_) fields_.Bad("max_tokens", "it is missing; give a number");
    if (most) chat_.Put("max_tokens", std::to_string(*most));
    const Json* const stops = fields_.Find("stop_sequences");
    if (stops == nullptr) return;
    if (!stops->is_array()) fields_.Bad("stop_sequences", "it is not a list of texts; give one");
    chat_.Put("stop", OneLine(*stops));
  }

  void ReadTools() {
    const Json* const tools = fields_.Find("tools");
    if (tools == nullptr) return;
    if (!tools->is_array()) return fields_.Bad("tools", "it is not a list; give a list of tools");
    const std::vector<std::string_view> raw = RawElements(RawMember(body_, {"tools"}));
    std::string list;
    for (std::size_t i = 0; i < tools->size(); ++i) {
      const Json& tool = (*tools)[i];
      if (!tool.is_object())
        return fields_.Bad(fmt::format("tools[{}]", i), "it is not an object; give one");
      const Json type = tool.value("type", Json());
      if (!type.is_null() && type != "custom") {
        list.append(list.empty() ? "" : ", ")
            .append(ObjectText().Put("type", OneLine(type)).Text());
        continue;
      }
      ObjectText function;
      for (const auto& [name, chat] : {std::pair("name", "name"),
                                       {"description", "description"},
                                       {"input_schema", "parameters"}})
        if (tool.contains(name)) function.Put(chat, RawMember(raw[i], {name}));
      list.append(list.empty() ? "" : ", ")
          .append(ObjectText().Put("type", "\"function\"").Put("function", function.Text()).Text());
    }
    chat_.Put("tools", "[" + list + "]");
  }

  void ReadChoice() {
    const Json* const choice = fields_.Object("tool_choice");
    if (choice == nullptr) return;
    const Json type = choice->value("type", Json());
    const Json& single = MemberOr(*choice, "disable_parallel_tool_use");
    if (!single.is_null() && !single.is_boolean())
      return fields_.Bad("tool_choice", "disable_parallel_tool_use is not true or false; give one");
    if (single == true) chat_.Put("parallel_tool_calls", "false");
    if (type == "auto" || type == "none")
      chat_.Put("tool_choice", OneLine(type));
    else if (type == "any")
      chat_.Put("tool_choice", "\"required\"");
    else if (type == "tool")
      chat_.Put("tool_choice", ObjectText()
                                   .Put("type", "\"function\"")
                                   .Put("name", OneLine(choice->value("name", Json())))
                                   .Text());
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
      fields.Integer("budget_tokens", -1, kMostAnswerTokens, budget);
    }
    const Json* const config = fields_.Object("output_config");
    if (config != nullptr) {
      constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium",
                                               "high", "xhigh",   "max"};
      JsonFields(*config, "output_config.", error_).OneOf("effort", "an effort", kEfforts, effort);
    }
    if (type == "disabled")
      chat_.Put("reasoning_effort", "\"none\"");
    else if (!effort.empty())
      chat_.Put("reasoning_effort", QuotedText(effort == "max" ? "xhigh" : effort));
    if (budget) chat_.Put("thinking_budget_tokens", std::to_string(*budget));
    const Json format = config != nullptr ? config->value("format", Json()) : Json();
    if (format.is_null()) return;
    if (!format.is_object() || format.value("type", Json()) != "json_schema")
      return fields_.Bad("output_config.format", "its type is not known; use json_schema");
    const std::string_view schema = RawMember(body_, {"output_config", "format", "schema"});
    const ObjectText named =
        ObjectText().Put("name", "\"answer\"").Put("schema", schema.empty() ? "null" : schema);
    chat_.Put("response_format",
              ObjectText().Put("type", "\"json_schema\"").Put("json_schema", named.Text()).Text());
  }

  const std::string_view body_;
  const bool counts_;
  std::optional<ApiError> error_;
  JsonFields fields_;
  ObjectText chat_;
  std::string messages_;  // the elements of a JSON list
};

// The tree of the body is gone when the chat's own is read.
Parsed<std::string> ToChatOfMessages(std::string_view body, bool counts) {
  const Parsed<Json> json = ReadJsonObject(body);
  if (!json) return Refuse(json.error());
  return MessagesReader(*json, body, counts).Read();
}

}  // namespace

Parsed<GenerationCall> ParseMessagesCall(std::string_view body, const ModelLimits& limits,
                                         bool counts) {
  const Parsed<std::string> chat = ToChatOfMessages(body, counts);
  if (!chat) return Refuse(chat.error());
  return ParseChatCall(*chat, limits);
}

}  // namespace foretoken::server
