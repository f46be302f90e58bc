// SPDX-License-Identifier: Apache-2.0
#include "server/api/chat_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "server/api/body_limits.h"

namespace foretoken::server {
namespace {

bool IsNothing(const Json& value) {
  return value.is_null() || (value.is_structured() && value.empty()) || value == "";
}

// Whether the message has a member that only templates know.
bool HasMore(const Json& message) {
  std::size_t n = 0;
  for (const char* const name : {"role", "content", "refusal"}) n += message.contains(name) ? 1 : 0;
  return message.size() > n;
}

ChatMessage ReadMessage(const Json& value, const std::string& where,
                        std::optional<ApiError>& error) {
  constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                      "tool"};
  JsonFields fields(value, where + ".", error);
  ChatMessage message;
  fields.Text("role", message.role);
  if (std::find(kRoles.begin(), kRoles.end(), message.role) == kRoles.end())
    fields.Bad("role",
               fmt::format("'{}' is not a role; use system, developer, user, assistant or tool",
                           Shown(message.role, 32)));
  const bool answer = message.role == "assistant";
  const Json* const call = fields.FindForeign("function_call");
  if (call != nullptr && !IsNothing(*call))
    fields.Bad("function_call", "it is not known here; use tool_calls", "unsupported_parameter");
  const Json* const content = fields.Find("content");
  std::string refusal;  // what OpenAI's models say instead of an answer
  fields.Text("refusal", refusal);
  if (content != nullptr)
    message.content = ReadContent(*content, "content", fields);
  else if (answer)
    message.content = refusal;
  else
    fields.Bad("content", "it is missing; give a text");
  fields.FindForeign("tool_calls");
  [[maybe_unused]] const auto others = fields.Others();  // a mistyped name is an error
  if (HasMore(value)) message.members_json = value.written();
  return message;
}

// The text of a part of a message; nothing if it has none.
std::optional<std::string> TextOf(const Json& part) {
  // The names that OpenAI's other API uses for the parts of questions and answers.
  constexpr std::array<std::pair<std::string_view, const char*>, 4> kKinds = {
      {{"text", "text"}, {"input_text", "text"}, {"output_text", "text"}, {"refusal", "refusal"}}};
  if (!part.is_object()) return std::nullopt;
  const Json& type = part.at("type");
  for (const auto& [kind, member] : kKinds) {
    const Json& text = part.at(member);
    if (type == kind && text.is_string()) return text.text();
  }
  return std::nullopt;
}

}  // namespace

std::vector<ChatMessage> ReadMessages(JsonFields& fields) {
  std::vector<ChatMessage> messages;
  const Json* const value = fields.Find("messages");
  if (value == nullptr || !value->is_array() || value->empty() || value->size() > kMostMessages) {
    fields.Bad("messages",
               fmt::format("it is not a list of 1 to {} messages; give one", kMostMessages));
    return messages;
  }
  for (std::size_t i = 0; i < value->size() && !fields.failed(); ++i) {
    const std::string where = fmt::format("messages[{}]", i);
    if ((*value)[i].is_object())
      messages.push_back(ReadMessage((*value)[i], where, fields.error()));
    else
      fields.Bad(where, "it is not an object; give {\"role\": ..., \"content\": ...}");
  }
  return messages;
}

std::string ReadContent(const Json& content, std::string_view where, JsonFields& fields) {
  if (content.is_string()) return content.text();
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
