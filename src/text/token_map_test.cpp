// SPDX-License-Identifier: Apache-2.0
#include "text/token_map.h"

#include <set>

#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

std::unique_ptr<Tokenizer> MappedTokenizer(const std::vector<TestToken>& tokens) {
  return *Tokenizer::Load(SpmMetadata(tokens));
}
// Ids of the tokens that are given to Of.
constexpr Token Own(int i) {
  return kFirstSpm + i;
}
std::vector<Token> Reading(const TokenMap& map, Token token) {
  const auto reading = map.Reading(token);
  return {reading.begin(), reading.end()};
}
Token CounterpartOf(const TokenMap& map, Token target) {
  for (const TokenMap::Pair& pair : map.pairs)
    if (pair.target == target) return pair.draft;
  return kNoToken;
}

TEST(TokenMap, TokensOfTheSameBytesArePairs) {
  const auto target = MappedTokenizer({{"a"}, {"b"}, {"ab"}, {"abc"}}),
             draft = MappedTokenizer({{"ab"}, {"c"}, {"b"}, {"a"}});
  const TokenMap map = MapTokens(*target, *draft);
  EXPECT_EQ(map.target, target->vocabulary_size());
  EXPECT_EQ(map.draft, draft->vocabulary_size());
  EXPECT_EQ(CounterpartOf(map, Own(0)), Own(3));
  EXPECT_EQ(CounterpartOf(map, Own(1)), Own(2));
  EXPECT_EQ(CounterpartOf(map, Own(2)), Own(0));
  EXPECT_EQ(CounterpartOf(map, Own(3)), kNoToken);
  EXPECT_EQ(Reading(map, Own(2)), std::vector<Token>{Own(0)});
  // What has no counterpart is read as its bytes.
  EXPECT_EQ(draft->Decode(map.Reading(Own(3)), false, false), "abc");
  EXPECT_EQ(Reading(map, Own(3)), (std::vector<Token>{Own(0), Own(1)}));
}

TEST(TokenMap, NoTokenComesTwiceAndEveryOneHasItsBytes) {
  const auto target = MappedTokenizer({{"a"},
                                       {"xyz"},
                                       {"\xe2\x96\x81"
                                        "the"},
                                       {"a"},
                                       {"\xc3\xa9"}});
  const auto draft = MappedTokenizer({{"\xe2\x96\x81"
                                       "the"},
                                      {"x"},
                                      {"a"},
                                      {"a"}});
  const TokenMap map = MapTokens(*target, *draft);
  std::set<Token> of_target, of_draft;
  for (const TokenMap::Pair& pair : map.pairs) {
    EXPECT_TRUE(of_target.insert(pair.target).second);
    EXPECT_TRUE(of_draft.insert(pair.draft).second);
  }
  for (Token token = 0; token < target->vocabulary_size(); ++token) {
    std::string bytes;
    for (const Token own : map.Reading(token)) bytes += draft->Piece(own);
    EXPECT_EQ(bytes, target->Piece(token)) << token;
  }
  // Two tokens have the same bytes: the first is drafted, and both are read.
  EXPECT_EQ(CounterpartOf(map, Own(3)), kNoToken);
  EXPECT_EQ(Reading(map, Own(3)), Reading(map, Own(0)));
}

TEST(TokenMap, TextAndControlTokensAreNoPairs) {
  const auto target = MappedTokenizer({{"<|end|>", 0, 3}, {"<|x|>", 0, 3}, {"<|y|>", 0, 1}});
  const auto draft = MappedTokenizer({{"<|y|>", 0, 3}, {"<|end|>", 0, 3}});
  const TokenMap map = MapTokens(*target, *draft);
  EXPECT_EQ(CounterpartOf(map, Own(0)), Own(1));
  EXPECT_EQ(CounterpartOf(map, Own(1)), kNoToken);
  EXPECT_EQ(CounterpartOf(map, Own(2)), kNoToken);
  EXPECT_TRUE(map.Reading(Own(1)).empty());  // a control token stands for no text
  EXPECT_EQ(CounterpartOf(map, *target->bos()), *draft->bos());
  EXPECT_EQ(CounterpartOf(map, *target->eos()), *draft->eos());
}

}  // namespace
}  // namespace foretoken::text
