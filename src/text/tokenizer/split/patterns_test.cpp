// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/split/patterns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <span>

#include "text/tokenizer/split/pattern_vectors_testing.h"
#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

// The vocabularies of tests/compare/pattern_vectors.py.
formats::Metadata ByteMetadata(std::string_view name) {
  std::vector<TestToken> tokens;
  std::vector<std::string> merges;
  for (unsigned byte = 0; byte < 256; ++byte) tokens.push_back({GptCharacter(byte)});
  for (const std::uint16_t pair : vectors::kPairs) {
    const std::string left = GptCharacter(pair >> 8);
    const std::string right = GptCharacter(pair & 0xFF);
    tokens.push_back({left + right});
    merges.push_back(left + " " + right);
  }
  tokens.push_back({"zqx"});
  tokens.push_back({"<s>", 0, 3});
  formats::Metadata metadata = MakeMetadata("gpt2", tokens);
  metadata.Set("tokenizer.ggml.merges", merges);
  metadata.Set("tokenizer.ggml.bos_token_id", static_cast<std::int64_t>(tokens.size() - 1));
  metadata.Set("tokenizer.ggml.pre", std::string(name));
  return metadata;
}

formats::Metadata CharacterMetadata(std::string_view name) {
  std::vector<TestToken> tokens = {{"<bos>", 0, 3}};
  std::vector<std::string> merges;
  for (unsigned byte = 0; byte < 256; ++byte)
    tokens.push_back({fmt::format("<0x{:02X}>", byte), 0, 6});
  for (const std::string_view text : vectors::kCharacters) tokens.push_back({std::string(text)});
  for (const std::string_view text : vectors::kCharacterPairs) {
    const std::size_t first = (text[0] & 0x80) == 0 ? 1 : (text[0] & 0x20) == 0 ? 2 : 3;
    tokens.push_back({std::string(text)});
    merges.push_back(std::string(text.substr(0, first)) + " " + std::string(text.substr(first)));
  }
  tokens.push_back({"\n\n"});
  formats::Metadata metadata = MakeMetadata("gpt2", tokens);
  metadata.Set("tokenizer.ggml.merges", merges);
  metadata.Set("tokenizer.ggml.bos_token_id", std::int64_t{0});
  metadata.Set("tokenizer.ggml.pre", std::string(name));
  return metadata;
}

// The ids of a group of names, by text.
template <std::size_t n_ids, std::size_t n_texts>
std::vector<std::string> GroupIds(const std::string_view (&ids)[n_ids],
                                  const std::uint8_t (&group)[n_texts]) {
  std::vector<std::string> expected;
  for (const std::uint8_t place : group) expected.emplace_back(ids[place]);
  return expected;
}

std::vector<std::string> Ids(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                             const std::vector<std::string>& expected) {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    // Where the other program refuses a text, the vectors have none.
    const bool left_out = expected[i].empty();
    ids.push_back(left_out ? "" : fmt::format("{}", fmt::join(tokenizer.Encode(texts[i]), " ")));
  }
  return ids;
}

TEST(Patterns, EveryNameGivesTheIdsOfLlamaCpp) {
  std::set<std::string_view> tested;
  for (const auto& [name, group] : vectors::kByteNames) {
    const auto tokenizer = Load(ByteMetadata(name));
    const auto expected = GroupIds(vectors::kByteIds, vectors::kByteGroups[group]);
    const auto ids = Ids(*tokenizer, vectors::kTexts, expected);
    for (std::size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ(ids[i], expected[i]) << name << ": " << vectors::kTexts[i];
    tested.insert(name);
  }
  for (const auto& [name, group] : vectors::kCharacterNames) {
    const auto tokenizer = Load(CharacterMetadata(name));
    const auto expected = GroupIds(vectors::kCharacterIds, vectors::kCharacterGroups[group]);
    const auto ids = Ids(*tokenizer, vectors::kCharacterTexts, expected);
    for (std::size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ(ids[i], expected[i]) << name << ": " << vectors::kCharacterTexts[i];
    tested.insert(name);
  }
  for (const Pattern& pattern : AllPatterns())
    EXPECT_TRUE(tested.contains(pattern.name)) << pattern.name << " has no vectors";
  EXPECT_EQ(tested.size(), AllPatterns().size());
}

// A row with another row's expressions, or another flag, must not pass.
TEST(Patterns, NoGroupPassesTheVectorsOfAnother) {
  constexpr int kGroups = std::size(vectors::kByteGroups);
  for (int group = 0; group < kGroups; ++group) {
    const auto named = std::find_if(std::begin(vectors::kByteNames), std::end(vectors::kByteNames),
                                    [&](const auto& row) { return row.group == group; });
    const auto tokenizer = Load(ByteMetadata(named->name));
    for (int other = 0; other < kGroups; ++other) {
      const auto expected = GroupIds(vectors::kByteIds, vectors::kByteGroups[other]);
      const auto ids = Ids(*tokenizer, vectors::kTexts, expected);
      EXPECT_EQ(std::equal(ids.begin(), ids.end(), expected.begin()), group == other)
          << named->name << " and group " << other;
    }
  }
}

TEST(Patterns, RowsOfOneGroupAreEqualAndOthersAreNot) {
  const auto same = [](const Pattern& a, const Pattern& b) {
    return a.rules == b.rules && a.ignore_merges == b.ignore_merges && a.add_bos == b.add_bos &&
           a.symbols == b.symbols;
  };
  for (const auto& a : vectors::kByteNames)
    for (const auto& b : vectors::kByteNames)
      EXPECT_EQ(same(FindPattern(a.name), FindPattern(b.name)), a.group == b.group)
          << a.name << " and " << b.name;
}

TEST(Patterns, AnUnknownNameIsTheDefault) {
  EXPECT_FALSE(FindPattern("no-such-thing").known);
  EXPECT_EQ(FindPattern("no-such-thing").rules, FindPattern("").rules);
  EXPECT_TRUE(FindPattern("").known);
  EXPECT_TRUE(FindPattern("default").known);
}

}  // namespace
}  // namespace foretoken::text
