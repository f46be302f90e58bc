// SPDX-License-Identifier: Apache-2.0
// The work to read a client's grammar grows no faster than its size, and constructs that multiply
// are refused after little work.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/growth_testing.h"
#include "grammar/grammar_program.h"
#include "grammar/multiplying_gbnf_testing.h"

namespace foretoken::grammar {
namespace {

std::string RuleTimes(std::size_t n, const std::function<std::string(std::size_t)>& part) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) all += part(i);
  return all;
}

TEST(GbnfGrowth, ReadingGrowsWithTheSizeAlone) {
  struct Case {
    const char* name;
    std::function<std::string(std::size_t)> grammar_of;
    Sizes sizes = {250, 1000};
  };
  const Case cases[] = {
      {"ranges of a class",
       [](std::size_t n) {
         return "root ::= [" +
                RuleTimes(n,
                          [](std::size_t i) { return fmt::format("\\U{:08X}", 0x800 + 3 * i); }) +
                "]";
       }},
      {"ranges of a negated class",
       [](std::size_t n) {
         return "root ::= [^" +
                RuleTimes(n,
                          [](std::size_t i) { return fmt::format("\\U{:08X}", 0x800 + 3 * i); }) +
                "]";
       }},
      {"characters of a literal",
       [](std::size_t n) { return "root ::= \"" + std::string(16 * n, 'x') + "\""; }},
      {"alternatives",
       [](std::size_t n) {
         return "root ::= \"x\"" +
                RuleTimes(n, [](std::size_t i) { return fmt::format(" | \"{}\"", i); });
       },
       {8000, 32'000}},  // a copy of what there is would outweigh an alternative's own work
      {"rules",
       [](std::size_t n) {
         return "root ::= r0\n" +
                RuleTimes(n,
                          [](std::size_t i) {
                            return fmt::format("r{} ::= \"a\" | \"b\" r{}\n", i, i + 1);
                          }) +
                fmt::format("r{} ::= \"c\"\n", n);
       }},
      {"rules that may all be empty",
       [](std::size_t n) {
         return "root ::= r0\n" +
                RuleTimes(n,
                          [](std::size_t i) {
                            return fmt::format("r{} ::= \"\" | r{} \"a\"?\n", i, i + 1);
                          }) +
                fmt::format("r{} ::= \"\"\n", n);
       }},
      {"rules that are empty if the next one is",
       [](std::size_t n) {
         return "root ::= r0\n" +
                RuleTimes(
                    n,
                    [](std::size_t i) { return fmt::format("r{} ::= r{} \"a\"?\n", i, i + 1); }) +
                fmt::format("r{} ::= \"\"\n", n);
       }},
      {"groups behind each other",
       [](std::size_t n) {
         return "root ::= " + RuleTimes(n, [](std::size_t) { return "((\"a\")* | \"b\"?) "; });
       }},
      {"blank lines and comments",
       [](std::size_t n) {
         return "root ::= \"a\"\n" + RuleTimes(n, [](std::size_t) { return "\n# nothing\n"; });
       }},
      {"what no rule is", [](std::size_t n) { return "root ::= " + std::string(100 * n, '('); }},
  };
  for (const Case& c : cases)
    ExpectLinear(c.name, c.sizes, [&](std::size_t n) {
      return [gbnf = c.grammar_of(n)] { (void)CompileGbnf(gbnf); };
    });
}

// A reader of classes that searches all ranges for each range: a fault of an earlier version.
TEST(GbnfGrowth, TheMeterFindsQuadraticReading) {
  const double exponent = InstructionExponent({250, 1000}, [](std::size_t n) {
    return [n] {
      std::vector<std::size_t> kept;
      for (std::size_t i = 0; i < n; ++i)
        if (std::find(kept.begin(), kept.end(), i) == kept.end()) kept.push_back(i);
    };
  });
  EXPECT_GT(exponent, 1.5);
}

// It takes 42 to 71 million instructions to find that there are more than 262144 steps.
TEST(GbnfGrowth, RepetitionsThatMultiplyAreRefusedAtOnce) {
  for (const char* gbnf : kMultiplyingGbnf)
    EXPECT_LT(Instructions([&] { EXPECT_FALSE(CompileGbnf(gbnf)); }), kBuildFactor * 200'000'000)
        << gbnf;
}

}  // namespace
}  // namespace foretoken::grammar
