// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels_testing.h"

namespace foretoken::kernels {
namespace {

struct Angles {
  std::vector<float> c, s;
};

Angles AnglesOf(int n, float step) {
  Angles angles;
  for (int i = 0; i < n; ++i) {
    const float angle = step * static_cast<float>(i + 1);
    angles.c.push_back(std::cos(angle));
    angles.s.push_back(std::sin(angle));
  }
  return angles;
}

TEST(Rope, RotatesThePairsOfBothLayouts) {
  const Angles angles = AnglesOf(2, 0.7f);
  const std::vector<float> x = {1, 2, 3, 4, 5,
                                6, 7, 8, 9, 10};  // two heads of 5, 4 of them rotated
  for (const bool interleaved : {false, true}) {
    auto y = x;
    Scalar().rope(y.data(), 2, 5, 4, interleaved, angles.c.data(), angles.s.data());
    for (std::size_t head = 0; head < 10; head += 5) {
      EXPECT_EQ(y[head + 4], x[head + 4]);
      for (std::size_t i = 0; i < 2; ++i) {
        const std::size_t first = head + (interleaved ? 2 * i : i),
                          second = first + (interleaved ? 1 : 2);
        EXPECT_NEAR(y[first], x[first] * angles.c[i] - x[second] * angles.s[i], 1e-5);
        EXPECT_NEAR(y[second], x[first] * angles.s[i] + x[second] * angles.c[i], 1e-5);
      }
    }
  }
}

TEST(Rope, HasTheBitsOfTheScalarTableAndLeavesTheRestAlone) {
  for (const Kernels* kernels : VectorTables())
    for (int n_rot = 0; n_rot <= 140; n_rot += 2) {
      const int head_dim = n_rot + n_rot % 3 + 1, n_heads = 3;
      const Angles angles = AnglesOf(n_rot / 2, 0.37f);
      const auto x = Normal(head_dim * n_heads, static_cast<std::uint32_t>(n_rot));
      for (const bool interleaved : {false, true}) {
        auto expected = x, actual = x;
        Scalar().rope(expected.data(), n_heads, head_dim, n_rot, interleaved, angles.c.data(),
                      angles.s.data());
        kernels->rope(actual.data(), n_heads, head_dim, n_rot, interleaved, angles.c.data(),
                      angles.s.data());
        EXPECT_TRUE(SameBits(actual, expected))
            << kernels->isa << " " << n_rot << " " << interleaved;
        for (int h = 0; h < n_heads; ++h)
          for (int d = n_rot; d < head_dim; ++d) {
            const auto i = static_cast<std::size_t>(h * head_dim + d);
            EXPECT_EQ(actual[i], x[i]);
          }
      }
    }
}

}  // namespace
}  // namespace foretoken::kernels
