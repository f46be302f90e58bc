// SPDX-License-Identifier: Apache-2.0
#include "grammar/grammar_cache.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foretoken::grammar {
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
  const std::weak_ptr<const Grammar> first = *cache.Get(Numbered(0)),
                                     second = *cache.Get(Numbered(1));
  for (int i = 2; i < static_cast<int>(GrammarCache::kMostIdle); ++i)
    ASSERT_TRUE(cache.Get(Numbered(i)));
  EXPECT_EQ(*cache.Get(Numbered(0)), first.lock());
  ASSERT_TRUE(cache.Get(Numbered(100)));
  ASSERT_TRUE(cache.Get(Numbered(101)));
  EXPECT_FALSE(first.expired());
  EXPECT_TRUE(second.expired());
}

TEST(GrammarCache, KeepsThoseInUseUntilTheirLastUserGoes) {
  auto cache = MakeCache();
  auto used = *cache.Get(Numbered(0));
  const std::weak_ptr<const Grammar> watched = used;
  for (int i = 1; i < 100; ++i) ASSERT_TRUE(cache.Get(Numbered(i)));
  EXPECT_EQ(*cache.Get(Numbered(0)), used);
  for (int i = 1; i < 100; ++i) ASSERT_TRUE(cache.Get(Numbered(i)));
  used.reset();
  cache.Bound();
  EXPECT_TRUE(watched.expired());
}

// Follows texts in the nested grammar until its states take about `bytes`.
void Fill(const Grammar& grammar, std::size_t bytes) {
  Grammar::State state = grammar.Start();
  while (grammar.bytes() < bytes) {
    state = grammar.After(state, std::string(1000, 'a'));
    ASSERT_NE(state, Grammar::kUnknown);
  }
}

std::string Nested(int i) {
  return "root ::= \"a\" root \"b\" | \"" + std::to_string(i) + "\"";
}

TEST(GrammarCache, HoldsToItsBytesWhileGrammarsAreInUse) {
  constexpr std::size_t kMaxBytes = std::size_t{4} << 20;
  auto cache = MakeCache(kMaxBytes);
  std::vector<std::shared_ptr<const Grammar>> used;
  std::size_t most = 0;
  for (int i = 0; i < 8; ++i) {
    const auto grammar = cache.Get(Nested(i));
    ASSERT_TRUE(grammar) << grammar.error().message;
    used.push_back(*grammar);
    Fill(*used.back(), std::size_t{1} << 20);
    most = std::max(most, cache.bytes());
    cache.Bound();
    EXPECT_LE(cache.bytes(), kMaxBytes);
  }
  EXPECT_GT(most, kMaxBytes);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(*cache.Get(Nested(i)), used[static_cast<std::size_t>(i)]);
}

TEST(GrammarCache, GivesBackWhatALowerLimitDoesNotAllow) {
  auto cache = MakeCache();
  const auto used = *cache.Get(Nested(0));
  Fill(*used, std::size_t{4} << 20);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(cache.Get(Numbered(i)));
  constexpr std::size_t kLower = std::size_t{1} << 20;
  cache.Limit(kLower);
  EXPECT_LE(cache.bytes(), kLower);
  EXPECT_EQ(*cache.Get(Nested(0)), used);
  EXPECT_TRUE(cache.Get(Numbered(100)));
  cache.Limit(used->bytes());
  const auto refused = cache.Get(Numbered(101));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNoMemory);
}

TEST(GrammarCache, RefusesOneMoreWhereThoseInUseTakeAll) {
  auto cache = MakeCache(std::size_t{1} << 20);
  std::vector<std::shared_ptr<const Grammar>> used;
  std::string message;
  for (int i = 0; i < 100 && message.empty(); ++i) {
    auto grammar = cache.Get(Numbered(i) + " " + std::string(1000, '.'));
    if (grammar)
      used.push_back(*grammar);
    else
      message = grammar.error().message;
  }
  EXPECT_GT(used.size(), 1u);
  EXPECT_NE(message.find("requests in progress take 1 MiB"), message.npos) << message;
  EXPECT_LE(cache.bytes(), std::size_t{1} << 20);
  used.clear();
  EXPECT_TRUE(cache.Get(Numbered(1000)));
}

TEST(GrammarCache, KeepsNothingOfWhatCannotBeRead) {
  auto cache = MakeCache();
  EXPECT_FALSE(cache.Get("root ="));
  EXPECT_FALSE(cache.Get("root ="));
  EXPECT_TRUE(cache.Get(Numbered(1)));
}

}  // namespace
}  // namespace foretoken::grammar
