// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels_testing.h"

namespace foretoken::kernels {
namespace {

TEST(Softplus, IsCloseToDoubles) {
  std::vector<float> x;
  for (int i = -900; i <= 900; ++i) x.push_back(static_cast<float>(i) * 0.1f);
  std::vector<float> y(x.size());
  Scalar().softplus(x.data(), static_cast<int>(x.size()), y.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = std::log1p(std::exp(static_cast<double>(x[i])));
    if (x[i] > -87)
      EXPECT_NEAR(static_cast<double>(y[i]), expected, 1e-6 * expected) << x[i];
    else
      EXPECT_LE(y[i], 1e-37f);
  }
}

TEST(Softplus, HasTheBitsOfTheScalarTable) {
  const float specials[] = {0.0f, -0.0f, 1e-40f, 88.0f, -88.0f, 1e30f, -1e30f};
  for (const Kernels* kernels : VectorTables())
    for (const int n : Sizes()) {
      const auto x = Spiced(static_cast<std::size_t>(n), static_cast<std::uint32_t>(n), specials);
      std::vector<float> a(x.size() + 1, kSentinel), b = a;
      kernels->softplus(x.data(), n, a.data());
      Scalar().softplus(x.data(), n, b.data());
      EXPECT_TRUE(SameBits(a, b)) << kernels->isa << " " << n;
    }
}

struct Shape {
  int n_in, n_out;
  bool corrects;
};

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (const int n_in : {1, 7, 32, 128})
    for (const int n_out : {16, 32, 48, 64, 80, 112, 128})
      for (const bool corrects : {false, true}) shapes.push_back({n_in, n_out, corrects});
  return shapes;
}

struct Step {
  std::vector<float> state, q, k, v, out;

  explicit Step(const Shape& shape)
      : state(Normal(static_cast<std::size_t>(shape.n_in * shape.n_out), 1)),
        q(Normal(static_cast<std::size_t>(shape.n_in), 2)),
        k(Normal(static_cast<std::size_t>(shape.n_in), 3)),
        v(Normal(static_cast<std::size_t>(shape.n_out), 4)),
        out(static_cast<std::size_t>(shape.n_out)) {}
  void Run(const Kernels& kernels, const Shape& shape, bool wants_out = true) {
    kernels.advance_state({.state = state.data(),
                           .n_in = shape.n_in,
                           .n_out = shape.n_out,
                           .q = q.data(),
                           .k = k.data(),
                           .v = v.data(),
                           .decay = 0.83f,
                           .corrects = shape.corrects,
                           .beta = 0.4f,
                           .out = wants_out ? out.data() : nullptr});
  }
};

TEST(AdvanceState, IsCloseToDoubles) {
  for (const Shape& shape : Shapes()) {
    const Step before(shape);
    Step after = before;
    after.Run(Scalar(), shape);
    const auto size = [](int n) { return static_cast<std::size_t>(n); };
    for (std::size_t j = 0; j < size(shape.n_out); ++j) {
      double d = static_cast<double>(before.v[j]), known = 0, out = 0;
      const auto old = [&](std::size_t i) {
        return static_cast<double>(before.state[i * size(shape.n_out) + j]) * 0.83;
      };
      for (std::size_t i = 0; i < size(shape.n_in); ++i)
        known += static_cast<double>(before.k[i]) * old(i);
      if (shape.corrects) d = (d - known) * 0.4;
      for (std::size_t i = 0; i < size(shape.n_in); ++i) {
        const double s = old(i) + static_cast<double>(before.k[i]) * d;
        EXPECT_NEAR(static_cast<double>(after.state[i * size(shape.n_out) + j]), s, 1e-4);
        out += static_cast<double>(before.q[i]) * s;
      }
      EXPECT_NEAR(static_cast<double>(after.out[j]), out, 2e-3);
    }
  }
}

TEST(AdvanceState, HasTheBitsOfTheScalarTable) {
  for (const Kernels* kernels : VectorTables())
    for (const Shape& shape : Shapes())
      for (const bool wants_out : {true, false}) {
        Step a(shape), b(shape);
        for (int step = 0; step < 3; ++step) {
          a.Run(*kernels, shape, wants_out);
          b.Run(Scalar(), shape, wants_out);
        }
        EXPECT_TRUE(SameBits(a.state, b.state) && SameBits(a.out, b.out))
            << kernels->isa << " " << shape.n_in << " " << shape.n_out;
      }
}

}  // namespace
}  // namespace foretoken::kernels
