// SPDX-License-Identifier: Apache-2.0
#include "server/api/json_member.h"

#include <algorithm>

#include "server/api/json_fields.h"

namespace foretoken::server {
namespace {

constexpr std::string_view kSpace = " \t\n\r";

std::size_t SkipSpace(std::string_view json, std::size_t at) {
  return std::min(json.find_first_not_of(kSpace, at), json.size());
}

// The place behind the string that begins at its quote.
std::size_t EndOfString(std::string_view json, std::size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at)
    if (json[at] == '\\') ++at;
  return std::min(at + 1, json.size());
}

std::size_t EndOfValue(std::string_view json, std::size_t at) {
  int depth = 0;
  while (at < json.size()) {
    const char c = json[at];
    if (depth == 0 && (c == ',' || c == '}' || c == ']' || kSpace.find(c) != kSpace.npos)) break;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    at = c == '"' ? EndOfString(json, at) : at + 1;
    if (depth == 0 && (c == '}' || c == ']' || c == '"')) break;
  }
  return at;
}

// Escapes count as the characters that they stand for.
bool Names(std::string_view key, std::string_view name) {
  return key.find('\\') == key.npos ? key.substr(1, key.size() - 2) == name
                                    : Json::parse(key, nullptr, false) == Json(name);
}

std::string_view MemberOf(std::string_view json, std::string_view name) {
  std::size_t at = SkipSpace(json, 0);
  if (at >= json.size() || json[at] != '{') return {};
  for (at = SkipSpace(json, at + 1); at < json.size() && json[at] == '"';) {
    const std::size_t key_end = EndOfString(json, at);
    const std::size_t begin = SkipSpace(json, SkipSpace(json, key_end) + 1);  // behind the colon
    const std::size_t end = EndOfValue(json, begin);
    if (Names(json.substr(at, key_end - at), name)) return json.substr(begin, end - begin);
    at = SkipSpace(json, SkipSpace(json, end) + 1);  // behind the comma
  }
  return {};
}

}  // namespace

std::string_view RawMember(std::string_view json, std::initializer_list<std::string_view> path) {
  for (const std::string_view name : path) json = MemberOf(json, name);
  return json;
}

std::vector<std::string_view> RawElements(std::string_view json) {
  std::vector<std::string_view> elements;
  for (std::size_t at = SkipSpace(json, 1); at < json.size() && json[at] != ']';) {
    const std::size_t end = EndOfValue(json, at);
    elements.push_back(json.substr(at, end - at));
    at = SkipSpace(json, end);
    if (at < json.size() && json[at] == ',') at = SkipSpace(json, at + 1);
  }
  return elements;
}

std::string MergedObjects(const std::string& defaults, const std::string& own) {
  if (own.empty()) return defaults;
  if (defaults.empty()) return own;
  using Ordered = nlohmann::ordered_json;
  Ordered merged = Ordered::parse(defaults, nullptr, false);
  const Ordered more = Ordered::parse(own, nullptr, false);
  if (!merged.is_object() || !more.is_object()) return own;
  merged.update(more);
  return merged.dump(-1, ' ', false, Ordered::error_handler_t::replace);
}

}  // namespace foretoken::server
