// SPDX-License-Identifier: Apache-2.0
#include "base/scaling_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace foretoken {
namespace {

TEST(GrowthExponent, IsThePowerOfTheSize) {
  const std::vector<std::size_t> sizes = {10, 20, 80};
  EXPECT_NEAR(GrowthExponent(sizes, std::vector<double>{1, 2, 8}), 1, 1e-9);
  EXPECT_NEAR(GrowthExponent(sizes, std::vector<double>{3, 12, 192}), 2, 1e-9);
  EXPECT_NEAR(GrowthExponent(sizes, std::vector<double>{5, 5, 5}), 0, 1e-9);
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

template <typename Function>
double ExponentOf(const Function& function, const std::vector<std::size_t>& sizes) {
  std::size_t sum = 0;
  const double exponent = TimeExponent(sizes, [&](std::size_t size) {
    return [&, text = std::string(size, 'x')] { sum += function(text); };
  });
  EXPECT_GT(sum, 0u);
  return exponent;
}

TEST(TimeExponent, TellsLinearWorkFromQuadraticWork) {
  static const std::string text = "abaa";
  EXPECT_EQ(CountOfEach(text), CountOfEachBySearching(text));
  EXPECT_LE(ExponentOf(CountOfEach, {4096, 16384, 65536}), kMostLinear);
  EXPECT_GT(ExponentOf(CountOfEachBySearching, {1024, 4096, 16384}), 1.5);
}

}  // namespace
}  // namespace foretoken
