// SPDX-License-Identifier: Apache-2.0
#include "sampling/grammar_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace foretoken::sampling {
namespace {

GrammarCache MakeCache(std::size_t max_bytes = GrammarCache::kMaxBytes) {
  const std::vector<std::string> texts = {"a", "b", "c"};
  return GrammarCache(std::make_shared<const TokenTrie>(texts, std::vector<Token>()), {},
                      max_bytes);
}

std::string Numbered(int i) {
  return "root ::= \"" + std::to_string(i) + "\"";
}

TEST(GrammarCache, GivesTheSameObjectForTheSameText) {
  auto cache = MakeCache();
  const auto first = *cache.Get(Numbered(1));
  EXPECT_NE(*cache.Get(Numbered(2)), first);
  EXPECT_EQ(*cache.Get(Numbered(1)), first);
}

TEST(GrammarCache, DropsThoseThatWereNotAskedForTheLongest) {
  auto cache = MakeCache();
  const auto first = *cache.Get(Numbered(0)), second = *cache.Get(Numbered(1));
  for (int i = 2; i < static_cast<int>(GrammarCache::kMost); ++i)
    ASSERT_TRUE(cache.Get(Numbered(i)));
  EXPECT_EQ(*cache.Get(Numbered(0)), first);
  ASSERT_TRUE(cache.Get(Numbered(100)));
  EXPECT_EQ(*cache.Get(Numbered(0)), first);
  EXPECT_NE(*cache.Get(Numbered(1)), second);
}

TEST(GrammarCache, MakesOneAnewThatHasGrownTooLarge) {
  constexpr std::size_t kMaxBytes = 1 << 20;
  auto cache = MakeCache(kMaxBytes);
  const std::string gbnf = "root ::= \"a\" root \"b\" | \"c\"";
  const auto first = *cache.Get(gbnf);
  const std::string deeper(1000, 'a');
  Grammar::State state = first->start();
  while (first->bytes() < kMaxBytes) state = first->After(state, deeper);
  EXPECT_EQ(*cache.Get(gbnf), first);  // for a request that has it already; it is let go then
  EXPECT_NE(*cache.Get(gbnf), first);
}

TEST(GrammarCache, KeepsNothingOfWhatCannotBeRead) {
  auto cache = MakeCache();
  EXPECT_FALSE(cache.Get("root ="));
  EXPECT_FALSE(cache.Get("root ="));
  EXPECT_TRUE(cache.Get(Numbered(1)));
}

}  // namespace
}  // namespace foretoken::sampling
