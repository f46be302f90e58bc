// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels_testing.h"

namespace foretoken::kernels {
namespace {

std::vector<float> RmsNorm(const Kernels& kernels, const std::vector<float>& x,
                           const std::vector<float>& weight, float eps) {
  std::vector<float> y(x.size() + 1, kSentinel);
  kernels.rms_norm(x.data(), weight.data(), static_cast<int>(x.size()), eps, y.data());
  EXPECT_EQ(y.back(), kSentinel);
  y.pop_back();
  return y;
}

TEST(RmsNorm, IsCloseToDoubles) {
  for (const std::size_t n : {1u, 5u, 64u, 1000u, 4096u}) {
    const auto x = Normal(n, 1, 3.0f), weight = Normal(n, 2);
    const auto y = RmsNorm(Scalar(), x, weight, 1e-5f);
    double ss = 0;
    for (const float v : x) ss += static_cast<double>(v) * static_cast<double>(v);
    const double factor = 1 / std::sqrt(ss / static_cast<double>(n) + 1e-5);
    for (std::size_t i = 0; i < n; ++i) {
      const double expected = static_cast<double>(x[i]) * factor * static_cast<double>(weight[i]);
      EXPECT_NEAR(static_cast<double>(y[i]), expected, 1e-6 * std::abs(expected) + 1e-12);
    }
  }
}

TEST(RmsNorm, HasTheBitsOfTheScalarTable) {
  const float specials[] = {0.0f, -0.0f, 1e-40f, 1e18f, -1e-20f};
  for (const Kernels* kernels : VectorTables())
    for (const int n : Sizes()) {
      if (n == 0) continue;
      const auto seed = static_cast<std::uint32_t>(n);
      const auto weight = Normal(n, seed + 7);
      for (const auto& x : {Normal(weight.size(), seed), Spiced(weight.size(), seed, specials)})
        EXPECT_TRUE(
            SameBits(RmsNorm(*kernels, x, weight, 1e-6f), RmsNorm(Scalar(), x, weight, 1e-6f)))
            << kernels->isa << " " << n;
    }
}

TEST(RmsNorm, WorksInPlace) {
  for (const Isa isa : AvailableIsas()) {
    auto x = Normal(77, 3);
    const auto weight = Normal(77, 4);
    const auto y = RmsNorm(KernelsFor(isa), x, weight, 1e-5f);
    KernelsFor(isa).rms_norm(x.data(), weight.data(), 77, 1e-5f, x.data());
    EXPECT_TRUE(SameBits(x, y)) << Name(isa);
  }
}

}  // namespace
}  // namespace foretoken::kernels
