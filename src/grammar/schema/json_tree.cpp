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

}  // namespace

Result<JsonTree> JsonTree::Parse(std::string_view text) {
  if (text.size() > kMaxBytes)
    return Fail(ErrorCode::kTooLarge, fmt::format("{} bytes are more than {}; give a shorter one",
                                                  text.size(), kMaxBytes));
  if (text.find('\0') != text.npos)
    return Fail(ErrorCode::kInvalidArgument, "there is a NUL byte in it; take it out");
  auto json = ReadJson(
      text, {.most_depth = kMaxDepth, .distinct = JsonLimits::Distinct::kAll, .keeps_text = true});
  if (!json) return NotRead(json.error());
  JsonTree tree;
  tree.json_ = std::make_unique<const Json>(*std::move(json));
  tree.Add(*tree.json_, -1);
  tree.NumberValues();
  return tree;
}

void JsonTree::Add(const Json& json, int parent) {
  CountWork();
  const auto node = nodes_.size();
  nodes_.push_back({&json, parent});
  const auto add = [&](const Json& child) {
    nodes_[node].children.push_back(static_cast<int>(nodes_.size()));
    Add(child, static_cast<int>(node));
  };
  for (const Json& element : json) add(element);
  for (const Json::Member& member : json.members()) add(member.value);
}

// Children are behind their parents.
void JsonTree::NumberValues() {
  std::unordered_map<std::string, int, SeededHasher> numbers;
  for (int node = static_cast<int>(nodes_.size()); node-- > 0;) {
    const Json& json = (*this)[node];
    const std::vector<int>& children = Children(node);
    CountWork(1 + children.size());
    std::string name = json.is_object() ? "{" : json.is_array() ? "[" : Compact(node);
    std::vector<std::size_t> order(children.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (json.is_object())
      std::ranges::sort(order, {}, [&json](std::size_t i) -> const std::string& {
        return json.members()[i].name;
      });
    for (const std::size_t i : order) {
      if (json.is_object()) name += QuotedJson(json.members()[i].name);
      name += fmt::format("{},", ValueNumber(children[i]));
    }
    nodes_[static_cast<std::size_t>(node)].value =
        numbers.try_emplace(std::move(name), static_cast<int>(numbers.size())).first->second;
  }
}

// An object's values stand in memory in the order of its children, so the child is found by its value's address.
int JsonTree::Find(int node, std::string_view key) const {
  const Json* const value = (*this)[node].find(key);
  if (value == nullptr) return -1;
  return *std::ranges::lower_bound(Children(node), value, {},
                                   [this](int child) { return &(*this)[child]; });
}

int JsonTree::Resolve(std::string_view pointer) const {
  int node = kRoot;
  while (!pointer.empty() && node >= 0) {
    if (pointer.front() != '/') return -1;
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    const std::string key = Unescaped(pointer.substr(1, end - 1));
    pointer.remove_prefix(end);
    if (!(*this)[node].is_array()) {
      node = Find(node, key);
      continue;
    }
    std::size_t index = 0;
    const auto [stop, problem] = std::from_chars(key.data(), key.data() + key.size(), index);
    const std::vector<int>& elements = Children(node);
    const bool good = problem == std::errc() && stop == key.data() + key.size();
    node = good && index < elements.size() ? elements[index] : -1;
  }
  return node;
}

std::string JsonTree::Place(int node) const {
  std::vector<std::string> steps;
  for (int parent; (parent = At(node).parent) >= 0; node = parent) {
    const std::vector<int>& beside = Children(parent);
    const auto at = static_cast<std::size_t>(std::ranges::find(beside, node) - beside.begin());
    const auto members = (*this)[parent].members();
    steps.push_back(members.empty() ? std::to_string(at) : members[at].name);
  }
  std::reverse(steps.begin(), steps.end());
  return PlaceOf(steps);
}

std::string JsonTree::Text(int node) const {
  const Json& json = (*this)[node];
  return json.is_string() ? json.text() : json.is_structured() ? "" : Compact(node);
}

std::string ShownText(std::string_view text) {
  return "'" + Plain(text, kShownBytes) + "'";
}

}  // namespace foretoken::grammar
