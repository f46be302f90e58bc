// SPDX-License-Identifier: Apache-2.0
#include "server/api/reply_forms.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/json/json_reader.h"

namespace foretoken::server {
namespace {

// Reads the text from left to right. Every loop takes a character or ends.
class FormReader {
 public:
  explicit FormReader(std::string_view text) : rest_(text) {}

  Json Read() {
    Json forms = Json::object();
    for (std::string name = Word(); !name.empty() && Takes('='); name = Word()) {
      Json type = Type();
      if (!name.starts_with('_')) forms[name] = type;
      all_[std::move(name)] = std::move(type);
    }
    return forms;
  }

 private:
  char Next() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front())) != 0)
      rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool Takes(char c) {
    if (Next() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string Until(std::size_t end) {
    const std::string text(rest_.substr(0, end));
    rest_.remove_prefix(std::min(end, rest_.size()));
    return text;
  }
  std::string Word() {
    static_cast<void>(Next());
    return Until(static_cast<std::size_t>(
        std::find_if(rest_.begin(), rest_.end(),
                     [](unsigned char c) { return std::isalnum(c) == 0 && c != '_'; }) -
        rest_.begin()));
  }

  Json Type() {
    Json kinds = Json::array();
    do kinds.push_back(OneType());
    while (Takes('|'));
    if (kinds.size() == 1) return kinds.front();
    for (const auto& [each, all] : {std::pair("const", "enum"), {"type", "type"}})
      if (Json list = ValuesOf(kinds, each); !list.empty()) return {{all, std::move(list)}};
    return {{"anyOf", std::move(kinds)}};
  }

  // What all kinds have under this name, if that is all that they have; null is a type, too.
  static Json ValuesOf(const Json& kinds, const char* name) {
    const Json null = {{"type", "null"}};
    Json values = Json::array();
    for (const Json& kind : kinds) {
      const Json* const value = kind.find(name);
      if (value != nullptr && kind.size() == 1)
        values.push_back(*value);
      else if (kind == null)
        values.push_back(nullptr);
      else
        return Json::array();
    }
    return values;
  }

  Json OneType() {
    if (Takes('{')) return Object();
    if (Takes('[')) {
      if (Takes(']')) return {{"type", "array"}, {"maxItems", 0}};
      Json list = {{"type", "array"}, {"items", Type()}};
      Takes(']');
      return list;
    }
    if (Takes('\'')) {
      std::string text = Until(rest_.find('\''));
      Takes('\'');
      return {{"const", std::move(text)}};
    }
    const std::string word = Word();
    if (word == "any") return Json::object();
    if (std::isupper(static_cast<unsigned char>(word[0])) != 0) return ReplyForm(word);
    const Json value = JsonOrNull(word);
    if (!value.is_null()) return {{"const", value}};
    return {{"type", word}};
  }

  Json Object() {
    Json object = {{"type", "object"},
                   {"properties", Json::object()},
                   {"required", Json::array()},
                   {"additionalProperties", false}};
    while (!Takes('}') && !rest_.empty()) {
      if (Takes('.'))
        AddAllOf(object);
      else
        AddMember(object);
      if (!Takes(',') && Next() != '}') break;
    }
    for (const char* const name : {"properties", "required"})
      if (object[name].empty()) object.erase(name);
    return object;
  }

  void AddMember(Json& object) {
    if (Takes('*')) {
      Takes(':');
      object["additionalProperties"] = Type();
    } else if (Takes('/')) {
      Takes(':');
      object["patternProperties"]["/"] = Type();
    } else {
      const std::string name = Word();
      if (!Takes('?')) object["required"].push_back(name);
      Takes(':');
      object["properties"][name] = Type();
    }
  }

  void AddAllOf(Json& object) {
    while (Takes('.')) continue;
    const bool perhaps = Takes('?');
    const auto other = all_.find(Word());
    if (other == all_.end()) return;
    for (const auto& [name, type] : other->second["properties"].members())
      object["properties"][name] = type;
    if (!perhaps && other->second.contains("required"))
      for (const Json& name : other->second["required"]) object["required"].push_back(name);
  }

  std::string_view rest_;
  std::map<std::string, Json, std::less<>> all_;
};

}  // namespace

Json ReplyForms(std::string_view text) {
  return FormReader(text).Read();
}

Json ReplyForm(std::string_view name) {
  return {{"$ref", "#/components/schemas/" + std::string(name)}};
}

}  // namespace foretoken::server
