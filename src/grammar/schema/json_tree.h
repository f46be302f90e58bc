// SPDX-License-Identifier: Apache-2.0
// grammar/schema/json_tree.h: the values of a JSON text, with numbers that name them and their places.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "foretoken/result.h"

namespace foretoken::grammar {

class JsonTree {
 public:
  static constexpr int kRoot = 0;
  static constexpr std::size_t kMaxDepth = 64;
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

  // The text must outlive the tree. Errors: not JSON in UTF-8, a key that an object has twice, too long
  // or too deep. They begin with the reason.
  [[nodiscard]] static Result<JsonTree> Parse(std::string_view text);

  const Json& operator[](int node) const { return *At(node).json; }
  // The elements, or the values of members.
  const std::vector<int>& Children(int node) const { return At(node).children; }
  // Equal values have equal numbers, whatever the order of members.
  int ValueNumber(int node) const { return At(node).value; }
  // The value of an object's member; -1: there is none, or the node is not an object.
  int Find(int node, std::string_view key) const;
  // Where a JSON pointer (RFC 6901; as a URI's fragment, without #) leads; -1: nowhere.
  int Resolve(std::string_view pointer) const;
  // A node's pointer behind #, for messages: one line of plain ASCII, of bounded length.
  std::string Place(int node) const;
  // The node's value as text, without whitespace; numbers as they were written (integers without -0).
  std::string Compact(int node) const {
    return (*this)[node].dump({.source = JsonStyle::Source::kNumbers});
  }
  // The content of a string; other values as Compact; "" for lists and objects.
  std::string Text(int node) const;

 private:
  struct Node {
    const Json* json;
    int parent;
    std::vector<int> children = {};
    int value = 0;
  };

  const Node& At(int node) const { return nodes_[static_cast<std::size_t>(node)]; }
  void Add(const Json& json, int parent);
  void NumberValues();

  std::unique_ptr<const Json> json_;
  std::vector<Node> nodes_;
};

// A client's text for a message: in single quotes, one line of plain ASCII, of bounded length.
std::string ShownText(std::string_view text);

}  // namespace foretoken::grammar
