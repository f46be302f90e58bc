// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/encode/prefix_index.h: which tokens are spelled at a place of a text, byte by byte.
//
// The tokens are sorted by text, and the range of those with a common prefix acts as a trie node.
// So the index takes one number a token, however long their texts are.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace foretoken::text {

// Immutable once built. Keeps views into the texts.
class PrefixIndex {
 public:
  struct Entry {
    std::string_view text;  // not empty
    Token token;
  };

  PrefixIndex() = default;
  explicit PrefixIndex(std::vector<Entry> entries);

  struct Node {
    std::uint32_t low = 0;
    std::uint32_t high = 0;  // the entries low to high - 1 begin with the bytes so far
    std::uint32_t depth = 0;
  };
  Node Root() const { return {0, static_cast<std::uint32_t>(entries_.size()), 0}; }

  // Goes one byte further; false if no entry has it.
  bool Step(Node& node, char byte) const;

  // The token whose text ends at the node, or kNoToken. Of equal texts the first one given counts.
  Token At(const Node& node) const {
    const bool ends = node.low < node.high && entries_[node.low].text.size() == node.depth;
    return ends ? entries_[node.low].token : kNoToken;
  }

 private:
  std::vector<Entry> entries_;
  std::array<std::uint32_t, 257> first_{};  // where the entries with each first byte begin
};

}  // namespace foretoken::text
