// SPDX-License-Identifier: Apache-2.0

#include "base/failure_testing.h"
#include "text/tokenizer/encode/character_map.h"
#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

using Tokens = std::vector<Token>;
using Bytes = std::vector<std::int64_t>;

// <pad> </s> <unk>, then the given ones from 3 on.
formats::Metadata UnigramMetadata(const std::vector<TestToken>& tokens, bool space_prefix = false) {
  std::vector<TestToken> all = {{"<pad>", 0, 3}, {"</s>", 0, 3}, {"<unk>", 0, 2}};
  all.insert(all.end(), tokens.begin(), tokens.end());
  formats::Metadata metadata = MakeMetadata("t5", all);
  metadata.Set("tokenizer.ggml.add_space_prefix", space_prefix);
  return metadata;
}

// A compiled map with one entry: "A" becomes "ab". The children of the root are at 256 ^ label.
Bytes MapOfOneLetter() {
  std::vector<std::uint32_t> trie(512);
  trie[0] = 256u << 10;
  trie[256 ^ 'A'] = 'A' | 1u << 8 | 1u << 10;  // its value is at the place ^ 1
  trie[256 ^ 'A' ^ 1] = 0x80000001u;           // the replacement at place 1
  Bytes bytes;
  const auto add = [&](std::uint32_t word) {
    for (int i = 0; i < 4; ++i) bytes.push_back(word >> (8 * i) & 0xFF);
  };
  add(static_cast<std::uint32_t>(trie.size() * 4));
  for (const std::uint32_t entry : trie) add(entry);
  for (const char c : {'\0', 'a', 'b', '\0'}) bytes.push_back(c);
  return bytes;
}

TEST(Unigram, TakesTheBestSumOfScores) {
  const auto t = Load(UnigramMetadata({{"a", -2}, {"b", -2}, {"ab", -3}, {"abc", -9}, {"c", -4}}));
  EXPECT_EQ(Encode(*t, "ab"), (Tokens{5}));
  EXPECT_EQ(Encode(*t, "abc"), (Tokens{5, 7}));  // -7 beats -9
  EXPECT_EQ(Encode(*t, "ba"), (Tokens{4, 3}));
}

TEST(Unigram, TheFirstOfEqualSumsStays) {
  const auto t = Load(UnigramMetadata({{"a", -1}, {"b", -1}, {"ab", -2}}));
  // The way that ends in the earlier beginning was found first.
  EXPECT_EQ(Encode(*t, "ab"), (Tokens{5}));
}

TEST(Unigram, NeighbouringUnknownCharactersAreOneToken) {
  const auto t = Load(UnigramMetadata({{"a", -1}}));
  EXPECT_EQ(Encode(*t, "axyaé"), (Tokens{3, 2, 3, 2}));
  EXPECT_EQ(Encode(*t, "a\xFF\xFE"), (Tokens{3, 2}));
}

TEST(Unigram, AddsEosUnlessTheFileSays) {
  formats::Metadata metadata = UnigramMetadata({{"a", -1}});
  EXPECT_EQ(Load(metadata)->Encode("a"), (Tokens{3, 1}));
  metadata.Set("tokenizer.ggml.add_eos_token", false);
  EXPECT_EQ(Load(metadata)->Encode("a"), (Tokens{3}));
}

TEST(Unigram, SpacesFollowTheRulesOfTheFile) {
  const std::vector<TestToken> tokens = {{"▁", -5}, {"a", -5}, {"▁a", -6}};
  EXPECT_EQ(Encode(*Load(UnigramMetadata(tokens)), "a  a"), (Tokens{4, 3, 5}));
  EXPECT_EQ(Encode(*Load(UnigramMetadata(tokens, true)), "a  a"), (Tokens{5, 3, 5}));
  formats::Metadata merged = UnigramMetadata(tokens, true);
  merged.Set("tokenizer.ggml.remove_extra_whitespaces", true);
  EXPECT_EQ(Encode(*Load(merged), "  a   a  "), (Tokens{5, 5}));
  EXPECT_EQ(Load(merged)->Decode(Tokens{5, 5}), "a a");
}

TEST(Unigram, UserDefinedTokensAreFoundFirst) {
  const auto t = Load(UnigramMetadata({{"a", -1}, {"<x>", 0, 4}, {"<", -1}, {"x", -1}, {">", -1}}));
  EXPECT_EQ(Encode(*t, "a<x>a"), (Tokens{3, 4, 3}));
}

TEST(Unigram, ReplacesCharactersByTheMap) {
  formats::Metadata metadata = UnigramMetadata({{"a", -1}, {"b", -1}, {"A", -1}});
  EXPECT_EQ(Encode(*Load(metadata), "Aa"), (Tokens{5, 3}));
  metadata.Set("tokenizer.ggml.precompiled_charsmap", MapOfOneLetter());
  EXPECT_EQ(Encode(*Load(metadata), "Aa"), (Tokens{3, 4, 3}));
}

TEST(CharacterMap, FindsTheLongestSequence) {
  const auto map = CharacterMap::Read(MapOfOneLetter());
  ASSERT_TRUE(map);
  EXPECT_EQ(map->Find("AA").size, 1u);
  EXPECT_EQ(map->Find("AA").replacement, "ab");
  EXPECT_EQ(map->Find("B").size, 0u);
  EXPECT_EQ(map->Find(std::string_view("\0", 1)).size, 0u);
}

TEST(CharacterMap, RefusesWhatIsDamaged) {
  const auto refused = [](const Bytes& bytes, std::string_view why) {
    formats::Metadata metadata = UnigramMetadata({{"a", -1}});
    metadata.Set("tokenizer.ggml.precompiled_charsmap", bytes);
    EXPECT_TRUE(Fails(Tokenizer::Load(metadata), ErrorCode::kInvalidFile, why));
  };
  refused({}, "shorter than its header");
  refused({1, 0, 0}, "shorter than its header");
  refused({6, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 0}, "part of an entry");
  refused({0, 0, 0, 0, 0}, "part of an entry");
  refused({255, 255, 255, 255, 0}, "part of an entry");
  refused({252, 255, 255, 255, 0}, "ends inside its trie");
  refused({4, 0, 0, 0, 1, 2, 3, 4}, "ends inside its trie");
  refused({4, 0, 0, 0, 1, 2, 3, 4, 'a'}, "without an end");
  refused({4, 0, 0, 300}, "no bytes");
  formats::Metadata metadata = UnigramMetadata({{"a", -1}});
  metadata.Set("tokenizer.ggml.precompiled_charsmap", std::string("text"));
  EXPECT_FALSE(Tokenizer::Load(metadata));
}

TEST(CharacterMap, ADamagedTrieMatchesNothingOutsideItself) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    Bytes bytes = {static_cast<std::int64_t>(64), 0, 0, 0};
    for (int j = 0; j < 64; ++j) bytes.push_back(random() % 256);
    for (const char c : {'a', '\0'}) bytes.push_back(c);
    const auto map = CharacterMap::Read(bytes);
    ASSERT_TRUE(map);
    for (int j = 0; j < 20; ++j) {
      const std::string text = RandomBytes(random, 300);
      EXPECT_LE(map->Find(text).size, text.size());
    }
  }
}

}  // namespace
}  // namespace foretoken::text
