// SPDX-License-Identifier: Apache-2.0
#include "grammar/grammar.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>

#include "base/normal_testing.h"
#include "grammar/control_literal.h"

namespace foretoken::grammar {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::shared_ptr<const TokenTrie> TrieOf(const std::vector<std::string>& texts,
                                        const std::vector<Token>& ends = {}) {
  return std::make_shared<const TokenTrie>(texts, ends);
}

std::shared_ptr<const Grammar> Compiled(std::string_view gbnf,
                                        std::shared_ptr<const TokenTrie> trie = TrieOf({})) {
  auto grammar = Grammar::Compile(gbnf, std::move(trie));
  EXPECT_TRUE(grammar.has_value()) << grammar.error().message;
  return grammar.value();
}

// "no": no text of the grammar begins so; "yes": a whole text; "open": the beginning of one;
// "both".
std::string Verdict(const Grammar& grammar, std::string_view text) {
  const Grammar::State state = grammar.After(grammar.Start(), text);
  if (state == Grammar::kOver) return "no";
  bool open = false;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    open |= grammar.After(state, {&c, 1}) != Grammar::kOver;
  }
  return grammar.CanEnd(state) ? (open ? "both" : "yes") : "open";
}

// A grammar as a tree, and matching by trying everything.
struct Expression {
  enum { kText, kSequence, kAny, kRepeat, kRule } kind = kText;
  std::string text = {};
  std::vector<Expression> children = {};
  int rule = 0, least = 0, most = 0;  // most -1: no end
};

class RandomGrammar {
 public:
  explicit RandomGrammar(std::uint32_t seed) : random_(seed) {
    for (int r = 0; r < kRules; ++r) rules_.push_back(Make(3, r + 1));
  }

  std::string Gbnf() const {
    std::string text;
    for (int r = 0; r < kRules; ++r)
      text += Name(r) + " ::= " + Print(rules_[static_cast<std::size_t>(r)]) + "\n";
    return text;
  }

  // As Verdict above. Every expression can be completed, so a text that ends where a character is
  // expected is the beginning of a whole one.
  std::string Verdict(const std::string& text) {
    wants_more_ = false;
    const bool whole = Ends(rules_[0], text, 0).contains(text.size());
    return whole ? (wants_more_ ? "both" : "yes") : (wants_more_ ? "open" : "no");
  }

 private:
  static constexpr int kRules = 3;
  using Positions = std::set<std::size_t>;

  static std::string Name(int rule) { return rule == 0 ? "root" : "r" + std::to_string(rule); }

  // Calls only rules from first_rule on, so that no rule begins with itself.
  Expression Make(int depth, int first_rule) {
    const auto pick = random_() % 8;
    if (depth == 0 || pick < 2)
      return {.kind = Expression::kText,
              .text = std::vector<std::string>{"a", "b", "ab", "é", ""}[random_() % 5]};
    if (pick == 2 && first_rule < kRules)
      return {.kind = Expression::kRule,
              .rule = first_rule +
                      static_cast<int>(random_() % static_cast<unsigned>(kRules - first_rule))};
    if (pick < 5) {
      Expression sequence{.kind = Expression::kSequence};
      for (auto n = random_() % 3 + 1; n > 0; --n) {
        sequence.children.push_back(Make(depth - 1, first_rule));
        const Expression& last = sequence.children.back();
        if (last.kind == Expression::kText && !last.text.empty()) first_rule = 0;
      }
      return sequence;
    }
    if (pick < 7) {
      Expression any{.kind = Expression::kAny};
      for (auto n = random_() % 3 + 1; n > 0; --n)
        any.children.push_back(Make(depth - 1, first_rule));
      return any;
    }
    Expression repeat{.kind = Expression::kRepeat, .children = {Make(depth - 1, first_rule)}};
    repeat.least = static_cast<int>(random_() % 3);
    repeat.most = random_() % 2 == 0 ? -1 : repeat.least + static_cast<int>(random_() % 3);
    return repeat;
  }

  std::string Print(const Expression& e) const {
    std::string text;
    switch (e.kind) {
      case Expression::kText:
        return "\"" + e.text + "\"";
      case Expression::kRule:
        return Name(e.rule);
      case Expression::kSequence:
      case Expression::kAny:
        for (const Expression& child : e.children)
          text += (text.empty() ? "(" : e.kind == Expression::kAny ? " | " : " ") + Print(child);
        return text + ")";
      case Expression::kRepeat:
        text = "(" + Print(e.children[0]) + "){" + std::to_string(e.least);
        if (e.most != e.least) text += "," + (e.most < 0 ? "" : std::to_string(e.most));
        return text + "}";
    }
    return text;
  }

  Positions EndsOfAll(const Expression& e, const std::string& text, const Positions& begins) {
    Positions ends;
    for (const std::size_t begin : begins) ends.merge(Ends(e, text, begin));
    return ends;
  }

  Positions Ends(const Expression& e, const std::string& text, std::size_t begin) {
    Positions ends;
    switch (e.kind) {
      case Expression::kText:
        for (std::size_t i = 0; i < e.text.size(); ++i) {
          if (begin + i == text.size()) wants_more_ = true;
          if (begin + i >= text.size() || text[begin + i] != e.text[i]) return {};
        }
        return {begin + e.text.size()};
      case Expression::kRule:
        return Ends(rules_[static_cast<std::size_t>(e.rule)], text, begin);
      case Expression::kAny:
        for (const Expression& child : e.children) ends.merge(Ends(child, text, begin));
        return ends;
      case Expression::kSequence:
        ends = {begin};
        for (const Expression& child : e.children) ends = EndsOfAll(child, text, ends);
        return ends;
      case Expression::kRepeat:
        break;
    }
    Positions now = {begin};
    for (int n = 0; !now.empty(); ++n) {
      if (n >= e.least) {
        const std::size_t before = ends.size();
        ends.insert(now.begin(), now.end());
        if (ends.size() == before && e.most < 0) break;
      }
      if (n == e.most) break;
      now = EndsOfAll(e.children[0], text, now);
    }
    return ends;
  }

  std::mt19937 random_;
  std::vector<Expression> rules_;
  bool wants_more_ = false;
};

std::vector<std::string> TextsUpTo(int length) {
  std::vector<std::string> texts = {""};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (static_cast<int>(texts[i].size()) >= length) break;
    for (const char* next : {"a", "b", "\xC3", "\xA9"}) texts.push_back(texts[i] + next);
  }
  return texts;
}

TEST(Grammar, AgreesWithTryingEverything) {
  const auto texts = TextsUpTo(5);
  int n_compiled = 0;
  std::map<std::string, int> seen;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    RandomGrammar random(seed);
    const auto compiled = Grammar::Compile(random.Gbnf(), TrieOf({}));
    if (!compiled) {
      ASSERT_NE(compiled.error().message.find("never ends"), std::string::npos)
          << compiled.error().message << "\n"
          << random.Gbnf();
      continue;
    }
    ++n_compiled;
    for (const std::string& text : texts) {
      const std::string verdict = Verdict(**compiled, text);
      ++seen[verdict];
      ASSERT_EQ(verdict, random.Verdict(text)) << "'" << text << "'\n" << random.Gbnf();
    }
  }
  EXPECT_GT(n_compiled, 300);
  for (const char* verdict : {"yes", "open", "both"}) EXPECT_GT(seen[verdict], 300) << verdict;
}

TEST(Grammar, MasksTheTokensWhoseTextCannotFollow) {
  std::vector<std::string> texts = {"", "aé"};
  for (const std::string& text : TextsUpTo(3)) texts.push_back(text);
  texts.push_back("a");  // one text more than there are tokens
  const auto trie = TrieOf(texts);
  std::mt19937 random(4);
  int n_allowed = 0, n_banned = 0;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    const auto compiled = Grammar::Compile(RandomGrammar(seed).Gbnf(), trie);
    if (!compiled) continue;
    const Grammar& grammar = **compiled;
    Grammar::State state = grammar.Start();
    for (int step = 0; step < 4 && state != Grammar::kOver; ++step) {
      std::vector<float> logits = Normal(texts.size() + 70, seed);
      const std::vector<float> before = logits;
      grammar.Mask(state, logits);
      std::vector<Token> allowed;
      for (std::size_t t = 0; t < logits.size(); ++t) {
        const bool follows = t < texts.size() && !texts[t].empty() &&
                             grammar.After(state, texts[t]) != Grammar::kOver;
        ASSERT_EQ(logits[t], follows ? before[t] : -kInf) << t;
        if (follows) allowed.push_back(static_cast<Token>(t));
        ++(follows ? n_allowed : n_banned);
      }
      state = allowed.empty() ? Grammar::kOver
                              : grammar.After(state, allowed[random() % allowed.size()]);
    }
  }
  EXPECT_GT(n_allowed, 300);
  EXPECT_GT(n_banned, 10000);
}

constexpr std::string_view kJson = R"(root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
)";

TEST(Grammar, ReadsJson) {
  const auto json = Compiled(kJson);
  const std::string whole = "{\"k\": [1, -2.5e+3, \"é😀\\n\\u00e9\", {}, null], \"z\": true}";
  EXPECT_EQ(Verdict(*json, whole), "both");  // a space may follow
  EXPECT_EQ(Verdict(*json, whole + " "), "yes");
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_EQ(Verdict(*json, whole.substr(0, n)), "open") << n;
  for (const char* text : {"[", "{\"a\"  :", "{\"a\":01", "{,", "{\"\\x", "{\"a\":tru}", "{\"\x80",
                           "{\"\xED\xA0", "{\"\xC0", "{\"\xF5"})
    EXPECT_EQ(Verdict(*json, text), "no") << text;
}

TEST(Grammar, StatesOfEqualSituationsAreEqual) {
  const auto json = Compiled(kJson);
  const auto after = [&](std::string_view text) { return json->After(json->Start(), text); };
  EXPECT_EQ(after("{\"a\":1,"), after("{\"bc\":[true],"));
  EXPECT_EQ(after("{\"a"), after("{\"a quick brown fox"));
  EXPECT_NE(after("{\"a\":[1,"), after("{\"a\":1,"));
  EXPECT_EQ(json->After(after("{\"a\":"), "[1,"), after("{\"a\":[1,"));
  const auto spaces = Compiled("root ::= \"x\" ws\nws ::= \" \" ws | \"\"");
  EXPECT_EQ(spaces->After(spaces->Start(), "x "), spaces->After(spaces->Start(), "x    "));
}

TEST(Grammar, FollowsDeepNesting) {
  const auto nested = Compiled("root ::= \"[\" root \"]\" | \"x\"");
  const std::string open(20000, '['), close(20000, ']');
  EXPECT_EQ(Verdict(*nested, open), "open");
  EXPECT_EQ(Verdict(*nested, open + "x" + close), "yes");
  EXPECT_EQ(Verdict(*nested, open + "x" + close + "]"), "no");
}

TEST(Grammar, TokensMayEndInsideACharacter) {
  const auto grammar = Compiled("root ::= [à-ü]+", TrieOf({"\xC3", "\xA9", "é", "e", "\xA9\xC3"}));
  const Grammar::State inside = grammar->After(grammar->Start(), Token{0});
  EXPECT_FALSE(grammar->CanEnd(inside));
  std::vector<float> logits(5, 1.0f);
  grammar->Mask(inside, logits);
  EXPECT_EQ(logits, (std::vector<float>{-kInf, 1, -kInf, -kInf, 1}));
  EXPECT_TRUE(grammar->CanEnd(grammar->After(inside, Token{1})));
}

// Tokens of one to three bytes; the cut is the longest match.
class Forced : public testing::Test {
 protected:
  const std::vector<std::string> texts_ = {
      "{", "\"", "a", "b", "ab", "\":", "1", "}", "\xC3", "\xA9", ""};
  const Token end_ = 10;
  std::vector<Token> Cut(std::string_view text) const {
    std::vector<Token> tokens;
    while (!text.empty()) {
      std::size_t best = texts_.size() - 1;
      for (std::size_t t = 0; t < texts_.size(); ++t)
        if (text.starts_with(texts_[t]) && texts_[t].size() > texts_[best].size()) best = t;
      if (texts_[best].empty()) break;
      tokens.push_back(static_cast<Token>(best));
      text.remove_prefix(texts_[best].size());
    }
    return tokens;
  }
  std::shared_ptr<const Grammar> Compiled(std::string_view gbnf) const {
    return *Grammar::Compile(gbnf, TrieOf(texts_, {end_}),
                             [this](std::string_view text) { return Cut(text); });
  }
  static std::vector<Token> After(const Grammar& grammar, std::string_view text, int most = 99) {
    std::vector<Token> out(static_cast<std::size_t>(most));
    out.resize(static_cast<std::size_t>(grammar.Forced(grammar.After(grammar.Start(), text), out)));
    return out;
  }
};
using Tokens = std::vector<Token>;

TEST_F(Forced, IsWhatAloneCanFollowAsTheTokenizerCutsIt) {
  const auto grammar = Compiled(R"(root ::= "{\"ab\":" [0-9] "}")");
  EXPECT_EQ(After(*grammar, ""), (Tokens{0, 1, 4, 5}));
  EXPECT_EQ(After(*grammar, "{\"a"), (Tokens{3, 5}));
  EXPECT_TRUE(After(*grammar, "{\"ab\":").empty());
  EXPECT_EQ(After(*grammar, "{\"ab\":1"), (Tokens{7, end_}));
  EXPECT_EQ(After(*grammar, "{\"ab\":1}"), (Tokens{end_}));
  EXPECT_EQ(After(*grammar, "", 2), (Tokens{0, 1}));
  EXPECT_EQ(After(*grammar, ""), (Tokens{0, 1, 4, 5}));  // again, from what was kept
}

TEST_F(Forced, StopsWhereTheTextMayEndOrBranches) {
  EXPECT_EQ(After(*Compiled(R"(root ::= "ab" "1"?)"), ""), (Tokens{4}));
  EXPECT_TRUE(After(*Compiled(R"(root ::= "ab" "1"?)"), "ab").empty());
  EXPECT_EQ(After(*Compiled(R"(root ::= "ab" | "a1")"), ""), (Tokens{2}));
  EXPECT_EQ(After(*Compiled(R"(root ::= "ab" | "ab" "1")"), ""), (Tokens{4}));
}

TEST_F(Forced, LeavesOutWhatTheTokenizerDoesNotGiveBack) {
  EXPECT_EQ(After(*Compiled(R"(root ::= "a" "z" "b")"), ""), (Tokens{2}));
  EXPECT_EQ(After(*Compiled("root ::= \"é\""), ""), (Tokens{8, 9, end_}));
}

TEST_F(Forced, IsBounded) {
  const auto tokens = After(*Compiled("root ::= \"b\"{1000}"), "", 1000);
  EXPECT_EQ(tokens.size(), 256u);
}

TEST_F(Forced, IsNothingWithoutACut) {
  const auto grammar = *Grammar::Compile("root ::= \"ab\"", TrieOf(texts_, {end_}));
  EXPECT_EQ(After(*grammar, ""), Tokens{});
}

// For every grammar: the forced text follows, and nothing else could.
TEST_F(Forced, AgreesWithTryingEveryToken) {
  std::vector<std::string> texts = {""};
  for (const std::string& text : TextsUpTo(2)) texts.push_back(text);
  const auto trie = TrieOf(texts);
  const auto cut = [&](std::string_view text) {
    std::vector<Token> tokens;
    for (const char c : text)
      tokens.push_back(static_cast<Token>(std::find(texts.begin(), texts.end(), std::string(1, c)) -
                                          texts.begin()));
    return tokens;
  };
  int n_forced = 0, n_free = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    const auto compiled = Grammar::Compile(RandomGrammar(seed).Gbnf(), trie, cut);
    if (!compiled) continue;
    const Grammar& grammar = **compiled;
    for (const std::string& text : TextsUpTo(2)) {
      Grammar::State state = grammar.After(grammar.Start(), text);
      if (state == Grammar::kOver) continue;
      Tokens forced(8);
      forced.resize(static_cast<std::size_t>(grammar.Forced(state, forced)));
      ++(forced.empty() ? n_free : n_forced);
      for (std::size_t i = 0; i <= forced.size() && i < 8; ++i) {
        const auto follows = [&](int byte) {
          const char c = static_cast<char>(byte);
          return grammar.After(state, {&c, 1}) != Grammar::kOver;
        };
        int n = grammar.CanEnd(state);
        for (int byte = 0; byte < 256; ++byte) n += follows(byte);
        if (i == forced.size()) {
          EXPECT_NE(n, grammar.CanEnd(state) ? 0 : 1) << seed << " " << text;
        } else {
          ASSERT_EQ(n, 1) << seed << " " << text;
          state = grammar.After(state, forced[i]);
          ASSERT_NE(state, Grammar::kOver) << seed << " " << text;
        }
      }
    }
  }
  EXPECT_GT(n_forced, 100);
  EXPECT_GT(n_free, 100);
}

TEST(Grammar, SaysWhatItsStatesTake) {
  const auto grammar = Compiled("root ::= \"a\" root \"b\" | \"c\"");
  const std::size_t before = grammar->bytes();
  grammar->After(grammar->Start(), std::string(10000, 'a'));
  EXPECT_GT(grammar->bytes(), before + 10000 * sizeof(Grammar::State));
}

TEST(Grammar, NothingFollowsWhereItIsOver) {
  const auto grammar = Compiled("root ::= \"a\"", TrieOf({"a", "aa", "</s>"}, {2}));
  const Grammar::State whole = grammar->After(grammar->Start(), Token{0});
  for (const Grammar::State state :
       {whole, grammar->After(whole, Token{2}), grammar->After(whole, Token{0}), Grammar::kOver}) {
    EXPECT_TRUE(grammar->CanEnd(state));
    std::vector<float> logits(3, 1.0f);
    grammar->Mask(state, logits);
    EXPECT_EQ(logits, std::vector<float>(3, -kInf));
  }
}

// Control tokens 3 and 31, whose numbers begin alike, among tokens that spell the same.
class ControlTokensOfGrammars : public testing::Test {
 protected:
  ControlTokensOfGrammars() {
    texts_.assign(33, "");
    texts_[0] = "a", texts_[1] = "<[3]>", texts_[2] = "3";
    for (const Token token : {3, 31})
      texts_[static_cast<std::size_t>(token)] = ControlLiteral(token);
  }
  // The tokens that may follow.
  std::vector<Token> Allowed(std::string_view gbnf, const std::vector<Token>& text) const {
    const auto grammar = Compiled(gbnf, TrieOf(texts_, {32}));
    Grammar::State state = grammar->Start();
    for (const Token token : text) state = grammar->After(state, token);
    std::vector<float> logits(texts_.size(), 0.0f);
    EXPECT_TRUE(grammar->Mask(state, logits));
    std::vector<Token> allowed;
    for (std::size_t i = 0; i < logits.size(); ++i)
      if (logits[i] == 0.0f) allowed.push_back(static_cast<Token>(i));
    return allowed;
  }
  std::vector<std::string> texts_;
};

TEST_F(ControlTokensOfGrammars, FollowWhereTheyAreNamedAndNowhereElse) {
  EXPECT_EQ(Allowed("root ::= .*", {}), (std::vector<Token>{0, 1, 2}));
  EXPECT_EQ(Allowed("root ::= [^b]* <[3]> \"a\"", {}), (std::vector<Token>{0, 1, 2, 3}));
  EXPECT_EQ(Allowed("root ::= [^b]* <[3]> \"a\"", {0, 3}), (std::vector<Token>{0}));
  EXPECT_EQ(Allowed("root ::= <[3]> <[31]>", {3}), (std::vector<Token>{31}));
  EXPECT_EQ(Allowed("root ::= <[3]>", {3}), (std::vector<Token>{}));
}

TEST_F(ControlTokensOfGrammars, AreForced) {
  const auto cut = [](std::string_view text) { return std::vector<Token>(text.size(), 0); };
  const auto grammar =
      Grammar::Compile("root ::= <[31]> \"aa\" <[3]> (<[3]> | <[31]>)", TrieOf(texts_, {32}), cut);
  ASSERT_TRUE(grammar);
  std::vector<Token> out(8);
  out.resize(static_cast<std::size_t>((*grammar)->Forced((*grammar)->Start(), out)));
  EXPECT_EQ(out, (std::vector<Token>{31, 0, 0, 3}));
}

TEST_F(ControlTokensOfGrammars, MustBeControlTokensOfTheVocabulary) {
  for (const char* const gbnf :
       {"root ::= <[0]>", "root ::= <[4]>", "root ::= <[32]>", "root ::= <[33]>"}) {
    const auto grammar = Grammar::Compile(gbnf, TrieOf(texts_, {32}));
    ASSERT_FALSE(grammar) << gbnf;
    EXPECT_NE(grammar.error().message.find("is no control token of this model"), std::string::npos);
  }
}

}  // namespace
}  // namespace foretoken::grammar
