// SPDX-License-Identifier: Apache-2.0
// server/api/object_text.h: writes JSON from texts that are JSON already, so that the members of what
// a client sent keep their order. The time is linear in the texts.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json_reader.h"

namespace foretoken::server {

// A value on one line; bytes that are not UTF-8 become U+FFFD.
inline std::string OneLine(const Json& value) {
  return value.dump();
}

inline Json NullIfEmpty(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
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

// An object with the members of both as they were written; those of `own` replace others of the same
// name. Either may be empty. If one of them is no JSON object, the result is `own`, or `defaults` where
// there is none.
inline std::string MergedObjects(const std::string& defaults, const std::string& own) {
  if (own.empty() || defaults.empty()) return own + defaults;
  auto merged = ReadJson(defaults, {.keeps_text = true});
  const auto more = ReadJson(own, {.keeps_text = true});
  if (!merged || !more || !merged->is_object() || !more->is_object()) return own;
  merged->update(*more);
  return merged->written();
}

// An object, member by member. REQUIRES: no name twice.
class ObjectText {
 public:
  ObjectText& Put(std::string_view name, std::string_view json) {
    if (!members_.empty()) members_ += ", ";
    members_.append(QuotedJson(name)).append(": ").append(json);
    return *this;
  }
  const std::string& members() const { return members_; }
  std::string Text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace foretoken::server
