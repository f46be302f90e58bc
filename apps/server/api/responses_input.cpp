// SPDX-License-Identifier: Apache-2.0
#include "server/api/responses_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "server/api/chat_messages.h"
#include "server/api/object_text.h"

namespace foretoken::server {
namespace {

// The text of a message or of a tool's output; empty after an error.
std::string TextOfItem(std::string_view name, JsonFields& fields) {
  constexpr std::array<std::string_view, 4> kTexts = {"input_text", "output_text", "text",
                                                      "refusal"};
  const Json* const content = fields.Find(name);
  if (content == nullptr) {
    fields.Bad(name, "it is missing; give a text");
    return {};
  }
  if (content->is_array())
    for (const Json& part : *content) {
      const Json type = part.is_object() ? part.value("type", Json()) : Json();
      if (type.is_string() && std::find(kTexts.begin(), kTexts.end(), type) == kTexts.end())
        fields.Bad(name,
                   fmt::format("a part of type {} is no text, and models here read texts only; "
                               "leave it out",
                               JsonFields::Shown(type)),
                   "unsupported_parameter");
    }
  return ReadContent(*content, name, fields);
}

// What the model thought, as the server has written it: the texts of an item's content. Summaries
// are other texts, and what is encrypted cannot be read.
std::string ThoughtOfItem(const Json& item) {
  std::string thought;
  const auto content = item.find("content");
  if (content == item.end() || !content->is_array()) return thought;
  for (const Json& part : *content) {
    if (!part.is_object() || part.value("type", Json()) != "reasoning_text") continue;
    const auto text = part.find("text");
    if (text != part.end() && text->is_string()) thought += text->get_ref<const std::string&>();
  }
  return thought;
}

// Reads items in order.
class InputItemsReader {
 public:
  explicit InputItemsReader(std::optional<ApiError>& error) : error_(error) {}

  void AddText(std::string_view role, const std::string& content) {
    EndTurn();
    AddMessage(ObjectText().Put("role", QuotedText(role)).Put("content", QuotedText(content)));
  }

  void Read(const Json& item, const std::string& where) {
    JsonFields fields(item, where + ".", error_);
    std::string type;
    if (!fields.Text("type", type))
      type = fields.Has("role") ? "message" : fields.Has("id") ? "item_reference" : "";
    if (type == "message") return ReadMessage(fields);
    if (type == "function_call") return ReadCall(fields);
    if (type == "function_call_output") return ReadOutput(fields);
    if (type == "reasoning") return AddThought(thought_, ThoughtOfItem(item));
    if (type == "item_reference")
      return fields.Bad("type",
                        "items are not stored here, so none can be referred to; send it whole, as "
                        "clients do that know of store false",
                        "unsupported_parameter");
    fields.Bad("type",
               fmt::format("{} is not an item that models here can read; use message, "
                           "function_call or function_call_output",
                           JsonFields::Shown(Json(type))),
               "unsupported_parameter");
  }

  std::string Take() {
    EndTurn();
    return "[" + messages_ + "]";
  }

 private:
  // What the model has thought, said and called between two other messages.
  struct Turn {
    std::string thought;
    std::optional<std::string> content;
    std::string calls;  // the elements of a JSON list
  };

  static void AddThought(std::string& thought, const std::string& more) {
    thought.append(thought.empty() || more.empty() ? "" : "\n").append(more);
  }

  // What stands before an item of the model is a thought of its turn.
  Turn& OpenTurn() {
    if (!turn_) turn_.emplace();
    AddThought(turn_->thought, std::exchange(thought_, {}));
    return *turn_;
  }

  void ReadMessage(JsonFields& fields) {
    constexpr std::array<std::string_view, 4> kRoles = {"user", "assistant", "system", "developer"};
    std::string role;
    fields.Text("role", role);
    if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end())
      fields.Bad("role", fmt::format("{} is not a role; use user, assistant, system or developer",
                                     JsonFields::Shown(Json(role))));
    std::string content = TextOfItem("content", fields);
    if (role != "assistant") return AddText(role, content);
    std::string thought = std::exchange(thought_, {});
    EndTurn();
    turn_ = Turn{.thought = std::move(thought), .content = std::move(content)};
  }

  std::string Needed(const char* name, JsonFields& fields) {
    std::string text;
    if (!fields.Text(name, text)) fields.Bad(name, "it is missing; give a text");
    return text;
  }

  void ReadCall(JsonFields& fields) {
    const std::string id = Needed("call_id", fields), name = Needed("name", fields),
                      arguments = Needed("arguments", fields);
    ObjectText function, call;
    function.Put("name", QuotedText(name)).Put("arguments", QuotedText(arguments));
    call.Put("id", QuotedText(id)).Put("type", "\"function\"").Put("function", function.Text());
    Turn& turn = OpenTurn();
    turn.calls.append(turn.calls.empty() ? "" : ", ").append(call.Text());
    name_of_[id] = name;
  }

  // Some templates write the tool's name.
  void ReadOutput(JsonFields& fields) {
    const std::string id = Needed("call_id", fields), output = TextOfItem("output", fields);
    EndTurn();
    ObjectText message;
    message.Put("role", "\"tool\"").Put("tool_call_id", QuotedText(id));
    if (const auto name = name_of_.find(id); name != name_of_.end())
      message.Put("name", QuotedText(name->second));
    AddMessage(message.Put("content", QuotedText(output)));
  }

  // A thought that nothing follows has no message.
  void EndTurn() {
    thought_.clear();
    if (!turn_) return;
    ObjectText message;
    message.Put("role", "\"assistant\"");
    message.Put("content", turn_->content ? QuotedText(*turn_->content) : "null");
    if (!turn_->thought.empty()) message.Put("reasoning_content", QuotedText(turn_->thought));
    if (!turn_->calls.empty()) message.Put("tool_calls", "[" + turn_->calls + "]");
    turn_.reset();
    AddMessage(message);
  }

  void AddMessage(const ObjectText& message) {
    messages_.append(messages_.empty() ? "" : ", ").append(message.Text());
  }

  std::optional<ApiError>& error_;
  std::string messages_;  // the elements of a JSON list
  std::optional<Turn> turn_;
  std::string thought_;                         // in front of the next item
  std::map<std::string, std::string> name_of_;  // by the id of the call
};

}  // namespace

std::string MessagesJson(const std::optional<std::string>& instructions, const Json& input,
                         JsonFields& fields, std::optional<ApiError>& error) {
  InputItemsReader reader(error);
  if (instructions) reader.AddText("system", *instructions);
  if (input.is_string()) {
    reader.AddText("user", input.get_ref<const std::string&>());
  } else if (!input.is_array() || input.empty()) {
    fields.Bad("input", "it is neither a text nor a list of items; give one of them");
  } else {
    for (std::size_t i = 0; i < input.size() && !fields.failed(); ++i) {
      const std::string where = fmt::format("input[{}]", i);
      if (input[i].is_object())
        reader.Read(input[i], where);
      else
        fields.Bad(where, "it is not an object; give {\"role\": ..., \"content\": ...}");
    }
  }
  return reader.Take();
}

}  // namespace foretoken::server
