// SPDX-License-Identifier: Apache-2.0
// The work to read a client's grammar grows no faster than its size, and constructs that multiply
// are refused after little work.
#include <fmt/format.h>

#include <algorithm>

#include "base/growth_testing.h"
#include "grammar/grammar_program.h"
#include "grammar/multiplying_gbnf_testing.h"

namespace foretoken::grammar {
namespace {

// Ranges of one character each, three apart.
std::string Ranges(std::size_t n) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) all += fmt::format("\\U{:08X}", 0x800 + 3 * i);
  return all;
}

TEST(GbnfGrowth, ReadingGrowsWithTheSizeAlone) {
  const auto expect = [](const char* name, const std::function<std::string(std::size_t)>& root,
                         Sizes sizes = {250, 1000}) {
    ExpectLinear(name, sizes, [&](std::size_t n) {
      return [gbnf = "root ::= " + root(n)] { (void)CompileGbnf(gbnf); };
    });
  };
  // Rules, each of which names the next one, and the last.
  const auto rules = [&](const char* name, const std::string& rule, const std::string& last) {
    expect(name, [&](std::size_t n) {
      return "r0\n" + Numbered(n, "r@ ::= " + rule + "\n") + fmt::format("r{} ::= {}\n", n, last);
    });
  };
  expect("ranges of a class", [](std::size_t n) { return "[" + Ranges(n) + "]"; });
  expect("ranges of a negated class", [](std::size_t n) { return "[^" + Ranges(n) + "]"; });
  expect("characters of a literal",
         [](std::size_t n) { return "\"" + std::string(16 * n, 'x') + "\""; });
  // A copy of what there is would outweigh an alternative's own work.
  expect("alternatives", [](std::size_t n) { return "\"x\"" + Numbered(n, " | \"@\""); },
         {8000, 32'000});
  rules("rules", "\"a\" | \"b\" r@+", "\"c\"");
  rules("rules that may all be empty", "\"\" | r@+ \"a\"?", "\"\"");
  rules("rules that are empty if the next one is", "r@+ \"a\"?", "\"\"");
  expect("groups behind each other",
         [](std::size_t n) { return Numbered(n, "((\"a\")* | \"b\"?) "); });
  expect("blank lines and comments",
         [](std::size_t n) { return "\"a\"\n" + Numbered(n, "\n# nothing\n"); });
  expect("what no rule is", [](std::size_t n) { return std::string(100 * n, '('); });
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
