// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

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

void ExpectClose(GateFunction function, const std::vector<float>& g, const std::vector<float>& u,
                 const std::function<double(double, double)>& formula, double relative,
                 double absolute) {
  const auto y = Gated(function, g, u);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double expected = formula(static_cast<double>(g[i]), static_cast<double>(u[i]));
    EXPECT_NEAR(static_cast<double>(y[i]), expected, relative * std::abs(expected) + absolute)
        << g[i];
  }
}

// of_u: also among the factors.
void ExpectBitsOfTheScalarTable(GateFunction Kernels::*function, float deviation,
                                std::span<const float> specials, bool of_u = false) {
  for (const Kernels* kernels : VectorTables())
    for (const int n : Sizes()) {
      const auto seed = static_cast<std::uint32_t>(n), size = seed;
      const auto u = of_u ? Spiced(size, seed + 5, specials) : Normal(size, seed + 5);
      for (const auto& g : {Normal(size, seed, deviation), Spiced(size, seed, specials)})
        EXPECT_TRUE(SameBits(Gated(kernels->*function, g, u), Gated(Scalar().*function, g, u)))
            << kernels->isa << " " << n;
    }
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
  g[0] = 0.0f, g[1] = 87.0f, g[2] = -87.0f;
  const auto formula = [](double x, double u) { return x / (1 + std::exp(-x)) * u; };
  ExpectClose(Scalar().silu_mul, g, Normal(2000, 2), formula, 1e-6, 1e-30);
}

TEST(SiluMul, GoesToItsLimitsFarOut) {
  const auto y =
      Gated(Scalar().silu_mul, {200.0f, -200.0f, 1e30f, -87.5f}, {2.0f, 2.0f, 1.0f, 1.0f});
  EXPECT_EQ(y[0], 400.0f);
  EXPECT_LT(std::abs(y[1]), 1e-35f);
  EXPECT_EQ(y[2], 1e30f);
  EXPECT_LT(std::abs(y[3]), 1e-35f);
}

TEST(SiluMul, HasTheBitsOfTheScalarTable) {
  const float specials[] = {0.0f,    -0.0f,  88.37626f, -88.4f, 87.33654f, 87.4f,
                            -300.0f, 300.0f, kInf,      -kInf,  1e-40f};
  ExpectBitsOfTheScalarTable(&Kernels::silu_mul, 30.0f, specials);
}

TEST(SiluMul, WritesOverEitherInput) {
  for (const Isa isa : AvailableIsas()) {
    auto g = Normal(53, 3), u = Normal(53, 4);
    const auto y = Gated(KernelsFor(isa).silu_mul, g, u);
    auto g_copy = g;
    KernelsFor(isa).silu_mul(g_copy.data(), u.data(), 53, g_copy.data());
    KernelsFor(isa).silu_mul(g.data(), u.data(), 53, u.data());
    EXPECT_TRUE(SameBits(g_copy, y)) << Name(isa);
    EXPECT_TRUE(SameBits(u, y)) << Name(isa);
  }
}

TEST(GeluMul, IsCloseToDoubles) {
  auto g = Normal(2000, 1, 5.0f);
  g[0] = 0.0f, g[1] = 40.0f, g[2] = -40.0f;
  const auto formula = [](double x, double u) {
    const double t = std::tanh(std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x));
    return 0.5 * x * (1 + t) * u;
  };
  ExpectClose(Scalar().gelu_mul, g, Normal(2000, 2), formula, 4e-6, 1e-6);
}

TEST(GeluMul, GoesToItsLimitsFarOut) {
  const auto y =
      Gated(Scalar().gelu_mul, {200.0f, -200.0f, 1e30f, -1e30f}, {2.0f, 2.0f, 1.0f, 1.0f});
  EXPECT_EQ(y[0], 400.0f);
  EXPECT_LT(std::abs(y[1]), 1e-35f);
  EXPECT_EQ(y[2], 1e30f);
  EXPECT_LT(std::abs(y[3]), 1e-7f);
}

TEST(GeluMul, HasTheBitsOfTheScalarTable) {
  const float specials[] = {0.0f, -0.0f, 9.0f, -9.0f, 1e20f, -1e20f, kInf, -kInf, 1e-40f};
  ExpectBitsOfTheScalarTable(&Kernels::gelu_mul, 4.0f, specials);
}

TEST(LimitedSwiglu, IsCloseToDoubles) {
  const auto formula = [](double g, double u) {
    const double a = std::min(g, 7.0), b = std::clamp(u, -7.0, 7.0);
    return a / (1 + std::exp(-1.702 * a)) * (b + 1);
  };
  ExpectClose(Scalar().limited_swiglu, Normal(2000, 1, 6.0f), Normal(2000, 2, 6.0f), formula, 4e-6,
              1e-6);
}

TEST(LimitedSwiglu, HasTheBitsOfTheScalarTable) {
  const float specials[] = {0.0f, -0.0f, 7.0f, -7.0f, 9.0f, -9.0f, kInf, -kInf, kNan, 1e-40f};
  ExpectBitsOfTheScalarTable(&Kernels::limited_swiglu, 6.0f, specials, true);
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
