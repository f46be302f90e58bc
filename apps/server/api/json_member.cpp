// SPDX-License-Identifier: Apache-2.0
#include "server/api/json_member.h"

#include <algorithm>
#include <map>
#include <utility>

#include "server/api/json_fields.h"

namespace foretoken::server {
namespace {

constexpr std::string_view kSpace = " \t\n\r", kByteOrderMark = "\xEF\xBB\xBF";

// A text may begin with a byte order mark.
std::size_t SkipSpace(std::string_view json, std::size_t at) {
  if (at == 0 && json.starts_with(kByteOrderMark)) at = kByteOrderMark.size();
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

bool IsObject(std::string_view json) {
  const std::size_t at = SkipSpace(json, 0);
  return at < json.size() && json[at] == '{';
}

// Calls visit(key, value) with the texts of each member of an object, the key in its quotes, until
// it returns false.
template <typename Visit>
void ForEachMember(std::string_view json, const Visit& visit) {
  if (!IsObject(json)) return;
  for (std::size_t at = SkipSpace(json, SkipSpace(json, 0) + 1);
       at < json.size() && json[at] == '"';) {
    const std::size_t key_end = EndOfString(json, at);
    const std::size_t begin = SkipSpace(json, SkipSpace(json, key_end) + 1);  // behind the colon
    const std::size_t end = EndOfValue(json, begin);
    if (!visit(json.substr(at, key_end - at), json.substr(begin, end - begin))) return;
    at = SkipSpace(json, SkipSpace(json, end) + 1);  // behind the comma
  }
}

std::string_view MemberOf(std::string_view json, std::string_view name) {
  std::string_view found;
  ForEachMember(json, [&](std::string_view key, std::string_view value) {
    if (!Names(key, name)) return true;
    found = value;
    return false;
  });
  return found;
}

// The name that a key in quotes means.
std::string NameOf(std::string_view key) {
  if (key.find('\\') == key.npos) return std::string(key.substr(1, key.size() - 2));
  return Json::parse(key).get<std::string>();
}

// The members of both objects in order, later ones in the places of earlier ones with their names.
class Members {
 public:
  void Add(std::string_view object) {
    ForEachMember(object, [this](std::string_view key, std::string_view value) {
      const auto [at, is_new] = place_of_.try_emplace(NameOf(key), members_.size());
      if (is_new)
        members_.emplace_back(key, value);
      else
        members_[at->second].second = value;
      return true;
    });
  }
  std::string Text() const {
    std::string text = "{";
    for (const auto& [key, value] : members_) {
      if (text.size() > 1) text += ", ";
      text.append(key).append(": ").append(value);
    }
    return text + "}";
  }

 private:
  std::vector<std::pair<std::string_view, std::string_view>> members_;
  std::map<std::string, std::size_t> place_of_;
};

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
  for (const std::string& object : {defaults, own})
    if (!IsObject(object) || !Json::accept(object)) return own;
  Members members;
  members.Add(defaults);
  members.Add(own);
  return members.Text();
}

}  // namespace foretoken::server
