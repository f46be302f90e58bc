// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels_testing.h"

namespace foretoken::kernels {
namespace {

using GateFunction = decltype(Kernels::silu_mul);

std::vector<float> Gated(GateFunction function, const std::vector<float>& g,
                         const std::vector<float>& u) {
  std::vector<float> y(g.size() + 1, kSentinel);
  function(g.data(), u.data(), static_cast<int>(g.size()), y.data());
  EXPECT_EQ(y.back(), kSentinel);
  y.pop_back();
  return y;
}

std::vector<float> SiluMul(const Kernels& kernels, const std::vector<float>& g,
                           const std::vector<float>& u) {
  return Gated(kernels.silu_mul, g, u);
}

std::vector<float> GeluMul(const Kernels& kernels, const std::vector<float>& g,
                           const std::vector<float>& u) {
  return Gated(kernels.gelu_mul, g, u);
}

std::vector<float> SoftCap(const Kernels& kernels, std::vector<float> x, float cap) {
  const std::size_t n = x.size();
  x.push_back(kSentinel);
  kernels.soft_cap(x.data(), static_cast<int>(n), cap);
  EXPECT_EQ(x.back(), kSentinel);
  x.pop_back();
  return x;
}

TEST(SiluMul, IsCloseToDoubles) {
  auto g = Normal(2000, 1, 20.0f);
  const auto u = Normal(2000, 2);
  g[0] = 0.0f;
  g[1] = 87.0f;
  g[2] = -87.0f;
  const auto y = SiluMul(Scalar(), g, u);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double x = static_cast<double>(g[i]);
    const double expected = x / (1 + std::exp(-x)) * static_cast<double>(u[i]);
    EXPECT_NEAR(static_cast<double>(y[i]), expected, 1e-6 * std::abs(expected) + 1e-30) << g[i];
  }
}

TEST(SiluMul, GoesToItsLimitsFarOut) {
  const auto y = SiluMul(Scalar(), {200.0f, -200.0f, 1e30f, -87.5f}, {2.0f, 2.0f, 1.0f, 1.0f});
  EXPECT_EQ(y[0], 400.0f);
  EXPECT_LT(std::abs(y[1]), 1e-35f);
  EXPECT_EQ(y[2], 1e30f);
  EXPECT_LT(std::abs(y[3]), 1e-35f);
}

TEST(SiluMul, HasTheBitsOfTheScalarTable) {
  const float specials[] = {0.0f,    -0.0f,  88.37626f, -88.4f, 87.33654f, 87.4f,
                            -300.0f, 300.0f, kInf,      -kInf,  1e-40f};
  for (const Kernels* kernels : VectorTables()) {
    for (const int n : Sizes()) {
      const auto seed = static_cast<std::uint32_t>(n), size = seed;
      const auto u = Normal(size, seed + 5);
      for (const auto& g : {Normal(size, seed, 30.0f), Spiced(size, seed, specials)})
        EXPECT_TRUE(SameBits(SiluMul(*kernels, g, u), SiluMul(Scalar(), g, u)))
            << kernels->isa << " " << n;
    }
  }
}

TEST(SiluMul, WritesOverEitherInput) {
  for (const Isa isa : AvailableIsas()) {
    auto g = Normal(53, 3), u = Normal(53, 4);
    const auto y = SiluMul(KernelsFor(isa), g, u);
    auto g_copy = g;
    KernelsFor(isa).silu_mul(g_copy.data(), u.data(), 53, g_copy.data());
    KernelsFor(isa).silu_mul(g.data(), u.data(), 53, u.data());
    EXPECT_TRUE(SameBits(g_copy, y)) << Name(isa);
    EXPECT_TRUE(SameBits(u, y)) << Name(isa);
  }
}

TEST(GeluMul, IsCloseToDoubles) {
  auto g = Normal(2000, 1, 5.0f);
  const auto u = Normal(2000, 2);
  g[0] = 0.0f;
  g[1] = 40.0f;
  g[2] = -40.0f;
  const auto y = GeluMul(Scalar(), g, u);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double x = static_cast<double>(g[i]);
    const double t = std::tanh(std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x));
    const double expected = 0.5 * x * (1 + t) * static_cast<double>(u[i]);
    EXPECT_NEAR(static_cast<double>(y[i]), expected, 4e-6 * std::abs(expected) + 1e-6) << g[i];
  }
}

TEST(GeluMul, GoesToItsLimitsFarOut) {
  const auto y = GeluMul(Scalar(), {200.0f, -200.0f, 1e30f, -1e30f}, {2.0f, 2.0f, 1.0f, 1.0f});
  EXPECT_EQ(y[0], 400.0f);
  EXPECT_LT(std::abs(y[1]), 1e-35f);
  EXPECT_EQ(y[2], 1e30f);
  EXPECT_LT(std::abs(y[3]), 1e-7f);
}

TEST(GeluMul, HasTheBitsOfTheScalarTable) {
  const float specials[] = {0.0f, -0.0f, 9.0f, -9.0f, 1e20f, -1e20f, kInf, -kInf, 1e-40f};
  for (const Kernels* kernels : VectorTables())
    for (const int n : Sizes()) {
      const auto seed = static_cast<std::uint32_t>(n), size = seed;
      const auto u = Normal(size, seed + 5);
      for (const auto& g : {Normal(size, seed, 4.0f), Spiced(size, seed, specials)})
        EXPECT_TRUE(SameBits(GeluMul(*kernels, g, u), GeluMul(Scalar(), g, u)))
            << kernels->isa << " " << n;
    }
}

std::vector<float> LimitedSwiglu(const Kernels& kernels, const std::vector<float>& g,
                                 const std::vector<float>& u) {
  return Gated(kernels.limited_swiglu, g, u);
}

TEST(LimitedSwiglu, IsCloseToDoubles) {
  const auto g = Normal(2000, 1, 6.0f), u = Normal(2000, 2, 6.0f);
  const auto y = LimitedSwiglu(Scalar(), g, u);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double a = std::min(static_cast<double>(g[i]), 7.0);
    const double b = std::clamp(static_cast<double>(u[i]), -7.0, 7.0);
    const double expected = a / (1 + std::exp(-1.702 * a)) * (b + 1);
    EXPECT_NEAR(static_cast<double>(y[i]), expected, 4e-6 * std::abs(expected) + 1e-6) << g[i];
  }
}

TEST(LimitedSwiglu, HasTheBitsOfTheScalarTable) {
  const float specials[] = {0.0f, -0.0f, 7.0f, -7.0f, 9.0f, -9.0f, kInf, -kInf, kNan, 1e-40f};
  for (const Kernels* kernels : VectorTables())
    for (const int n : Sizes()) {
      const auto size = static_cast<std::uint32_t>(n);
      const auto g = Spiced(size, size, specials), u = Spiced(size, size + 7, specials);
      EXPECT_TRUE(SameBits(LimitedSwiglu(*kernels, g, u), LimitedSwiglu(Scalar(), g, u)))
          << kernels->isa << " " << n;
    }
}

TEST(SoftCap, IsCloseToTheHyperbolicTangent) {
  for (const float cap : {3.0f, 30.0f}) {
    const auto x = Normal(2000, 3, 2 * cap);
    const auto y = SoftCap(Scalar(), x, cap);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double c = static_cast<double>(cap);
      EXPECT_NEAR(static_cast<double>(y[i]), c * std::tanh(static_cast<double>(x[i]) / c),
                  3e-7 * c);
    }
  }
}

TEST(SoftCap, ShowsWhatIsNotANumberAndBoundsTheRest) {
  const auto y = SoftCap(Scalar(), {kNan, kInf, -kInf, 1e30f, -1e30f, 0.0f}, 5.0f);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 5.0f);
  EXPECT_EQ(y[2], -5.0f);
  EXPECT_EQ(y[3], 5.0f);
  EXPECT_EQ(y[4], -5.0f);
  EXPECT_EQ(y[5], 0.0f);
}

TEST(SoftCap, HasTheBitsOfTheScalarTable) {
  const float specials[] = {0.0f, -0.0f, 1e20f, -1e20f, kInf, -kInf, kNan, 1e-40f};
  for (const Kernels* kernels : VectorTables())
    for (const int n : Sizes()) {
      const auto seed = static_cast<std::uint32_t>(n);
      const auto x = Spiced(seed, seed, specials);
      EXPECT_TRUE(SameBits(SoftCap(*kernels, x, 2.5f), SoftCap(Scalar(), x, 2.5f)))
          << kernels->isa << " " << n;
    }
}

}  // namespace
}  // namespace foretoken::kernels
