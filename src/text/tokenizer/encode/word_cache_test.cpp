// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/encode/word_cache.h"

#include "text/tokenizer/encode/byte_pairs.h"
#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

using Tokens = std::vector<Token>;

// A word's tokens are its bytes; counts how often a word was encoded.
class Speller {
 public:
  explicit Speller(std::size_t text_size) : words_(text_size) {}
  void Append(std::string_view word) {
    words_.Append(word, tokens_, [&] {
      ++n_encoded_;
      tokens_.insert(tokens_.end(), word.begin(), word.end());
    });
  }
  const Tokens& tokens() const { return tokens_; }
  int n_encoded() const { return n_encoded_; }

 private:
  WordCache words_;
  Tokens tokens_;
  int n_encoded_ = 0;
};

TEST(WordCache, EncodesAWordOnceUntilAnotherTakesItsPlace) {
  Speller speller(1000);
  for (const char* const word : {"ab", "ab", "ab"}) speller.Append(word);
  EXPECT_EQ(speller.n_encoded(), 1);
  // Where words lie differs from process to process.
  for (const char* const word : {"c", "ab", "abc", "ab", "c"}) speller.Append(word);
  EXPECT_GE(speller.n_encoded(), 3);
  EXPECT_EQ(speller.tokens(),
            (Tokens{'a', 'b', 'a', 'b', 'a', 'b', 'c', 'a', 'b', 'a', 'b', 'c', 'a', 'b', 'c'}));
}

TEST(WordCache, EncodesLongWordsEachTime) {
  Speller speller(1000);
  const std::string longest(21, 'a'), longer(22, 'a');
  for (int i = 0; i < 3; ++i) speller.Append(longest);
  EXPECT_EQ(speller.n_encoded(), 1);
  for (int i = 0; i < 3; ++i) speller.Append(longer);
  EXPECT_EQ(speller.n_encoded(), 4);
  EXPECT_EQ(speller.tokens(), Tokens(3 * 21 + 3 * 22, 'a'));
}

TEST(WordCache, WordsThatShareAPlaceKeepTheirTokens) {
  Speller speller(1);  // few places
  std::string text;
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    const std::string word = std::to_string(random() % 200);
    speller.Append(word);
    text += word;
  }
  EXPECT_EQ(speller.tokens(), Tokens(text.begin(), text.end()));
  EXPECT_GT(speller.n_encoded(), 1000);
}

TEST(BytePairs, JoinWhereATokenHasThem) {
  BytePairs pairs;
  pairs.Add("ab");
  EXPECT_EQ(pairs.JoinedSize("abab"), 2u);
  EXPECT_EQ(pairs.JoinedSize("ba"), 1u);
  EXPECT_EQ(pairs.JoinedSize("\u00e9"
                             "a"),
            2u);  // a whole character
}

// U+2019 begins with the same byte as the space mark and ends with another; U+1041 ends with the
// mark's last byte.
TEST(BytePairs, ASpaceMarkIsOneByte) {
  BytePairs pairs;
  pairs.Add("\u2581a");
  pairs.Add("a\u2019");
  pairs.Add(
      "\u1041"
      "b");
  EXPECT_EQ(pairs.JoinedSize("\u2581a\u2019"), 7u);
  EXPECT_EQ(pairs.JoinedSize("a\u2581"), 1u);
  EXPECT_EQ(pairs.JoinedSize("\u1041"
                             "b"),
            4u);
  EXPECT_EQ(pairs.JoinedSize("\u2581"
                             "b"),
            3u);
}

TEST(BytePairs, NeighboursThatMergeJoinWhereTheyMeet) {
  BytePairs pairs;
  pairs.Add("ab", "\u2581");
  pairs.Add("\u2581", "c");
  pairs.Add("", "a");
  EXPECT_EQ(pairs.JoinedSize("b\u2581"
                             "c"),
            5u);
  EXPECT_EQ(pairs.JoinedSize("ab"), 1u);
}

// Words of a few characters, each of which begins with `before`.
std::vector<std::string> RandomWords(std::mt19937& random, const std::string& before) {
  constexpr const char* kCharacters[] = {"a", "b", "c", "\u00e9", "\u2019", "\xff", "\U0001f600"};
  std::vector<std::string> words;
  for (int i = 0; i < 40; ++i) {
    std::string word = before;
    for (auto n = 1 + random() % 9; n > 0; --n) word += kCharacters[random() % 7];
    words.push_back(word);
  }
  return words;
}

void ExpectWordsGetTheirTokens(const Tokenizer& tokenizer, const std::string& before) {
  std::mt19937 random(1);
  const auto words = RandomWords(random, before);
  constexpr EncodeOptions kInside{.add_special = false, .continues = true};
  std::string text;
  Tokens wanted;
  for (int i = 0; i < 2000; ++i) {
    const std::string& word = words[random() % words.size()];
    text += word;
    const Tokens tokens = tokenizer.Encode(word, kInside);
    wanted.insert(wanted.end(), tokens.begin(), tokens.end());
  }
  EXPECT_EQ(tokenizer.Encode(text, kInside), wanted);
}

TEST(RepeatedWords, GetTheTokensThatTheyGetAlone) {
  ExpectWordsGetTheirTokens(*Load(SpmMetadata({{"\u2581", -9},
                                               {"a", -9},
                                               {"b", -9},
                                               {"ab", -2},
                                               {"ba", -1},
                                               {"\u2581a", -3},
                                               {"a\u2019", -3}})),
                            " ");
  ExpectWordsGetTheirTokens(*Load(GptMetadata("llama-bpe", {"a b", "b a", "\u0120 a", "ab a"})),
                            " ");
  formats::Metadata characters =
      SpmMetadata({{"a"}, {"b"}, {"c"}, {"\u2581"}, {"ab"}, {"ba"}, {"\u2581a"}});
  characters.Set("tokenizer.ggml.model", std::string("gemma4"));
  characters.Set("tokenizer.ggml.merges", std::vector<std::string>{"a b", "b a", "\u2581 a"});
  ExpectWordsGetTheirTokens(*Load(characters), " ");
}

}  // namespace
}  // namespace foretoken::text
