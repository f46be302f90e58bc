// SPDX-License-Identifier: Apache-2.0
// grammar/schema/json_tree.h: a JSON text as a tree that keeps the order of members.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "foretoken/result.h"

namespace foretoken::grammar {

struct JsonNode {
  enum class Kind { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  // The content of a string; a number as it was written (integers without -0); true or false.
  std::string text = {};
  std::vector<int> children = {};      // nodes: elements, or values of members
  std::vector<std::string> keys = {};  // of an object, beside children
  std::vector<int> by_key = {};        // places in children, ascending by key
  int parent = -1;
  int value = 0;  // equal values have equal numbers, whatever the order of members
};

class JsonTree {
 public:
  static constexpr int kRoot = 0;
  static constexpr std::size_t kMaxDepth = 64;
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

  // Errors: not JSON in UTF-8, a key that an object has twice, too long or too deep. They begin
  // with the reason.
  [[nodiscard]] static Result<JsonTree> Parse(std::string_view text);

  const JsonNode& operator[](int node) const { return nodes_[static_cast<std::size_t>(node)]; }
  // The value of an object's member; -1: there is none, or the node is not an object.
  int Find(int node, std::string_view key) const;
  // Where a JSON pointer (RFC 6901; as a URI's fragment, without #) leads; -1: nowhere.
  int Resolve(std::string_view pointer) const;
  // A node's pointer behind #, for messages: one line of plain ASCII, of bounded length.
  std::string Place(int node) const;
  // The node's value as text, without whitespace.
  std::string Compact(int node) const;

 private:
  void Add(const Json& json, int parent);
  void NumberValues();

  std::vector<JsonNode> nodes_;
};

// A client's text for a message: in single quotes, one line of plain ASCII, of bounded length.
std::string ShownText(std::string_view text);

}  // namespace foretoken::grammar
