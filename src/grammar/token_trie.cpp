// SPDX-License-Identifier: Apache-2.0
#include "grammar/token_trie.h"

#include <algorithm>
#include <numeric>

namespace foretoken::grammar {

TokenTrie::TokenTrie(std::span<const std::string> texts, std::span<const Token> end_tokens)
    : end_tokens_(end_tokens.begin(), end_tokens.end()) {
  const auto ends = [this](Token t) {
    return std::find(end_tokens_.begin(), end_tokens_.end(), t) != end_tokens_.end();
  };
  begins_.reserve(texts.size() + 1);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    begins_.push_back(bytes_.size());
    if (ends(static_cast<Token>(i))) continue;
    bytes_ += texts[i];
    if (!texts[i].empty()) tokens_.push_back(static_cast<Token>(i));
  }
  begins_.push_back(bytes_.size());
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [this](Token a, Token b) { return Text(a) < Text(b); });
  std::vector<std::int32_t> path;  // the nodes of the last text's prefixes
  std::string_view before;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const std::string_view text = Text(tokens_[i]);
    if (text != before) {
      const auto common = static_cast<std::size_t>(
          std::mismatch(before.begin(), before.end(), text.begin(), text.end()).first -
          before.begin());
      for (std::size_t d = common; d < path.size(); ++d)
        nodes_[static_cast<std::size_t>(path[d])].skip = static_cast<std::int32_t>(nodes_.size());
      path.resize(common);
      const auto n_before = nodes_.size();
      AddPrefixes(text, path);
      // The inner nodes among the new ones have no tokens: the text's tokens begin at i for all of
      // them.
      for (std::size_t n = n_before; n < nodes_.size(); ++n)
        nodes_[n].first_token = static_cast<std::int32_t>(i);
      before = text;
    }
  }
  for (const std::int32_t node : path)
    nodes_[static_cast<std::size_t>(node)].skip = static_cast<std::int32_t>(nodes_.size());
  nodes_.push_back({.first_token = static_cast<std::int32_t>(tokens_.size())});
}

void TokenTrie::AddPrefixes(std::string_view text, std::vector<std::int32_t>& path) {
  max_depth_ = std::max(max_depth_, static_cast<int>(text.size()));
  for (std::size_t d = path.size(); d < text.size(); ++d) {
    path.push_back(static_cast<std::int32_t>(nodes_.size()));
    nodes_.push_back(
        {.byte = static_cast<std::uint8_t>(text[d]), .depth = static_cast<std::int32_t>(d) + 1});
  }
}

std::string_view TokenTrie::Text(Token token) const {
  if (token < 0 || token >= vocabulary()) return {};
  const auto i = static_cast<std::size_t>(token);
  return std::string_view(bytes_).substr(begins_[i], begins_[i + 1] - begins_[i]);
}

}  // namespace foretoken::grammar
