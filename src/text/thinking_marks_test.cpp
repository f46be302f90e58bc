// SPDX-License-Identifier: Apache-2.0
#include "text/thinking_marks.h"

#include <gtest/gtest.h>

#include "text/fake_tokenizer_testing.h"

namespace foretoken::text {
namespace {

// Texts of several letters are tokens behind the letters.
class WordTokenizer final : public FakeTokenizer {
 public:
  explicit WordTokenizer(std::vector<std::string> words)
      : FakeTokenizer(26), words_(std::move(words)) {}
  std::vector<Token> Encode(std::string_view text, EncodeOptions) const override {
    for (std::size_t i = 0; i < words_.size(); ++i)
      if (words_[i] == text) return {26 + static_cast<Token>(i)};
    return std::vector<Token>(text.size());
  }
  const std::string& TokenText(Token token) const override {
    return token < 26 ? FakeTokenizer::TokenText(token)
                      : words_[static_cast<std::size_t>(token - 26)];
  }

 private:
  std::vector<std::string> words_;
};

// After each token, whether the next one belongs to a part that thinks.
std::string Walked(const ThinkingMarks& marks, const std::vector<Token>& tokens) {
  std::string thinks;
  ThinkingPlace place;
  for (const Token token : tokens) {
    marks.Follow(token, place);
    thinks += place.thinks ? '1' : '0';
  }
  return thinks;
}

std::string WhyNot(const Tokenizer& tokenizer, std::string_view chat_template,
                   std::string_view begin = "", std::string_view end = "") {
  const auto marks = ThinkingMarks::Find(tokenizer, chat_template, begin, end);
  return marks ? "" : marks.error().message;
}

TEST(ThinkingMarks, AreFoundInTheTemplateAndElseInTheVocabulary) {
  const WordTokenizer letters({}), words({"[THINK]", "[/THINK]", "<think>"});
  const auto of = [](const Tokenizer& tokenizer, std::string_view chat_template) {
    const auto marks = ThinkingMarks::Find(tokenizer, chat_template, "", "");
    return marks ? marks->begin() + " " + marks->end() : "";
  };
  EXPECT_EQ(of(letters, "{{ '<think>\\n' }}{{ content.split('</think>') }}"), "<think> </think>");
  EXPECT_EQ(of(letters, "a <|channel|>analysis<|message|> b <|end|>"),
            "<|channel|>analysis<|message|> <|end|>");
  EXPECT_EQ(of(words, ""), "[THINK] [/THINK]");
  EXPECT_EQ(of(words, "{{ x }}"), "[THINK] [/THINK]");
  EXPECT_EQ(WhyNot(letters, "{{ '<think>' }}"),
            "use_relaxed_acceptance_for_thinking: neither the model's chat template nor its "
            "vocabulary tells where it thinks; give thinking_begin and thinking_end, or leave it "
            "out");
}

TEST(ThinkingMarks, ThatAreTokensAreTheseTokens) {
  const WordTokenizer words({"<b>", "</b>", "<", "b", ">"});
  const auto marks = ThinkingMarks::Find(words, "", "<b>", "</b>");
  ASSERT_TRUE(marks);
  EXPECT_EQ(Walked(*marks, {1, 27, 26, 2, 26, 27, 3, 26}), "00111001");
  EXPECT_EQ(Walked(*marks, {28, 29, 30, 3}), "0000");  // the same text
}

TEST(ThinkingMarks, ThatAreSeveralTokensAreFoundHoweverTokensDivideThem) {
  const WordTokenizer words({"x<t", "h>", "<th", ">y</t", "h>z", "<", "t<th>", "</th><th></th>q"});
  const auto marks = ThinkingMarks::Find(words, "", "<th>", "</th>");
  ASSERT_TRUE(marks);
  EXPECT_EQ(Walked(*marks, {26, 27, 5, 29, 30, 6}), "011100");
  EXPECT_EQ(Walked(*marks, {28, 29, 30}), "010");
  EXPECT_EQ(Walked(*marks, {31, 28, 29}), "001");  // "<<th>..."
  EXPECT_EQ(Walked(*marks, {26, 32}), "01");       // "x<tt<th>"
  EXPECT_EQ(Walked(*marks, {28, 29, 33}), "010");  // it ends, begins and ends again
}

TEST(ThinkingMarks, MayBeginAgainWithinThemselves) {
  const WordTokenizer words({"<", "<<"});
  const auto marks = ThinkingMarks::Find(words, "", "<<t", "<</t");
  ASSERT_TRUE(marks);
  EXPECT_EQ(Walked(*marks, {26, 26, 26, 19, 0}), "00011");  // "<<<t"
  EXPECT_EQ(Walked(*marks, {27, 26, 19, 0}), "0011");
}

TEST(ThinkingMarks, OneMayBeATokenAndTheOtherSeveral) {
  const WordTokenizer words({"<b>", "e", "nd", "<b>end"});
  const auto marks = ThinkingMarks::Find(words, "", "<b>", "end");
  ASSERT_TRUE(marks);
  EXPECT_EQ(Walked(*marks, {26, 27, 28, 26, 29}), "11010");
}

TEST(ThinkingMarks, ThatCannotBeFoundAreRefused) {
  const WordTokenizer words({"two words"});
  EXPECT_EQ(WhyNot(words, "", "<b>"),
            "thinking_begin, thinking_end: one of them is given; give both, or none");
  EXPECT_EQ(WhyNot(words, "", "two words", "</b>"), "");
  EXPECT_EQ(WhyNot(words, "", "<b>", "no token"),
            "thinking_end: 'no token' is no token of the model's, and not 1 to 64 printable ASCII "
            "characters without spaces; give such a text");
  EXPECT_NE(WhyNot(words, "", std::string(65, 'x'), "</b>"), "");
}

}  // namespace
}  // namespace foretoken::text
