// SPDX-License-Identifier: Apache-2.0
#include "server/api/chat_messages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

namespace foretoken::server {
namespace {

constexpr int kMaxMessages = 4096;
constexpr std::size_t kNamesShown = 16;  // of members without effect

bool IsNothing(const Json& value) {
  return value.is_null() || (value.is_structured() && value.empty()) || value == "";
}

// One message; `others` gets the names of members that have no effect.
ChatMessage ReadMessage(const Json& value, const std::string& where, std::optional<ApiError>& error,
                        std::set<std::string>& others) {
  JsonFields fields(value, where + ".", error);
  ChatMessage message;
  fields.Text("role", message.role);
  if (message.role == "developer") message.role = "system";  // OpenAI's newer name
  if (message.role == "tool" || message.role == "function")
    fields.Bad("role", fmt::format("'{}' is not a role here, where models call no tools; use "
                                   "system, user or assistant",
                                   message.role));
  if (message.role != "system" && message.role != "user" && message.role != "assistant")
    fields.Bad("role", fmt::format("'{}' is not a role; use system, user or assistant",
                                   Shown(message.role, 32)));
  const bool answer = message.role == "assistant";
  for (const char* const call : {"tool_calls", "function_call"}) {
    const Json* const calls = fields.FindForeign(call);
    if (calls != nullptr && !IsNothing(*calls))
      fields.Bad(call, "models here call no tools; leave it out", "unsupported_parameter");
  }
  const Json* const content = fields.Find("content");
  std::string refusal;  // what OpenAI's models say instead of an answer
  fields.Text("refusal", refusal);
  if (content != nullptr)
    message.content = ReadContent(*content, "content", fields);
  else if (answer)
    message.content = refusal;
  else
    fields.Bad("content", "it is missing; give a text");
  for (const std::string& name : fields.Others())
    if (others.size() < kNamesShown && !IsNothing(value.value(name, Json()))) others.insert(name);
  return message;
}

// The text of a part of a message; nothing if it has none.
std::optional<std::string> TextOf(const Json& part) {
  // The names that OpenAI's other API uses for the parts of questions and answers.
  constexpr std::array<std::pair<std::string_view, const char*>, 4> kKinds = {
      {{"text", "text"}, {"input_text", "text"}, {"output_text", "text"}, {"refusal", "refusal"}}};
  if (!part.is_object()) return std::nullopt;
  const Json type = part.value("type", Json());
  for (const auto& [kind, member] : kKinds) {
    const Json text = part.value(member, Json());
    if (type == kind && text.is_string()) return text.get<std::string>();
  }
  return std::nullopt;
}

}  // namespace

std::vector<ChatMessage> ReadMessages(JsonFields& fields, std::optional<ApiError>& error,
                                      std::vector<std::string>& notices) {
  std::vector<ChatMessage> messages;
  const Json* const value = fields.Find("messages");
  if (value == nullptr || !value->is_array() || value->empty() || value->size() > kMaxMessages) {
    fields.Bad("messages",
               fmt::format("it is not a list of 1 to {} messages; give one", kMaxMessages));
    return messages;
  }
  std::set<std::string> others;
  for (std::size_t i = 0; i < value->size() && !fields.failed(); ++i) {
    const std::string where = fmt::format("messages[{}]", i);
    if ((*value)[i].is_object())
      messages.push_back(ReadMessage((*value)[i], where, error, others));
    else
      fields.Bad(where, "it is not an object; give {\"role\": ..., \"content\": ...}");
  }
  if (!others.empty())
    notices.push_back(fmt::format("messages: {}: the template writes roles and texts only",
                                  fmt::join(others, ", ")));
  return messages;
}

std::string ReadContent(const Json& content, std::string_view where, JsonFields& fields) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  bool good = content.is_array();
  if (good)
    for (const Json& part : content) {
      const std::optional<std::string> piece = TextOf(part);
      good &= piece.has_value();
      text += piece.value_or("");
    }
  if (!good)
    fields.Bad(where,
               "it is not a text; give one, or a list of {\"type\": \"text\", \"text\": ...}");
  return text;
}

}  // namespace foretoken::server
