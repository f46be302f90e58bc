// SPDX-License-Identifier: Apache-2.0
// server/api/object_text.h: writes JSON from texts that are JSON already, so that the members of what
// a client sent keep their order. The time is linear in the texts.
#pragma once

#include <string>
#include <string_view>

#include "server/api/json_fields.h"

namespace foretoken::server {

// A value on one line; bytes that are not UTF-8 become U+FFFD.
template <typename Value>
std::string OneLine(const Value& value) {
  return value.dump(-1, ' ', false, Value::error_handler_t::replace);
}

inline nlohmann::ordered_json NullIfEmpty(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

// The JSON of a text.
inline std::string QuotedText(std::string_view text) {
  return OneLine(Json(std::string(text)));
}

// Valid JSON without the white space around its values, and so without line breaks.
inline std::string WithoutSpace(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (!quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) continue;
    if (c == '"') quoted = !quoted;
    text += c;
    if (quoted && c == '\\' && i + 1 < json.size()) text += json[++i];
  }
  return text;
}

// An object, member by member. REQUIRES: no name twice.
class ObjectText {
 public:
  ObjectText& Put(std::string_view name, std::string_view json) {
    if (!members_.empty()) members_ += ", ";
    members_.append(QuotedText(name)).append(": ").append(json);
    return *this;
  }
  const std::string& members() const { return members_; }
  std::string Text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace foretoken::server
