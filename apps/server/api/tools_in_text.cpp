// SPDX-License-Identifier: Apache-2.0
#include "server/api/tools_in_text.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "server/api/json_member.h"
#include "server/api/json_tree.h"

namespace foretoken::server {
namespace {

std::string Description(std::string_view tools_json) {
  std::string lines;
  for (const std::string_view tool : RawElements(tools_json)) lines.append(tool).append("\n");
  return "# Tools\n\nYou may call these functions:\n<tools>\n" + lines +
         "</tools>\n\nTo call one, write:\n<tool_call>\n"
         "{\"name\": <name>, \"arguments\": <object>}\n</tool_call>";
}

// The call as the model writes it; "" if it is none.
std::string CallText(std::string_view call) {
  const Parsed<Json> json = ReadJsonObject(call);
  if (!json) return {};
  const Json function = json->value("function", Json());
  if (!function.is_object() || !function.value("name", Json()).is_string()) return {};
  const Json arguments = function.value("arguments", Json());
  std::string object = "{}";
  if (arguments.is_string())
    object = arguments.get<std::string>();
  else if (arguments.is_object())
    object = RawMember(call, {"function", "arguments"});
  return fmt::format("<tool_call>\n{{\"name\": {}, \"arguments\": {}}}\n</tool_call>",
                     RawMember(call, {"function", "name"}), object);
}

void WriteCalls(ChatMessage& message) {
  if (message.role == "tool") {
    message = {.role = "user",
               .content = "<tool_response>\n" + message.content + "\n</tool_response>"};
    return;
  }
  if (message.role != "assistant" || message.members_json.empty()) return;
  const std::string_view calls = RawMember(message.members_json, {"tool_calls"});
  if (!calls.starts_with('[')) return;
  for (const std::string_view call : RawElements(calls)) {
    const std::string text = CallText(call);
    if (!text.empty()) message.content += (message.content.empty() ? "" : "\n") + text;
  }
  const std::string_view thought = RawMember(message.members_json, {"reasoning_content"});
  std::string members =
      thought.empty() ? "" : fmt::format(R"({{"reasoning_content": {}}})", thought);
  message.members_json = std::move(members);
}

}  // namespace

std::vector<ChatMessage> WithToolsInText(std::vector<ChatMessage> messages,
                                         std::string_view tools_json) {
  for (ChatMessage& message : messages) WriteCalls(message);
  if (tools_json.empty()) return messages;
  const std::string description = Description(tools_json);
  if (!messages.empty() && (messages[0].role == "system" || messages[0].role == "developer"))
    messages[0].content += "\n\n" + description;
  else
    messages.insert(messages.begin(), {.role = "system", .content = description});
  return messages;
}

}  // namespace foretoken::server
