// SPDX-License-Identifier: Apache-2.0
#include "server/api/stored_items.h"

#include "server/api/object_text.h"

namespace foretoken::server {
namespace {

constexpr std::size_t kMostIdBytes = 128;

// A text as the only part of a message's content.
Json PartsOfText(const std::string& text, bool of_model) {
  Json part = {{"type", of_model ? "output_text" : "input_text"}, {"text", text}};
  if (of_model) part["annotations"] = Json::array();
  return Json::array({std::move(part)});
}

}  // namespace

std::string OwnIdOf(const Json& item) {
  if (!item.at("id").is_string()) return {};
  const std::string& text = item.at("id").text();
  return text.size() <= kMostIdBytes ? text : std::string();
}

std::string_view IdPrefixOf(std::string_view type) {
  if (type == "message") return "msg";
  if (type == "function_call") return "fc";
  return type == "reasoning" ? "rs" : "fco";
}

std::string StoredItemJson(const Json& item, std::string_view type, const std::string& id) {
  Json stored = {{"id", id}, {"type", type}, {"status", "completed"}};
  stored.update(item);
  stored.update({{"id", id}, {"type", type}});
  if (const Json& content = item.at("content"); type == "message" && content.is_string())
    stored["content"] = PartsOfText(content.text(), item.at("role") == "assistant");
  return WithoutSpace(stored.written());
}

}  // namespace foretoken::server
