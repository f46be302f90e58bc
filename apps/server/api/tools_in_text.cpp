// SPDX-License-Identifier: Apache-2.0
#include "server/api/tools_in_text.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/json/json_reader.h"

namespace foretoken::server {
namespace {

std::string Description(std::string_view tools_json) {
  std::string lines;
  const auto tools = ReadJson(tools_json, {.keeps_text = true});
  for (const Json& tool : tools.value_or(Json())) lines.append(tool.written()).append("\n");
  return "# Tools\n\nYou may call these functions:\n<tools>\n" + lines +
         "</tools>\n\nTo call one, write:\n<tool_call>\n"
         "{\"name\": <name>, \"arguments\": <object>}\n</tool_call>";
}

// The call as the model writes it; "" if it is none.
std::string CallText(const Json& call) {
  const Json &name = call.at("function").at("name"),
             &arguments = call.at("function").at("arguments");
  if (!name.is_string()) return {};
  const std::string object = arguments.is_string()   ? arguments.text()
                             : arguments.is_object() ? arguments.written()
                                                     : "{}";
  return fmt::format("<tool_call>\n{{\"name\": {}, \"arguments\": {}}}\n</tool_call>",
                     name.written(), object);
}

void WriteCalls(ChatMessage& message) {
  if (message.role == "tool") {
    message = {.role = "user",
               .content = "<tool_response>\n" + message.content + "\n</tool_response>"};
    return;
  }
  if (message.role != "assistant" || message.members_json.empty()) return;
  const auto members = ReadJson(message.members_json, {.keeps_text = true});
  if (!members || !members->at("tool_calls").is_array()) return;
  for (const Json& call : members->at("tool_calls")) {
    const std::string text = CallText(call);
    if (!text.empty()) message.content += (message.content.empty() ? "" : "\n") + text;
  }
  const Json* const thought = members->find("reasoning_content");
  message.members_json = thought == nullptr ? "" : Json{{"reasoning_content", *thought}}.written();
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
