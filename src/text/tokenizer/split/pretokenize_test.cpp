// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/split/pretokenize.h"

#include <gtest/gtest.h>

#include <set>

namespace foretoken::text {
namespace {

using Words = std::vector<std::string>;

Words Split(std::string_view pre, std::string_view text) {
  const Pretokenizer pretokenizer(*FindPattern(pre).rules);
  Words words;
  for (const std::uint32_t length : pretokenizer.Split(text)) {
    words.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  EXPECT_TRUE(text.empty());
  return words;
}

TEST(Pretokenize, Gpt2KeepsContractionsAndTheSpaceBeforeAWord) {
  EXPECT_EQ(Split("gpt-2", "I'll say it's  1234 (or so)!\n"),
            (Words{"I", "'ll", " say", " it", "'s", " ", " 1234", " (", "or", " so", ")!", "\n"}));
  EXPECT_EQ(Split("gpt-2", "IT'S"), (Words{"IT", "'", "S"}));
}

TEST(Pretokenize, Gpt2LeavesTheLastSpaceOfARunToTheWord) {
  EXPECT_EQ(Split("gpt-2", "a   b \t\n c  "), (Words{"a", "  ", " b", " \t\n", " c", "  "}));
}

TEST(Pretokenize, Llama3SplitsDigitsInThreesAndKeepsNewlinesWithPunctuation) {
  EXPECT_EQ(Split("llama-bpe", "We'RE 12345, ok?\n\n  x"),
            (Words{"We", "'RE", " ", "123", "45", ",", " ok", "?\n\n", " ", " x"}));
  EXPECT_EQ(Split("llama-bpe", "(a \n\n b\tc"), (Words{"(a", " \n\n", " b", "\tc"}));
}

TEST(Pretokenize, Qwen2SplitsEveryDigit) {
  EXPECT_EQ(Split("qwen2", "x 123's"), (Words{"x", " ", "1", "2", "3", "'s"}));
}

TEST(Pretokenize, Qwen35KeepsMarksWithTheirLetters) {
  EXPECT_EQ(Split("qwen35", "हिन्दी"), (Words{"हिन्दी"}));
  EXPECT_EQ(Split("qwen2", "हिन्"), (Words{"ह", "िन", "्"}));  // a mark joins the letters after it
}

TEST(Pretokenize, SmolLmSplitsEveryDigitFirst) {
  EXPECT_EQ(Split("smollm", "a 12 b's"), (Words{"a", " ", "1", "2", " b", "'s"}));
}

TEST(Pretokenize, DefaultSplitsPunctuationFirstAndDigitsInThrees) {
  EXPECT_EQ(Split("default", "it's $x1 12345!"),
            (Words{"it", "'", "s", " ", "$", "x", "1", " ", "123", "45", "!"}));
  EXPECT_EQ(Split("", "12345"), Split("default", "12345"));
}

TEST(Pretokenize, FalconSplitsBackticksWithPunctuation) {
  EXPECT_EQ(Split("falcon", "a `b` 1234"), (Words{"a", " ", "`", "b", "`", " ", "123", "4"}));
}

TEST(Pretokenize, DeepSeek3SplitsIdeographsAndPunctuatedWords) {
  EXPECT_EQ(Split("deepseek-v3", "x世界カナy .net 1234"),
            (Words{"x", "世界カナ", "y", " .", "net", " ", "123", "4"}));
  EXPECT_EQ(Split("deepseek-v3", ".net"), (Words{".net"}));
}

TEST(Pretokenize, TekkenAndGpt4oCutBeforeCapitals) {
  EXPECT_EQ(Split("tekken", "HelloWorld XMLHttp 12"),
            (Words{"Hello", "World", " XMLHttp", " ", "1", "2"}));
  EXPECT_EQ(Split("gpt-4o", "HelloWorld's 1234//\n"),
            (Words{"Hello", "World's", " ", "123", "4", "//\n"}));
}

TEST(Pretokenize, TheExactRulesKnowTheCaseOfEveryLetterAndKeepMarks) {
  for (const std::string_view name : {"gpt-4o", "tekken"}) {
    const Pretokenizer pretokenizer(*FindPattern(name).rules);
    const Pretokenizer exact(*FindPattern(name).rules, true);
    EXPECT_EQ(pretokenizer.Split("éÉ").size(), 1u) << name;
    EXPECT_EQ(exact.Split("éÉ").size(), 2u) << name;
    EXPECT_EQ(pretokenizer.Split("m\u0301").size(), 2u) << name;
    EXPECT_EQ(exact.Split("m\u0301").size(), 1u) << name;
  }
}

TEST(Pretokenize, CutsDigitsInThreesFromTheRight) {
  EXPECT_EQ(Split("superbpe", "a 1234567 b12"), (Words{"a ", "1", "234", "567", " b", "12"}));
  EXPECT_EQ(Split("superbpe", "१२3456"), (Words{"१२3", "456"}));  // ASCII digits count
  EXPECT_EQ(Split("tiny_aya", "a1234b 123456"), (Words{"a", "1", "234", "b", " ", "123", "456"}));
  EXPECT_EQ(Split("afmoe", "ក១២៣៤"), (Words{"ក", "១", "២៣៤"}));
}

TEST(Pretokenize, DeepSeekLlmKeepsTheSpaceBeforeABracket) {
  EXPECT_EQ(Split("deepseek-llm", "f (x)\n é"), (Words{"f", " (", "x", ")", "\n", " é"}));
  EXPECT_EQ(Split("deepseek-coder", "f (x)12"), (Words{"f", " (", "x", ")", "1", "2"}));
}

TEST(Pretokenize, KnowsUnicodeClasses) {
  EXPECT_EQ(Split("gpt-2", "é世²½٣\u3000—€\u200B"), (Words{"é世", "²½٣", "\u3000", "—€\u200B"}));
  EXPECT_EQ(Split("gpt-2", "\u180E\u0085a"),
            (Words{"\u180E", "\u0085", "a"}));  // U+180E has not been a space since Unicode 6.3
  EXPECT_EQ(Split("gpt-2", "a\U0002EBF0"), (Words{"a\U0002EBF0"}));  // a letter since Unicode 15.1
}

TEST(Pretokenize, CountsInvalidBytesAsSymbols) {
  EXPECT_EQ(Split("gpt-2", "a\xFF\xFE b\xE4\xBD"), (Words{"a", "\xFF\xFE", " b", "\xE4\xBD"}));
  EXPECT_EQ(Split("gpt-2", "\xED\xA0\x80"), (Words{"\xED\xA0\x80"}));  // a surrogate
}

TEST(Pretokenize, AnUnknownNameFallsBackToTheDefault) {
  EXPECT_FALSE(FindPattern("no-such-thing").known);
  EXPECT_EQ(Split("no-such-thing", "a1234"), Split("default", "a1234"));
}

TEST(Pretokenize, HasNoWordsForNoText) {
  EXPECT_EQ(Split("llama-bpe", ""), Words{});
}

TEST(Pretokenize, SurvivesLongRuns) {
  const std::string spaces(1 << 18, ' ');
  EXPECT_EQ(Split("llama-bpe", spaces + "a"), (Words{spaces.substr(1), " a"}));
}

// An expression that needs more memory than PCRE2 has would leave the rest of the text as one part.
TEST(Pretokenize, EveryPatternSurvivesLongRuns) {
  std::set<const SplitRules*> tested;
  for (const Pattern& pattern : AllPatterns()) {
    if (!tested.insert(pattern.rules).second) continue;
    const Pretokenizer pretokenizer(*pattern.rules);
    for (const std::string_view unit :
         {"a", "A", "aA", "a ", " ", "\u00e9", "7", "!", "'s", "\u4e16"}) {
      std::string text;
      while (text.size() < 1 << 17) text += unit;
      const auto parts = pretokenizer.Split(text + "\n(7x\n(");
      EXPECT_LE(parts.back(), 4u) << pattern.name << " " << unit;
    }
  }
}

}  // namespace
}  // namespace foretoken::text
