// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema/json_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/quoted_json.h"
#include "base/seeded_hash.h"
#include "base/work_count.h"

namespace foretoken::grammar {

// Handles the events of nlohmann's reader, which does not recurse.
class JsonTreeBuilder {
 public:
  using Kind = JsonNode::Kind;

  bool null() { return Leaf(Kind::kNull, "null"); }
  bool boolean(bool value) { return Leaf(Kind::kBoolean, value ? "true" : "false"); }
  bool number_integer(std::int64_t value) { return Leaf(Kind::kInteger, std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) { return Leaf(Kind::kInteger, std::to_string(value)); }
  bool number_float(double, const std::string& written) { return Leaf(Kind::kNumber, written); }
  bool string(std::string& value) { return Leaf(Kind::kString, std::move(value)); }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return Open(Kind::kObject); }
  bool start_array(std::size_t) { return Open(Kind::kArray); }
  bool key(std::string& name) {
    CountWork();
    tree_.nodes_[static_cast<std::size_t>(open_.back())].keys.push_back(std::move(name));
    return true;
  }
  bool end_object() {
    JsonNode& object = tree_.nodes_[static_cast<std::size_t>(open_.back())];
    object.by_key.resize(object.keys.size());
    std::iota(object.by_key.begin(), object.by_key.end(), 0);
    const auto key_of = [&object](int i) -> const std::string& {
      return object.keys[static_cast<std::size_t>(i)];
    };
    std::sort(object.by_key.begin(), object.by_key.end(),
              [&](int a, int b) { return key_of(a) < key_of(b); });
    const auto twice = std::adjacent_find(object.by_key.begin(), object.by_key.end(),
                                          [&](int a, int b) { return key_of(a) == key_of(b); });
    if (twice != object.by_key.end())
      return Stop(fmt::format("{}: {} is given twice; keep one", tree_.Place(open_.back()),
                              ShownText(key_of(*twice))));
    open_.pop_back();
    return true;
  }
  bool end_array() { return open_.pop_back(), true; }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    return Stop(fmt::format("byte {}: it is not valid JSON in UTF-8; correct it", position));
  }

  JsonTree Take() { return std::move(tree_); }
  const Error& problem() const { return problem_; }

 private:
  bool Stop(std::string why, ErrorCode code = ErrorCode::kInvalidArgument) {
    if (problem_.message.empty()) problem_ = {code, std::move(why)};
    return false;
  }

  bool Leaf(Kind kind, std::string text) {
    CountWork();
    const auto node = static_cast<int>(tree_.nodes_.size());
    const int parent = open_.empty() ? -1 : open_.back();
    tree_.nodes_.push_back({.kind = kind, .text = std::move(text), .parent = parent});
    if (parent >= 0) tree_.nodes_[static_cast<std::size_t>(parent)].children.push_back(node);
    return true;
  }

  bool Open(Kind kind) {
    if (open_.size() >= JsonTree::kMaxDepth)
      return Stop(fmt::format("it is nested deeper than {}; use $defs and $ref, or flatten it",
                              JsonTree::kMaxDepth),
                  ErrorCode::kTooLarge);
    Leaf(kind, {});
    open_.push_back(static_cast<int>(tree_.nodes_.size()) - 1);
    return true;
  }

  JsonTree tree_;
  std::vector<int> open_;
  Error problem_;
};

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

}  // namespace

Result<JsonTree> JsonTree::Parse(std::string_view text) {
  if (text.size() > kMaxBytes)
    return Fail(ErrorCode::kTooLarge, fmt::format("{} bytes are more than {}; give a shorter one",
                                                  text.size(), kMaxBytes));
  // The library would take a zero byte for the end.
  if (text.find('\0') != text.npos)
    return Fail(ErrorCode::kInvalidArgument, "there is a NUL byte in it; take it out");
  JsonTreeBuilder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder))
    return Fail(builder.problem());
  JsonTree tree = builder.Take();
  tree.NumberValues();
  return tree;
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
  std::string place;
  for (int parent; (parent = (*this)[node].parent) >= 0; node = parent) {
    const JsonNode& above = (*this)[parent];
    const auto at = static_cast<std::size_t>(
        std::find(above.children.begin(), above.children.end(), node) - above.children.begin());
    std::string step = above.kind == JsonNode::Kind::kArray ? std::to_string(at)
                                                            : Plain(above.keys[at], kShownBytes);
    std::string escaped = "/";
    for (const char c : step) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    place.insert(0, escaped);
  }
  if (place.size() > kShownPlaceBytes)
    place = "/..." + place.substr(place.size() - kShownPlaceBytes);
  return "#" + place;
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
