// SPDX-License-Identifier: Apache-2.0
#include "server/api/responses_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/json/json_reader.h"
#include "server/api/chat_messages.h"
#include "server/api/stored_items.h"

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
      const Json& type = part.at("type");
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
  for (const Json& part : item.at("content"))
    if (part.at("type") == "reasoning_text" && part.at("text").is_string())
      thought += part.at("text").text();
  return thought;
}

void AddThought(std::string& thought, const std::string& more) {
  thought.append(thought.empty() || more.empty() ? "" : "\n").append(more);
}

std::string TypeOf(JsonFields& fields) {
  std::string type;
  if (!fields.Text("type", type))
    type = fields.Has("role") ? "message" : fields.Has("id") ? "item_reference" : "";
  return type;
}

std::string Needed(const char* name, JsonFields& fields) {
  std::string text;
  if (!fields.Text(name, text)) fields.Bad(name, "it is missing; give a text");
  return text;
}

}  // namespace

void InputItems::AddText(std::string_view role, const std::string& content) {
  EndTurn();
  messages_.push_back({{"role", role}, {"content", content}});
}

void InputItems::AddEarlier(const std::string& response_id) {
  if (error_) return;
  const auto items = earlier_.Until(response_id);
  if (!items) return void(error_ = items.error());
  for (const StoredItem* const item : *items) {
    ids_.insert(item->id);
    ReadStored(JsonOrNull(item->json), "previous_response_id.");
  }
}

void InputItems::AddInput(const Json& input, JsonFields& fields) {
  if (input.is_string()) {
    AddText("user", input.text());
    return Store({{"content", input.text()}, {"role", "user"}}, "message");
  }
  if (!input.is_array() || input.empty())
    return fields.Bad("input", "it is neither a text nor a list of items; give one of them");
  for (std::size_t i = 0; i < input.size() && !error_; ++i) {
    const std::string where = fmt::format("input[{}]", i);
    if (input[i].is_object())
      AddItem(input[i], where);
    else
      fields.Bad(where, "it is not an object; give {\"role\": ..., \"content\": ...}");
  }
}

void InputItems::AddItem(const Json& item, const std::string& where) {
  JsonFields fields(item, where + ".", error_);
  const std::string type = TypeOf(fields);
  if (type == "item_reference") return AddReferred(fields);
  Read(item, type, fields);
  Store(item, type);
}

void InputItems::AddReferred(JsonFields& fields) {
  const std::string id = Needed("id", fields);
  if (error_) return;
  const auto found = earlier_.Output(id);
  if (!found) return void(error_ = found.error());
  if (*found == nullptr)
    return fields.Bad(
        "id",
        fmt::format("no item {} is kept for this client; send it whole, as clients do "
                    "that know of store false",
                    JsonFields::Shown(Json(id))),
        "item_not_found");
  const Json item = ReadJson((*found)->json, {.keeps_text = true}).value_or(Json());
  Store(item, ReadStored(item, "input."));
}

// Returns its type. No error is to be expected, as it was read or written here before.
std::string InputItems::ReadStored(const Json& item, const char* where) {
  JsonFields fields(item, where, error_);
  std::string type = TypeOf(fields);
  Read(item, type, fields);
  return type;
}

void InputItems::Read(const Json& item, const std::string& type, JsonFields& fields) {
  if (type == "message") return ReadMessage(fields);
  if (type == "function_call") return ReadCall(fields);
  if (type == "function_call_output") return ReadOutput(fields);
  if (type == "reasoning") return AddThought(thought_, ThoughtOfItem(item));
  fields.Bad("type",
             fmt::format("{} is not an item that models here can read; use message, "
                         "function_call or function_call_output",
                         JsonFields::Shown(Json(type))),
             "unsupported_parameter");
}

void InputItems::Store(const Json& item, const std::string& type) {
  if (error_ || !store_) return;
  std::string id = OwnIdOf(item);
  if (id.empty() || !ids_.insert(id).second) id = earlier_.NewId(IdPrefixOf(type));
  stored_.push_back({id, StoredItemJson(item, type, id)});
}

void InputItems::ReadMessage(JsonFields& fields) {
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

// What stands before an item of the model is a thought of its turn.
InputItems::Turn& InputItems::OpenTurn() {
  if (!turn_) turn_.emplace();
  AddThought(turn_->thought, std::exchange(thought_, {}));
  return *turn_;
}

void InputItems::ReadCall(JsonFields& fields) {
  const std::string id = Needed("call_id", fields), name = Needed("name", fields),
                    arguments = Needed("arguments", fields);
  OpenTurn().calls.push_back(
      {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}});
  name_of_[id] = name;
}

// Some templates write the tool's name.
void InputItems::ReadOutput(JsonFields& fields) {
  const std::string id = Needed("call_id", fields), output = TextOfItem("output", fields);
  EndTurn();
  Json message = {{"role", "tool"}, {"tool_call_id", id}};
  if (const auto name = name_of_.find(id); name != name_of_.end()) message["name"] = name->second;
  message["content"] = output;
  messages_.push_back(std::move(message));
}

// A thought that nothing follows has no message.
void InputItems::EndTurn() {
  thought_.clear();
  if (!turn_) return;
  Json message = {{"role", "assistant"},
                  {"content", turn_->content ? Json(*turn_->content) : Json()}};
  if (!turn_->thought.empty()) message["reasoning_content"] = turn_->thought;
  if (!turn_->calls.empty()) message["tool_calls"] = std::move(turn_->calls);
  turn_.reset();
  messages_.push_back(std::move(message));
}

Json InputItems::TakeMessages() {
  EndTurn();
  return std::move(messages_);
}

}  // namespace foretoken::server
