// SPDX-License-Identifier: Apache-2.0
#include <random>
#include <regex>

#include "base/json/json.h"
#include "foretoken/structured_output.h"
#include "grammar/pattern/regex.h"
#include "grammar/schema/grammar_testing.h"
#include "grammar/schema/json_tree.h"

namespace foretoken::grammar {
namespace {

struct RegexCase {
  const char* pattern;
  std::vector<std::string> texts, others;
};

TEST(RegexGrammar, GivesTheTextsThatMatch) {
  const std::vector<RegexCase> cases = {
      {"abc", {"abc"}, {"", "ab", "abcd", "xabc"}},
      {"^abc$", {"abc"}, {"^abc$", "abcd"}},
      {"a|bc|", {"a", "bc", ""}, {"abc", "b"}},
      {"(a|b)(?:c|d)?(?<n>e)(?P<m>f)", {"aef", "bcef", "adef"}, {"ef", "acdef", "ae"}},
      {"a*b+c?", {"b", "aabbc", "bc"}, {"a", "ac", "bcc"}},
      {"a*?b+?c??", {"b", "aabbc"}, {"a"}},
      {"a{2}b{1,}c{0,2}", {"aab", "aabbcc"}, {"ab", "aa", "aabccc"}},
      {"a{,2}", {"a{,2}"}, {"a", "aa"}},
      {"[a-cx]\\d[^0-9]\\D", {"a1zz", "x0-\n"}, {"d1zz", "a11z", "a1z1"}},
      {"\\w\\W\\s\\S", {"_- x", "Z!\t,"}, {"--\t,", "aa x", "a- "}},
      {".", {"a", "é", "😀", " "}, {"\n", "\r", "\u2028", "", "ab"}},
      {"[\\]\\-^a]", {"]", "-", "^", "a"}, {"\\", "b"}},
      {"[-a][a-]", {"--", "a-", "aa"}, {"b-"}},
      {"[^]", {"a", "\n"}, {"", "ab"}},
      {"\\.\\*\\(\\)\\[\\/\\\\", {".*()[/\\"}, {"x"}},
      {"\\n\\t\\x41\\u00e9\\u{1F600}\\uD83D\\uDE00\\0", {std::string("\n\tAé😀😀\0", 14)}, {"n"}},
      {"é+", {"é", "éé"}, {"e", "\xc3"}},
      {"}]", {"}]"}, {"}"}},
      {"(a(b(c)?)?)?", {"", "a", "ab", "abc"}, {"ac", "b"}},
      {"(a*)*b", {"b", "aab"}, {"a"}},
  };
  for (const RegexCase& c : cases) {
    const GrammarTexts grammar(RegexGrammar(c.pattern));
    for (const std::string& text : c.texts)
      EXPECT_TRUE(grammar.Has(text)) << c.pattern << " " << text;
    for (const std::string& text : c.others)
      EXPECT_FALSE(grammar.Has(text)) << c.pattern << " " << text;
  }
}

TEST(RegexGrammar, NamesWhatItDoesNotFollow) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"(?=a)", "lookahead"},
      {"(?!a)", "lookahead"},
      {"(?<=a)", "lookbehind"},
      {"(?<!a)", "lookbehind"},
      {"(a)\\1", "backreference"},
      {"\\k<a>", "backreference"},
      {"\\bword", "word boundary"},
      {"\\B", "word boundary"},
      {"a^b", "anchor '^'"},
      {"a$b", "anchor '$'"},
      {"(^a)", "anchor '^'"},
      {"(a$)", "anchor '$'"},
      {"(?i)a", "(?i"},
      {"(?>a)", "(?>"},
      {"a*+", "possessive"},
      {"\\p{L}", "Unicode property"},
      {"\\cA", "escape \\c"},
      {"\\Z", "escape \\Z"},
      {"*a", "nothing before"},
      {"a|+", "nothing before"},
      {"a**", "repetition of a repetition"},
      {"(a", "no end"},
      {"a)", "no group"},
      {"[a", "no end"},
      {"[z-a]", "range"},
      {"[a-\\d]", "range"},
      {"a{2", "no end"},
      {"a{3,2}", "turn it around"},
      {"a{99999}", "more than 10000"},
      {"\\", "backslash"},
      {"\\x4", "hex digit"},
      {"\\uD83D", "not a character"},
      {"\\u{110000}", "not a character"},
      {"\\u{}", "1 to 6 digits"},
      {"\xff", "UTF-8"},
      {"\xed\xa0\x80", "byte 0xed is not UTF-8"},
      {"((((a{1000}){1000}){1000}){1000})", "too large"},
  };
  for (const auto& [pattern, words] : cases) {
    const auto gbnf = RegexGrammar(pattern);
    ASSERT_FALSE(gbnf.has_value()) << pattern << " " << *gbnf;
    const std::string& message = gbnf.error().message;
    EXPECT_TRUE(message.starts_with("regex: ")) << message;
    EXPECT_NE(message.find(words), message.npos) << pattern << " " << message;
    EXPECT_NE(message.find("; "), message.npos) << message;
  }
  EXPECT_FALSE(RegexGrammar(std::string(49, '(') + std::string(49, ')')).has_value());
  EXPECT_FALSE(RegexGrammar(std::string(100'000, 'a')).has_value());
}

class RandomRegex {
 public:
  explicit RandomRegex(unsigned seed) : random_(seed) {}

  std::string Pattern(int depth = 3) {
    switch (depth == 0 ? 0 : random_() % 6) {
      case 1:
        return "(" + Pattern(depth - 1) + "|" + Pattern(depth - 1) + ")";
      case 2:
        return Pattern(depth - 1) + Pattern(depth - 1);
      case 3:
        return "(?:" + Pattern(depth - 1) + ")" + Quantifiers()[random_() % 7];
      default:
        return Atoms()[random_() % 9];
    }
  }
  unsigned Draw(unsigned n) { return static_cast<unsigned>(random_() % n); }

 private:
  static const std::vector<std::string>& Atoms() {
    static const std::vector<std::string> atoms = {"a",    "b", "\"",  "\\\\", "[ab]",
                                                   "[^a]", ".", "\\n", "(?:)"};
    return atoms;
  }
  static const std::vector<std::string>& Quantifiers() {
    static const std::vector<std::string> quantifiers = {"*",     "+",    "?", "{2}",
                                                         "{1,2}", "{2,}", "*?"};
    return quantifiers;
  }
  std::mt19937 random_;
};

std::vector<std::string> AllTexts(int longest) {
  std::vector<std::string> all = {""};
  for (std::size_t i = 0; i < all.size() && static_cast<int>(all[i].size()) < longest; ++i)
    for (const char c : {'a', 'b', '"', '\\', '\n'}) all.push_back(all[i] + c);
  return all;
}

// The standard library's matcher is the oracle, over all short texts.
TEST(RegexGrammar, AgreesWithAnotherMatcher) {
  const std::vector<std::string> texts = AllTexts(4);
  for (unsigned seed = 0; seed < 150; ++seed) {
    const std::string pattern = RandomRegex(seed).Pattern();
    const std::regex oracle(pattern, std::regex::ECMAScript);
    const GrammarTexts grammar(RegexGrammar(pattern));
    for (const std::string& text : texts)
      ASSERT_EQ(grammar.Has(text), std::regex_match(text, oracle))
          << seed << " " << pattern << " " << text;
  }
}

// In a schema: a match anywhere except at anchors, written as JSON.
TEST(RegexGrammar, AgreesWithAnotherMatcherInStrings) {
  const std::vector<std::string> texts = AllTexts(3);
  for (unsigned seed = 0; seed < 150; ++seed) {
    RandomRegex random(seed);
    std::string pattern = random.Pattern();
    if (random.Draw(2)) pattern = "^" + pattern;
    if (random.Draw(2)) pattern += "$";
    if (random.Draw(3) == 0) pattern += "|^" + random.Pattern(1);
    // Alternatives of the pattern itself would separate the anchors.
    const std::regex oracle(pattern, std::regex::ECMAScript);
    const GrammarTexts grammar(
        JsonSchemaGrammar("{\"type\": \"string\", \"pattern\": " + QuotedJson(pattern) + "}"));
    for (const std::string& text : texts)
      ASSERT_EQ(grammar.Has(QuotedJson(text)), std::regex_search(text, oracle))
          << seed << " " << pattern << " " << text;
  }
}

TEST(Regex, KnowsTheLengthOfItsTexts) {
  const auto shown = [](const char* pattern) {
    const RegexLength length = LengthOf(ParseRegex(pattern).value());
    return std::to_string(length.least) + " " + std::to_string(length.most);
  };
  EXPECT_EQ(shown("^a{2,3}(b|cde)?$"), "2 6");
  EXPECT_EQ(shown("^a+$"), "1 -1");
  EXPECT_EQ(shown("^a"), "1 -1");
  EXPECT_EQ(shown("^$"), "0 0");
  EXPECT_EQ(shown("^(a{1000}){1000}$"), "1000000 1000000");
  EXPECT_EQ(shown("^()*$"), "0 0");
}

}  // namespace
}  // namespace foretoken::grammar
