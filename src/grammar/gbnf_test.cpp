// SPDX-License-Identifier: Apache-2.0
#include "grammar/gbnf.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "grammar/grammar_program.h"
#include "grammar/multiplying_gbnf_testing.h"

namespace foretoken::grammar {
namespace {

std::string Complaint(std::string_view text) {
  const auto program = CompileGbnf(text);
  if (program) return "";
  EXPECT_EQ(program.error().message.find('\n'), std::string::npos);
  return program.error().message;
}

TEST(Gbnf, ReadsWhatLlamaCppReads) {
  for (const char* text : {
           "root ::= \"a\"",
           "root ::= \"a\" | \"b\" |\n  \"c\"\n",
           "root ::= \"a\"\n  | \"b\"\n  | \"c\" # the last\n",
           "# a comment\n\nroot ::= ws item-2 # another\nitem-2::=[^a-z\\n\\]-]\r\nws ::= [ "
           "\\t]*\n",
           "root ::= (\n  \"a\" # in a group\n  | \"b\"\n)? [0-9]+ .{2} [a]{1,3} [b]{2,}",
           "root ::= \"\"",
           "root ::= ",
           "root ::= \"\\x41\\u00e9\\U0001F600\\\\ \\\" \\[ \\] é 😀\"",
           "root ::= \"(\" root \")\" | \"x\"",
           "root ::= a root | \"x\"\na ::= b? \"y\"\nb ::= \"z\"*",
           "root ::= (\"a\"*)* b\nb ::= (\"\" | \"c\")*",
           "root ::= \"a\" <[0]> | <[31]>+ root? (<[200010]>)",
       })
    EXPECT_EQ(Complaint(text), "") << text;
}

TEST(Gbnf, NamesTheLineTheFaultAndTheRemedy) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "grammar: there is no rule 'root'; begin with root ::= ..."},
      {"a ::= \"x\"", "grammar: there is no rule 'root'; begin with root ::= ..."},
      {"root ::= a\n\na ::= \"x\" b",
       "grammar: line 3: rule 'b' is not defined; define it or correct its name"},
      {"root ::= \"x\"\nroot ::= \"y\"", "grammar: line 2: rule 'root' is defined twice; keep one"},
      {"root = \"x\"", "grammar: line 1: '=' after 'root'; write root ::= ..."},
      {"root ::= \"x\"\n\"y\"",
       "grammar: line 2: '\"' where a rule should begin; write name ::= ..."},
      {"root ::= \"x", "grammar: line 1: a literal has no end; close it with \""},
      {"root ::= [a", "grammar: line 1: a class has no end; close it with ]"},
      {"root ::= []", "grammar: line 1: a class has no characters; name some"},
      {"root ::= [z-a]", "grammar: line 1: a range ends before it begins; turn it around"},
      {"root ::= (\"x\"\n", "grammar: line 2: the end in a group; close it with )"},
      {"root ::= \"x\")",
       "grammar: line 1: ')' in rule 'root'; end the rule or put text in quotes"},
      {"root ::= * \"x\"", "grammar: line 1: '*' has nothing before it to repeat; drop it"},
      {"root ::= <think>",
       "grammar: line 1: 't' after <; name a control token by its number, as in <[7]>"},
      {"root ::= <[x]>",
       "grammar: line 1: 'x' after <; name a control token by its number, as in <[7]>"},
      {"root ::= <[99999999999]>",
       "grammar: line 1: there is no control token of this number; correct it"},
      {"root ::= <[7>", "grammar: line 1: '>' in the number of a control token; close it with ]>"},
      {"root ::= \"x\"{3,2}", "grammar: line 1: a repetition of 3 to 2; turn it around"},
      {"root ::= \"x\"{a}", "grammar: line 1: 'a' in a repetition; write {n,m}"},
      {"root ::= \"x\"{2", "grammar: line 1: the end in a repetition; close it with }"},
      {"root ::= \"x\"{99999999999}", "grammar: line 1: a repetition of more than 65536; lower it"},
      {"root ::= \"\\q\"", "grammar: line 1: 'q' after \\; write \\\\ for a backslash"},
      {"root ::= \"\\x4\"", "grammar: line 1: '\"' in an escape of 2 hex digits; complete it"},
      {"root ::= \"\\uD800\"", "grammar: line 1: U+D800 is not a character; give one of Unicode"},
      {"root ::= \"\xC0\x80\"",
       "grammar: line 1: byte 0xc0 is not UTF-8; write the grammar in UTF-8"},
      {"root ::= \"x\" root",
       "grammar: rule 'root' never ends, it always needs itself; give it an alternative without"},
      {"root ::= \"x\"{1000}{1000}{1000}",
       "grammar: its repetitions make more than 262144 steps; lower them"},
      {"root ::= \"\"{60000}{60000}",
       "grammar: its repetitions make more than 262144 steps; lower them"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(Complaint(text), message) << text;
}

TEST(Gbnf, RefusesLeftRecursionHoweverItIsHidden) {
  for (const char* text :
       {"root ::= root \"x\" | \"y\"", "root ::= a | \"y\"\na ::= b\nb ::= a \"x\" | \"z\"",
        "root ::= \"y\"? root | \"z\"", "root ::= \"y\"* a root | \"z\"\na ::= \"w\" | \"\"",
        "root ::= (\"x\" | root)+", "root ::= root? \"x\""})
    EXPECT_NE(Complaint(text).find("is left-recursive"), std::string::npos) << text;
}

TEST(Gbnf, NestsOnlySoDeep) {
  const auto nested = [](std::size_t n) {
    return "root ::= " + std::string(n, '(') + "\"x\"" + std::string(n, ')');
  };
  EXPECT_EQ(Complaint(nested(200)), "");
  EXPECT_NE(Complaint(nested(201)).find("nest deeper"), std::string::npos);
  EXPECT_NE(Complaint(nested(500000)).find("nest deeper"), std::string::npos);
  EXPECT_NE(Complaint("root ::= \"x\"" + std::string(100000, '*')), "");
  EXPECT_NE(Complaint(std::string((1 << 20) + 1, ' ')).find("shorter"), std::string::npos);
}

TEST(Gbnf, ChecksAThousandChainedRulesAtOnce) {
  std::string text = "root ::= r0\n";
  for (int i = 0; i < 40000; ++i)
    text += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "?\n";
  EXPECT_EQ(Complaint(text + "r40000 ::= \"x\"\n"), "");
  EXPECT_NE(Complaint(text + "r40000 ::= r0?\n").find("left-recursive"), std::string::npos);
}

TEST(Gbnf, ClassesAreSortedAndHoldNoSurrogates) {
  const auto ranges = [](std::string_view text) {
    std::vector<std::pair<char32_t, char32_t>> all;
    const auto gbnf = ParseGbnf(text);
    for (const GbnfNode& node : gbnf.value().nodes)
      for (const CodePoints& r : node.ranges) all.emplace_back(r.first, r.last);
    return all;
  };
  using Ranges = std::vector<std::pair<char32_t, char32_t>>;
  EXPECT_EQ(ranges("root ::= [c-ea-b0]"), (Ranges{{'0', '0'}, {'a', 'e'}}));
  EXPECT_EQ(ranges("root ::= [a-]"), (Ranges{{'-', '-'}, {'a', 'a'}}));
  EXPECT_EQ(ranges("root ::= ."), (Ranges{{0, 0xD7FF}, {0xE000, 0x10FFFF}}));
  EXPECT_EQ(ranges("root ::= [^\\x00-\\u1234]"), (Ranges{{0x1235, 0xD7FF}, {0xE000, 0x10FFFF}}));
}

// Memory: the steps of the program for each range.
TEST(Gbnf, AClassTakesStepsInProportionToItsRanges) {
  std::string ranges;
  for (int i = 0; i < 16'000; ++i) ranges += fmt::format("\\U{:08X}", 0x800 + 3 * i);
  EXPECT_LE(CompileGbnf("root ::= [" + ranges + "]")->steps.size(), 3 * 16'000u);
}

TEST(Gbnf, RepetitionsThatMultiplyAreRefused) {
  for (const char* gbnf : kMultiplyingGbnf)
    EXPECT_NE(Complaint(gbnf).find("more than 262144 steps"), std::string::npos) << gbnf;
}

TEST(Gbnf, EndlessLiteralsAreRefusedWhileTheyAreRead) {
  const auto program = CompileGbnf("root ::= \"" + std::string(1'000'000, 'x') + "\"");
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(program.error().message, "grammar: it has more than 524288 parts; make it smaller");
}

}  // namespace
}  // namespace foretoken::grammar
