// SPDX-License-Identifier: Apache-2.0
// grammar/token_trie.h: the texts of a vocabulary's tokens, as a tree of their prefixes.
//
// Built once per vocabulary (about 100 ms for 128,000 tokens), then immutable: any thread may read
// it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace foretoken::grammar {

class TokenTrie {
 public:
  // A prefix, one byte longer than its parent's. Nodes are in the order of a depth-first walk, so a
  // prefix's extensions are the nodes before `skip`.
  struct Node {
    std::uint8_t byte = 0;
    std::int32_t depth = 0;  // bytes of the prefix
    std::int32_t skip = 0;   // the next node that does not extend this prefix
    // With exactly this text, up to the next node's first_token.
    std::int32_t first_token = 0;
  };

  // texts: the bytes that each token stands for, "" if it stands for none. Control tokens have their
  // ControlLiteral (grammar/control_literal.h), and no other token has such bytes.
  // end_tokens end a text; they stand for no bytes, whatever `texts` says.
  TokenTrie(std::span<const std::string> texts, std::span<const Token> end_tokens);

  int vocabulary() const { return static_cast<int>(begins_.size()) - 1; }
  std::span<const Token> end_tokens() const { return end_tokens_; }
  std::span<const Node> nodes() const { return std::span(nodes_).first(nodes_.size() - 1); }
  std::span<const Token> TokensAt(std::size_t node) const {
    const auto begin = static_cast<std::size_t>(nodes_[node].first_token);
    const auto end = static_cast<std::size_t>(nodes_[node + 1].first_token);
    return std::span(tokens_).subspan(begin, end - begin);
  }
  int max_depth() const { return max_depth_; }
  // "" for tokens without a text and those beyond the vocabulary.
  std::string_view Text(Token token) const;

 private:
  void AddPrefixes(std::string_view text, std::vector<std::int32_t>& path);

  std::vector<Node> nodes_;  // with one more at the end
  std::vector<Token> tokens_, end_tokens_;
  std::string bytes_;                // all texts
  std::vector<std::size_t> begins_;  // [vocabulary + 1]: where each begins
  int max_depth_ = 0;
};

}  // namespace foretoken::grammar
