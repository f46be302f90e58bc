// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "base/normal_testing.h"
#include "kernels/dispatch.h"

namespace foretoken::kernels {
namespace {

struct Quantised {
  std::vector<std::int8_t> q;
  std::vector<float> d;
  std::vector<std::int32_t> sums;
  bool operator==(const Quantised&) const = default;
};

Quantised QuantiseRows(Isa isa, const std::vector<float>& x, int n_rows, int k, int stride) {
  const auto n = static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(k);
  Quantised out{std::vector<std::int8_t>(n), std::vector<float>(n / 32),
                std::vector<std::int32_t>(n / 32 * 2)};
  KernelsFor(isa).quantize(x.data(), stride, n_rows, k, out.q.data(), out.d.data(),
                           out.sums.data());
  return out;
}

std::vector<float> Noise(std::size_t n, float scale, unsigned seed) {
  std::vector<float> x = Normal(n, seed);
  for (float& v : x) v *= scale;
  return x;
}

class Quantize : public testing::TestWithParam<Isa> {};

TEST_P(Quantize, EqualsScalarBitForBitAtEveryScale) {
  constexpr int kRows = 3, kK = 224, kStride = 240;
  for (const float scale :
       {0.0f, 1e-44f, 1e-38f, 1e-31f, 7.9e-31f, 1e-30f, 1e-3f, 1.0f, 1e6f, 5e37f}) {
    const std::vector<float> x = Noise(kRows * kStride, scale, 5);
    EXPECT_EQ(QuantiseRows(GetParam(), x, kRows, kK, kStride),
              QuantiseRows(Isa::kScalar, x, kRows, kK, kStride))
        << scale;
  }
}

// If one value of a block is NaN or infinite, what is computed from the block must be so too.
TEST_P(Quantize, GivesAScaleThatIsNotFiniteWhereAValueIsNot) {
  for (int i = 0; i < 32; ++i)
    for (const float wrong : {NAN, -NAN, INFINITY, -INFINITY}) {
      std::vector<float> x = Noise(64, 1.0f, 9);
      x[static_cast<std::size_t>(i)] = wrong;
      const Quantised out = QuantiseRows(GetParam(), x, 1, 64, 64);
      EXPECT_FALSE(std::isfinite(out.d[0])) << i << " " << wrong;
      EXPECT_TRUE(std::isfinite(out.d[1])) << i << " " << wrong;
      for (const std::int32_t sum : out.sums) {
        EXPECT_LE(sum, 32 * 128) << i << " " << wrong;
        EXPECT_GE(sum, -32 * 128) << i << " " << wrong;
      }
    }
}

TEST_P(Quantize, RoundsHalvesToEven) {
  std::vector<float> x(32, 0.0f);
  x[0] = 127;  // d = 1
  for (int i = 1; i < 32; ++i) x[i] = static_cast<float>(i - 16) + 0.5f;
  const Quantised out = QuantiseRows(GetParam(), x, 1, 32, 32);
  ASSERT_EQ(out.d[0], 1.0f);
  std::int32_t sums[2] = {127, 127};
  for (int i = 1; i < 32; ++i) {
    const int low = i - 16, even = low % 2 == 0 ? low : low + 1;
    EXPECT_EQ(out.q[i], even) << i;
    if (i < 16) sums[0] += even;
    sums[1] += even;
  }
  EXPECT_EQ(out.sums[0], sums[0]);
  EXPECT_EQ(out.sums[1], sums[1]);
}

TEST_P(Quantize, StaysWithinHalfAStepAndNeverReachesMinus128) {
  constexpr int kK = 32 * 200;
  std::vector<float> x = Noise(kK, 1.0f, 11);
  for (int i = 0; i < kK; i += 32)
    x[i] = -10 - static_cast<float>(i);  // the largest magnitude of its block is negative
  const Quantised out = QuantiseRows(GetParam(), x, 1, kK, kK);
  for (int i = 0; i < kK; ++i) {
    EXPECT_NEAR(out.d[i / 32] * static_cast<float>(out.q[i]), x[i], 0.501f * out.d[i / 32]);
    EXPECT_GE(out.q[i], -127);
  }
}

TEST_P(Quantize, GivesZerosForABlockTooSmallToScale) {
  std::vector<float> x(32, 0x1p-101f);
  Quantised out = QuantiseRows(GetParam(), x, 1, 32, 32);
  EXPECT_EQ(out, (Quantised{std::vector<std::int8_t>(32, 0), {0.0f}, {0, 0}}));
  x[31] = -0x1p-100f;
  out = QuantiseRows(GetParam(), x, 1, 32, 32);
  EXPECT_EQ(out.q[31], -127);
  EXPECT_GT(out.d[0], 0.0f);
}

INSTANTIATE_TEST_SUITE_P(Isas, Quantize, testing::ValuesIn(AvailableIsas()),
                         [](const auto& of) { return std::string(Name(of.param)); });

}  // namespace
}  // namespace foretoken::kernels
