// SPDX-License-Identifier: Apache-2.0

#include "kernels/kernels_testing.h"

namespace foretoken::kernels {
namespace {

struct HadamardShape {
  int n, block;
};
constexpr HadamardShape kHadamardShapes[] = {{32, 32},  {64, 64},   {96, 32},  {128, 128},
                                             {128, 64}, {256, 256}, {576, 64}, {512, 512}};

TEST(Hadamard, MultipliesBlocksByTheMatrix) {
  for (const auto& [n, block] : kHadamardShapes) {
    const auto x = Normal(n, 5);
    auto y = x;
    Scalar().hadamard(y.data(), n, block, 0.125f);
    for (int i = 0; i < n; ++i) {
      const int begin = i / block * block;
      double sum = 0;
      for (int j = 0; j < block; ++j) {
        const bool negative = std::popcount(static_cast<unsigned>((i - begin) & j)) % 2 != 0;
        const double value{x[static_cast<std::size_t>(begin + j)]};
        sum += negative ? -value : value;
      }
      ASSERT_NEAR(double{y[static_cast<std::size_t>(i)]}, 0.125 * sum, 1e-5) << n << " " << block;
    }
  }
}

TEST(Hadamard, IsItsOwnInverse) {
  const auto x = Normal(192, 6);
  auto y = x;
  Scalar().hadamard(y.data(), 192, 64, 0.125f);
  Scalar().hadamard(y.data(), 192, 64, 0.125f);
  for (std::size_t i = 0; i < 192; ++i) ASSERT_NEAR(y[i], x[i], 1e-5f);
}

TEST(Hadamard, HasTheBitsOfTheScalarTable) {
  const float specials[] = {0.0f, -0.0f, 1e-40f, -3e38f, kInf, kNan};
  for (const auto& [n, block] : kHadamardShapes) {
    const auto width = static_cast<std::size_t>(n);
    for (const auto& x : {Normal(width, 7), Spiced(width, 8, specials)}) {
      auto expected = x;
      Scalar().hadamard(expected.data(), n, block, 0.25f);
      for (const Kernels* kernels : VectorTables()) {
        auto y = x;
        kernels->hadamard(y.data(), n, block, 0.25f);
        EXPECT_TRUE(SameBits(y, expected)) << kernels->isa << " " << n << " " << block;
      }
    }
  }
}

}  // namespace
}  // namespace foretoken::kernels
