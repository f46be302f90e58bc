// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema/json_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/json/json_reader.h"
#include "base/seeded_hash.h"
#include "base/work_count.h"

namespace foretoken::grammar {

namespace {

constexpr std::size_t kShownBytes = 48, kShownPlaceBytes = 200;

// For messages: escapes everything but plain ASCII, and cuts long texts.
std::string Plain(std::string_view text, std::size_t most) {
  std::string plain;
  for (const char c : text) {
    if (plain.size() >= most) return plain + "...";
    const auto byte = static_cast<unsigned char>(c);
    plain += byte >= 0x20 && byte < 0x7F ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return plain;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Decodes one step of a pointer: first %25 to %, then ~1 to / and ~0 to ~.
std::string Unescaped(std::string_view step) {
  std::string bytes, key;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const int high = step[i] == '%' && i + 2 < step.size() ? HexDigit(step[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(step[i + 2]) : -1;
    bytes += low >= 0 ? static_cast<char>(high * 16 + low) : step[i];
    if (low >= 0) i += 2;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char next = bytes[i] == '~' && i + 1 < bytes.size() ? bytes[i + 1] : '\0';
    key += next == '0' ? '~' : next == '1' ? '/' : bytes[i];
    if (next == '0' || next == '1') ++i;
  }
  return key;
}

// The pointer to a value, by the names and numbers that lead to it.
std::string PlaceOf(const std::vector<std::string>& steps) {
  std::string place;
  for (const std::string& step : steps) {
    place += '/';
    for (const char c : Plain(step, kShownBytes))
      place += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  if (place.size() > kShownPlaceBytes)
    place = "/..." + place.substr(place.size() - kShownPlaceBytes);
  return "#" + place;
}

tl::unexpected<Error> NotRead(const JsonError& error) {
  if (error.kind == JsonError::Kind::kDepth)
    return Fail(ErrorCode::kTooLarge,
                fmt::format("it is nested deeper than {}; use $defs and $ref, or flatten it",
                            JsonTree::kMaxDepth));
  if (error.kind == JsonError::Kind::kTwice)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: {} is given twice; keep one", PlaceOf(error.path), ShownText(error.name)));
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("byte {}: it is not valid JSON in UTF-8; correct it", error.byte));
}

JsonNode::Kind KindOf(const Json& json) {
  using Kind = JsonNode::Kind;
  return json.is_null()      ? Kind::kNull
         : json.is_boolean() ? Kind::kBoolean
         : json.is_integer() ? Kind::kInteger
         : json.is_number()  ? Kind::kNumber
         : json.is_string()  ? Kind::kString
         : json.is_array()   ? Kind::kArray
                             : Kind::kObject;
}

std::string TextOf(const Json& json) {
  if (json.is_structured()) return {};
  if (json.is_string()) return json.text();
  return json.kind() == Json::Kind::kNumber ? json.written() : json.dump();
}

}  // namespace

Result<JsonTree> JsonTree::Parse(std::string_view text) {
  if (text.size() > kMaxBytes)
    return Fail(ErrorCode::kTooLarge, fmt::format("{} bytes are more than {}; give a shorter one",
                                                  text.size(), kMaxBytes));
  if (text.find('\0') != text.npos)
    return Fail(ErrorCode::kInvalidArgument, "there is a NUL byte in it; take it out");
  const auto json = ReadJson(
      text, {.most_depth = kMaxDepth, .distinct = JsonLimits::Distinct::kAll, .keeps_text = true});
  if (!json) return NotRead(json.error());
  JsonTree tree;
  tree.Add(*json, -1);
  tree.NumberValues();
  return tree;
}

void JsonTree::Add(const Json& json, int parent) {
  CountWork();
  const auto node = nodes_.size();
  nodes_.push_back({.kind = KindOf(json), .text = TextOf(json), .parent = parent});
  const auto add = [&](const Json& child) {
    nodes_[node].children.push_back(static_cast<int>(nodes_.size()));
    Add(child, static_cast<int>(node));
  };
  for (const Json& element : json) add(element);
  for (const auto& [name, value] : json.members()) {
    nodes_[node].keys.push_back(name);
    add(value);
  }
  std::vector<int>& by_key = nodes_[node].by_key;
  const std::vector<std::string>& keys = nodes_[node].keys;
  by_key.resize(keys.size());
  std::iota(by_key.begin(), by_key.end(), 0);
  std::sort(by_key.begin(), by_key.end(), [&keys](int a, int b) {
    return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
  });
}

// Children are behind their parents.
void JsonTree::NumberValues() {
  std::unordered_map<std::string, int, SeededHasher> numbers;
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    CountWork(1 + node->children.size());
    std::string name = std::to_string(static_cast<int>(node->kind)) + node->text;
    const bool is_object = node->kind == JsonNode::Kind::kObject;
    for (std::size_t i = 0; i < node->children.size(); ++i) {
      const auto at = is_object ? static_cast<std::size_t>(node->by_key[i]) : i;
      if (is_object) name += QuotedJson(node->keys[at]);
      name += fmt::format("{},", (*this)[node->children[at]].value);
    }
    node->value =
        numbers.try_emplace(std::move(name), static_cast<int>(numbers.size())).first->second;
  }
}

int JsonTree::Find(int node, std::string_view key) const {
  const JsonNode& object = (*this)[node];
  const auto found = std::lower_bound(
      object.by_key.begin(), object.by_key.end(), key,
      [&](int i, std::string_view k) { return object.keys[static_cast<std::size_t>(i)] < k; });
  if (found == object.by_key.end() || object.keys[static_cast<std::size_t>(*found)] != key)
    return -1;
  return object.children[static_cast<std::size_t>(*found)];
}

int JsonTree::Resolve(std::string_view pointer) const {
  int node = kRoot;
  while (!pointer.empty() && node >= 0) {
    if (pointer.front() != '/') return -1;
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    const std::string key = Unescaped(pointer.substr(1, end - 1));
    pointer.remove_prefix(end);
    if ((*this)[node].kind != JsonNode::Kind::kArray) {
      node = Find(node, key);
      continue;
    }
    std::size_t index = 0;
    const auto [stop, problem] = std::from_chars(key.data(), key.data() + key.size(), index);
    const auto& elements = (*this)[node].children;
    const bool good = problem == std::errc() && stop == key.data() + key.size();
    node = good && index < elements.size() ? elements[index] : -1;
  }
  return node;
}

std::string JsonTree::Place(int node) const {
  std::vector<std::string> steps;
  for (int parent; (parent = (*this)[node].parent) >= 0; node = parent) {
    const JsonNode& above = (*this)[parent];
    const auto at = static_cast<std::size_t>(
        std::find(above.children.begin(), above.children.end(), node) - above.children.begin());
    steps.push_back(above.keys.empty() ? std::to_string(at) : above.keys[at]);
  }
  std::reverse(steps.begin(), steps.end());
  return PlaceOf(steps);
}

std::string JsonTree::Compact(int node) const {
  const JsonNode& value = (*this)[node];
  switch (value.kind) {
    case JsonNode::Kind::kString:
      return QuotedJson(value.text);
    case JsonNode::Kind::kArray:
    case JsonNode::Kind::kObject: {
      const bool is_object = value.kind == JsonNode::Kind::kObject;
      std::string text;
      for (std::size_t i = 0; i < value.children.size(); ++i) {
        text += text.empty() ? "" : ",";
        if (is_object) text += QuotedJson(value.keys[i]) + ":";
        text += Compact(value.children[i]);
      }
      return is_object ? "{" + text + "}" : "[" + text + "]";
    }
    default:
      return value.text;
  }
}

std::string ShownText(std::string_view text) {
  return "'" + Plain(text, kShownBytes) + "'";
}

}  // namespace foretoken::grammar
