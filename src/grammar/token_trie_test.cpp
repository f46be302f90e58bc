// SPDX-License-Identifier: Apache-2.0
#include "grammar/token_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace foretoken::grammar {
namespace {

TEST(TokenTrie, HasEachPrefixOnceAndEachTokenAtItsText) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> texts(random() % 60);
    for (std::string& text : texts) {
      text.resize(random() % 6);
      for (char& c : text) c = static_cast<char>("ab\xC3\xA9"[random() % 4]);
    }
    const TokenTrie trie(texts, {});
    std::map<std::string, std::set<Token>> expected, actual;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      for (std::size_t n = 1; n <= texts[i].size(); ++n) expected[texts[i].substr(0, n)];
      if (!texts[i].empty()) expected[texts[i]].insert(static_cast<Token>(i));
      EXPECT_EQ(trie.Text(static_cast<Token>(i)), texts[i]);
    }
    std::string prefix;
    const auto nodes = trie.nodes();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      ASSERT_LE(nodes[i].depth, trie.max_depth());
      prefix.resize(static_cast<std::size_t>(nodes[i].depth) - 1);
      prefix += static_cast<char>(nodes[i].byte);
      ASSERT_FALSE(actual.contains(prefix));
      const auto tokens = trie.TokensAt(i);
      actual[prefix] = {tokens.begin(), tokens.end()};
      std::size_t skip = i + 1;
      while (skip < nodes.size() && nodes[skip].depth > nodes[i].depth) ++skip;
      ASSERT_EQ(nodes[i].skip, static_cast<std::int32_t>(skip));
    }
    EXPECT_EQ(actual, expected);
  }
}

TEST(TokenTrie, EndTokensStandForNoText) {
  const std::vector<std::string> texts = {"a", "<end>", ""};
  const std::vector<Token> ends = {1};
  const TokenTrie trie(texts, ends);
  EXPECT_EQ(trie.vocabulary(), 3);
  EXPECT_EQ(trie.Text(1), "");
  EXPECT_EQ(trie.Text(-1), "");
  EXPECT_EQ(trie.Text(3), "");
  EXPECT_EQ(trie.nodes().size(), 1u);
}

}  // namespace
}  // namespace foretoken::grammar
