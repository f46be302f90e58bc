// SPDX-License-Identifier: Apache-2.0
#include "server/api/stored_items.h"

#include "server/api/json_member.h"
#include "server/api/object_text.h"

namespace foretoken::server {
namespace {

constexpr std::size_t kMostIdBytes = 128;

// A text as the only part of a message's content.
std::string PartsOfText(const Json& text, bool of_model) {
  ObjectText part;
  part.Put("type", of_model ? "\"output_text\"" : "\"input_text\"").Put("text", OneLine(text));
  if (of_model) part.Put("annotations", "[]");
  return "[" + part.Text() + "]";
}

}  // namespace

std::string OwnIdOf(const Json& item) {
  const auto id = item.find("id");
  if (id == item.end() || !id->is_string()) return {};
  const std::string& text = id->get_ref<const std::string&>();
  return text.size() <= kMostIdBytes ? text : std::string();
}

std::string_view IdPrefixOf(std::string_view type) {
  if (type == "message") return "msg";
  if (type == "function_call") return "fc";
  return type == "reasoning" ? "rs" : "fco";
}

std::string StoredItemJson(const Json& item, std::string_view raw, std::string_view type,
                           const std::string& id) {
  ObjectText first, replaced;
  for (ObjectText* const object : {&first, &replaced})
    object->Put("id", QuotedText(id)).Put("type", QuotedText(type));
  first.Put("status", "\"completed\"");
  if (const auto content = item.find("content");
      type == "message" && content != item.end() && content->is_string())
    replaced.Put("content", PartsOfText(*content, item.value("role", Json()) == "assistant"));
  return WithoutSpace(
      MergedObjects(MergedObjects(first.Text(), std::string(raw)), replaced.Text()));
}

}  // namespace foretoken::server
