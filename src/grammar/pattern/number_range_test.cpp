// SPDX-License-Identifier: Apache-2.0
#include "grammar/pattern/number_range.h"

#include <cstdlib>
#include <random>

#include "grammar/schema/grammar_testing.h"

namespace foretoken::grammar {
namespace {

GrammarTexts TextsOf(const NumberRange& range, bool whole) {
  GbnfWriter writer;
  const int rule = writer.AddRule("number");
  writer.Define(rule, whole ? WholeNumbers(range, writer) : RealNumbers(range, writer));
  auto gbnf = writer.Write(rule);
  if (gbnf && gbnf->empty()) gbnf = "root ::= \"none\"";
  return GrammarTexts(gbnf);
}

Bound BoundOf(const std::string& number, bool exclusive) {
  return {Decimal::Parse(number).value(), exclusive};
}

bool Holds(const NumberRange& range, const std::string& number) {
  const Decimal value = Decimal::Parse(number).value();
  const int low = range.low ? Decimal::Compare(value, range.low->value) : 1;
  const int high = range.high ? Decimal::Compare(value, range.high->value) : -1;
  return (low > 0 || (low == 0 && !range.low->exclusive)) &&
         (high < 0 || (high == 0 && !range.high->exclusive));
}

class RandomRange {
 public:
  explicit RandomRange(unsigned seed) : random_(seed) {}

  // Few digits, so that bounds are often equal.
  std::string Number(bool whole) {
    std::string text = random_() % 2 ? "-" : "";
    text += std::to_string(random_() % (random_() % 2 ? 12 : 1200));
    if (whole || random_() % 3 == 0) return text == "-0" ? "0" : text;
    text += "." + std::to_string(random_() % 120);
    return text;
  }
  NumberRange Range(bool whole_bounds) {
    NumberRange range;
    if (random_() % 6 != 0) range.RaiseLow(BoundOf(Number(whole_bounds), random_() % 3 == 0));
    if (random_() % 6 != 0) range.LowerHigh(BoundOf(Number(whole_bounds), random_() % 3 == 0));
    return range;
  }

 private:
  std::mt19937 random_;
};

TEST(Decimal, ReadsNumbers) {
  const auto shown = [](const char* number) {
    const auto d = Decimal::Parse(number);
    return !d ? std::string("none") : (d->negative ? "-" : "") + d->whole + "." + d->fraction;
  };
  EXPECT_EQ(shown("12.50"), "12.5");
  EXPECT_EQ(shown("-0"), "0.");
  EXPECT_EQ(shown("-0.05"), "-0.05");
  EXPECT_EQ(shown("1.25e1"), "12.5");
  EXPECT_EQ(shown("1.25E+3"), "1250.");
  EXPECT_EQ(shown("125e-4"), "0.0125");
  EXPECT_EQ(shown("1e40"), "none");
  EXPECT_EQ(shown("1e-40"), "none");
  EXPECT_EQ(shown("1e99999999999"), "none");
}

TEST(NumberRange, GivesTheWholeNumbersInside) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const NumberRange range = RandomRange(seed).Range(seed % 2 == 0);
    const GrammarTexts texts = TextsOf(range, true);
    for (int i = -1300; i <= 1300; ++i)
      ASSERT_EQ(texts.Has(std::to_string(i)), Holds(range, std::to_string(i))) << seed << " " << i;
    for (const char* no : {"-0", "00", "01", "1.0", "", "-", "+1", "1e1"})
      EXPECT_FALSE(texts.Has(no)) << seed << " " << no;
  }
}

// The negative control: a bound that is off by one is detected.
TEST(NumberRange, AnotherRangeGivesOthers) {
  NumberRange range, other;
  range.LowerHigh(BoundOf("999", false));
  other.LowerHigh(BoundOf("999", true));
  int n_differ = 0;
  for (int i = -1300; i <= 1300; ++i)
    n_differ += TextsOf(range, true).Has(std::to_string(i)) != Holds(other, std::to_string(i));
  EXPECT_EQ(n_differ, 1);
}

TEST(NumberRange, GivesTheRealNumbersInside) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomRange random(seed);
    const NumberRange range = random.Range(false);
    const GrammarTexts texts = TextsOf(range, false);
    for (int i = 0; i < 400; ++i) {
      std::string number = random.Number(false);
      if (i % 5 == 0) number += number.find('.') == number.npos ? ".0" : "00";
      const bool minus_zero = number[0] == '-' && Decimal::Parse(number)->IsZero();
      ASSERT_EQ(texts.Has(number), Holds(range, number) && !minus_zero) << seed << " " << number;
    }
    for (const char* no : {"-0", "-0.0", "00", "1.", ".5", "", "1e1"})
      EXPECT_FALSE(texts.Has(no)) << seed << " " << no;
  }
}

TEST(NumberRange, KeepsDoublesInside) {
  NumberRange range;
  range.RaiseLow(BoundOf("0", true));
  range.LowerHigh(BoundOf("100", true));
  const GrammarTexts texts = TextsOf(range, false);
  std::string nines = "99.", ones = "0.";
  while (texts.CanBegin(nines + "9")) nines += '9';
  while (texts.CanBegin(ones + "0")) ones += '0';
  ones.back() = '1';
  EXPECT_TRUE(texts.Has(nines));
  EXPECT_TRUE(texts.Has(ones));
  EXPECT_GE(nines.size(), 15u);
  EXPECT_LT(std::strtod(nines.c_str(), nullptr), 100.0) << nines;
  EXPECT_GT(std::strtod(ones.c_str(), nullptr), 0.0) << ones;
}

TEST(NumberRange, TakesLargeBounds) {
  NumberRange range;
  range.RaiseLow(BoundOf("-9223372036854775808", false));
  range.LowerHigh(BoundOf("9223372036854775807", false));
  const GrammarTexts texts = TextsOf(range, true);
  EXPECT_TRUE(texts.Has("-9223372036854775808"));
  EXPECT_TRUE(texts.Has("9223372036854775807"));
  EXPECT_FALSE(texts.Has("9223372036854775808"));
  EXPECT_FALSE(texts.Has("-9223372036854775809"));
}

}  // namespace
}  // namespace foretoken::grammar
