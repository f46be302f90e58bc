// SPDX-License-Identifier: Apache-2.0
// The cost of reading a client's grammar grows no faster than its size, and constructs that
// multiply are refused early.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/scaling_testing.h"
#include "grammar/grammar_program.h"

namespace foretoken::grammar {
namespace {

std::string Times(std::size_t n, const std::function<std::string(std::size_t)>& part) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) all += part(i);
  return all;
}

double ReadingExponent(const std::function<std::string(std::size_t)>& grammar_of) {
  return TimeExponent({250, 1000, 4000}, [&](std::size_t n) {
    return [gbnf = grammar_of(n)] { (void)CompileGbnf(gbnf); };
  });
}

TEST(GbnfCost, ReadingGrowsWithTheSizeAlone) {
  const std::pair<const char*, std::function<std::string(std::size_t)>> cases[] = {
      {"ranges of a class",
       [](std::size_t n) {
         return "root ::= [" +
                Times(n, [](std::size_t i) { return fmt::format("\\U{:08X}", 0x800 + 3 * i); }) +
                "]";
       }},
      {"ranges of a negated class",
       [](std::size_t n) {
         return "root ::= [^" +
                Times(n, [](std::size_t i) { return fmt::format("\\U{:08X}", 0x800 + 3 * i); }) +
                "]";
       }},
      {"characters of a literal",
       [](std::size_t n) { return "root ::= \"" + std::string(16 * n, 'x') + "\""; }},
      {"alternatives",
       [](std::size_t n) {
         return "root ::= \"x\"" +
                Times(n, [](std::size_t i) { return fmt::format(" | \"{}\"", i); });
       }},
      {"rules",
       [](std::size_t n) {
         return "root ::= r0\n" +
                Times(n,
                      [](std::size_t i) {
                        return fmt::format("r{} ::= \"a\" | \"b\" r{}\n", i, i + 1);
                      }) +
                fmt::format("r{} ::= \"c\"\n", n);
       }},
      {"rules that may all be empty",
       [](std::size_t n) {
         return "root ::= r0\n" +
                Times(n,
                      [](std::size_t i) {
                        return fmt::format("r{} ::= \"\" | r{} \"a\"?\n", i, i + 1);
                      }) +
                fmt::format("r{} ::= \"\"\n", n);
       }},
      {"groups behind each other",
       [](std::size_t n) {
         return "root ::= " + Times(n, [](std::size_t) { return "((\"a\")* | \"b\"?) "; });
       }},
      {"blank lines and comments",
       [](std::size_t n) {
         return "root ::= \"a\"\n" + Times(n, [](std::size_t) { return "\n# nothing\n"; });
       }},
      {"what no rule is", [](std::size_t n) { return "root ::= " + std::string(100 * n, '('); }},
  };
  for (const auto& [name, grammar_of] : cases) {
    const double exponent = ReadingExponent(grammar_of);
    EXPECT_LE(exponent, kMostLinear) << name;
  }
}

// A reader of classes that searches all ranges for each range: a fault of an earlier version.
TEST(GbnfCost, TheMeterFindsQuadraticReading) {
  const double exponent = TimeExponent({250, 1000, 4000}, [](std::size_t n) {
    return [n] {
      std::vector<std::size_t> kept;
      for (std::size_t i = 0; i < n; ++i)
        if (std::find(kept.begin(), kept.end(), i) == kept.end()) kept.push_back(i);
    };
  });
  EXPECT_GT(exponent, 1.5);
}

// Memory: the steps of the program for each range.
TEST(GbnfCost, AClassTakesStepsInProportionToItsRanges) {
  const auto steps_of = [](std::size_t n) {
    return CompileGbnf(
               "root ::= [" +
               Times(n, [](std::size_t i) { return fmt::format("\\U{:08X}", 0x800 + 3 * i); }) +
               "]")
        ->steps.size();
  };
  EXPECT_LE(steps_of(16'000), 3 * 16'000u);
}

TEST(GbnfCost, RepetitionsThatMultiplyAreRefusedAtOnce) {
  for (const char* gbnf : {"root ::= ((((\"a\"{65536}){65536}){65536}){65536}){65536}",
                           "root ::= (((\"\"{65536}){65536}){65536}){65536} \"a\"",
                           "root ::= ((((\"a\"?){0,999}){0,999}){0,999}){0,999}",
                           "root ::= a{999}\na ::= b{999}\nb ::= [a-z]{65536} {65536}"}) {
    const double begin = ThreadCpuSeconds();
    const auto program = CompileGbnf(gbnf);
    ASSERT_FALSE(program.has_value()) << gbnf;
    EXPECT_NE(program.error().message.find("more than 262144 steps"), std::string::npos)
        << program.error().message;
    EXPECT_LT(ThreadCpuSeconds() - begin, 1) << gbnf;
  }
}

TEST(GbnfCost, EndlessLiteralsAreRefusedWhileTheyAreRead) {
  const auto program = CompileGbnf("root ::= \"" + std::string(1'000'000, 'x') + "\"");
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(program.error().message, "grammar: it has more than 524288 parts; make it smaller");
}

}  // namespace
}  // namespace foretoken::grammar
