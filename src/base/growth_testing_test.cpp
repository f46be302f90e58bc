// SPDX-License-Identifier: Apache-2.0
#include "base/growth_testing.h"

#include <algorithm>

namespace foretoken {
namespace {

TEST(GrowthExponent, IsThePowerOfTheSize) {
  EXPECT_NEAR(GrowthExponent({10, 80}, 1, 8), 1, 1e-9);
  EXPECT_NEAR(GrowthExponent({10, 80}, 3, 192), 2, 1e-9);
  EXPECT_NEAR(GrowthExponent({10, 20}, 5, 5), 0, 1e-9);
}

TEST(Instructions, AreThoseOfTheRunAlone) {
  volatile int value = 0;
  const auto loop = [&](int n) {
    return [&value, n] {
      for (int i = 0; i < n; ++i) value = i;
    };
  };
  const std::uint64_t nothing = Instructions([] {}), some = Instructions(loop(1000)),
                      more = Instructions(loop(3000));
  EXPECT_LT(nothing, 1000u);
  EXPECT_GT(some, 1000u);
  EXPECT_NEAR(static_cast<double>(more), 3 * static_cast<double>(some), 1000);
  EXPECT_EQ(some, Instructions(loop(1000)));
}

// For each letter of a text, how often it occurred before; the sum of these. Once with a table and
// once by searching.
std::size_t CountOfEach(const std::string& text) {
  std::size_t counts[256] = {}, sum = 0;
  for (const char c : text) sum += ++counts[static_cast<unsigned char>(c)];
  return sum;
}
std::size_t CountOfEachBySearching(const std::string& text) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    sum += static_cast<std::size_t>(
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i) + 1, text[i]));
  return sum;
}

// The text in blocks of which there are as many as letters in one, and for each letter a look at
// all blocks: the power 1.5.
std::size_t CountOfBlocks(const std::string& text) {
  std::size_t block = 1, sum = 0;
  while (block * block < text.size()) ++block;
  for (const char c : text)
    for (std::size_t i = 0; i < text.size(); i += block) sum += text[i] == c ? 1 : 0;
  return sum;
}

// Sorts numbers in an order that is not random, and not sorted.
std::size_t SortedNumbers(const std::string& text) {
  std::vector<std::size_t> numbers(text.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i * 7919 % numbers.size();
  std::sort(numbers.begin(), numbers.end());
  return numbers.back();
}

// Each letter is put before all others.
std::size_t LettersInReverse(const std::string& text) {
  std::string all;
  for (const char c : text) all.insert(all.begin(), c);
  return all.size();
}

// All letters so far are copied for each.
std::size_t LettersCopied(const std::string& text) {
  std::string all;
  std::size_t sum = 0;
  for (const char c : text) {
    all += c;
    sum += std::string(all).size();
  }
  return sum;
}

// The whole text is copied, again and again.
std::size_t CopiesOfAll(const std::string& text) {
  std::size_t sum = 0;
  for (int i = 0; i < 64; ++i) sum += std::string(text).size();
  return sum;
}

template <typename Function>
double ExponentOf(const Function& function, Sizes sizes) {
  std::size_t sum = 0;
  const double exponent = InstructionExponent(sizes, [&](std::size_t size) {
    return [&, text = std::string(size, 'x')] { sum += function(text); };
  });
  EXPECT_GT(sum, 0u);
  return exponent;
}

TEST(InstructionExponent, IsOneForLinearWork) {
  static const std::string text = "abaa";
  EXPECT_EQ(CountOfEach(text), CountOfEachBySearching(text));
  EXPECT_NEAR(ExponentOf(CountOfEach, {4096, 16384}), 1, 0.02);
}

TEST(InstructionExponent, PassesWorkThatGrowsWithTheLogarithmToo) {
  const double exponent = ExponentOf(SortedNumbers, {4096, 16384});
  EXPECT_GT(exponent, 1.02);
  EXPECT_LE(exponent, kMostLinear);
}

TEST(InstructionExponent, FindsThePowerOneAndAHalf) {
  const double exponent = ExponentOf(CountOfBlocks, {4096, 16384});
  EXPECT_NEAR(exponent, 1.5, 0.05);
  EXPECT_GT(exponent, kMostLinear);
}

TEST(InstructionExponent, FindsQuadraticWork) {
  EXPECT_NEAR(ExponentOf(CountOfEachBySearching, {1024, 4096}), 2, 0.05);
}

// Bytes that a library moves count, too, though one instruction may move many of them.
TEST(InstructionExponent, FindsQuadraticMoves) {
  EXPECT_GT(ExponentOf(LettersInReverse, {4096, 16384}), 1.3);
}

// Long copies count as much for each byte as short ones. Those of `rep movsb`, which the tunables of
// ctest's command rule out, count far more: linear work would seem to be more than that.
TEST(InstructionExponent, FindsQuadraticCopiesAndPassesLongOnes) {
  EXPECT_NEAR(ExponentOf(LettersCopied, {4096, 16384}), 1.55, 0.2);
  EXPECT_LE(ExponentOf(CopiesOfAll, {1024, 16384}), kMostLinear);
}

}  // namespace
}  // namespace foretoken
