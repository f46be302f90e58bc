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

struct ConvolutionShape {
  int n_taps, n_steps, n, n_absent;  // positions that the text does not have
  bool biased, activates;
};

std::vector<ConvolutionShape> ConvolutionShapes() {
  std::vector<ConvolutionShape> shapes;
  for (const int n_taps : {1, 3, 4})
    for (const int n_steps : {1, 5})
      for (const int n : {1, 16, 40, 128})
        for (const bool biased : {false, true})
          for (int n_absent = 0; n_absent < n_taps; ++n_absent)
            shapes.push_back({n_taps, n_steps, n, n_absent, biased, n % 3 != 1});
  return shapes;
}

// Inputs, weights and bias have columns before those that are convolved.
struct ConvolutionCase {
  static constexpr int kBefore = 3;
  const ConvolutionShape shape;
  const int width = kBefore + shape.n, n_inputs = shape.n_taps - 1 + shape.n_steps;
  const std::vector<float> inputs = Normal(n_inputs * width, 1),
                           weights = Normal(shape.n_taps * width, 2), bias = Normal(width, 3);

  std::vector<float> Run(const Kernels& kernels) const {
    std::vector<const float*> x;
    for (int i = 0; i < n_inputs; ++i)
      x.push_back(i < shape.n_absent ? nullptr : inputs.data() + i * width);
    std::vector<float> y(static_cast<std::size_t>(shape.n_steps * (shape.n + 1)), kSentinel);
    kernels.convolve({.x = x.data(),
                      .weights = weights.data(),
                      .weights_stride = width,
                      .bias = shape.biased ? bias.data() : nullptr,
                      .n_taps = shape.n_taps,
                      .n_steps = shape.n_steps,
                      .column = kBefore,
                      .n = shape.n,
                      .activates = shape.activates,
                      .y = y.data(),
                      .y_stride = shape.n + 1});
    return y;
  }
};

TEST(Convolve, IsCloseToDoubles) {
  for (const ConvolutionShape& shape : ConvolutionShapes()) {
    const ConvolutionCase c = {shape};
    const std::vector<float> y = c.Run(Scalar());
    const auto at = [&](const std::vector<float>& x, int row, int i) {
      return static_cast<double>(x[static_cast<std::size_t>(row * c.width + c.kBefore + i)]);
    };
    for (int t = 0; t < shape.n_steps; ++t)
      for (int i = 0; i < shape.n; ++i) {
        double sum = shape.biased ? at(c.bias, 0, i) : 0;
        for (int j = std::max(0, shape.n_absent - t); j < shape.n_taps; ++j)
          sum += at(c.weights, j, i) * at(c.inputs, t + j, i);
        if (shape.activates) sum /= 1 + std::exp(-sum);
        EXPECT_NEAR(static_cast<double>(y[static_cast<std::size_t>(t * (shape.n + 1) + i)]), sum,
                    1e-5);
      }
  }
}

TEST(Convolve, HasTheBitsOfTheScalarTable) {
  for (const Kernels* kernels : VectorTables())
    for (const ConvolutionShape& shape : ConvolutionShapes()) {
      const ConvolutionCase c = {shape};
      EXPECT_TRUE(SameBits(c.Run(*kernels), c.Run(Scalar())))
          << kernels->isa << " " << shape.n_taps << " " << shape.n;
    }
}

struct StateShape {
  int n_in, n_out;
  bool corrects;
};

std::vector<StateShape> StateShapes() {
  std::vector<StateShape> shapes;
  for (const int n_in : {1, 7, 32, 128})
    for (const int n_out : {16, 32, 48, 64, 80, 112, 128})
      for (const bool corrects : {false, true}) shapes.push_back({n_in, n_out, corrects});
  return shapes;
}

constexpr int kMostSteps = 5;

// What a head has and gets, and what it gives.
struct Head {
  StateShape shape;
  std::vector<float> state, work, q, k, v, decay, beta, out;

  explicit Head(const StateShape& s)
      : shape(s),
        state(Normal(s.n_in * s.n_out, 1)),
        work(state.size()),
        q(Normal(kMostSteps * s.n_in, 2)),
        k(Normal(kMostSteps * s.n_in, 3)),
        v(Normal(kMostSteps * s.n_out, 4)),
        decay(Normal(kMostSteps, 5, 0.5f)),
        beta(Normal(kMostSteps, 6, 0.5f)),
        out(v.size(), kSentinel) {}

  void Run(const Kernels& kernels, int n_steps, int n_kept, int n_silent, int first = 0) {
    kernels.advance_state({.state = state.data(),
                           .work = work.data(),
                           .n_in = shape.n_in,
                           .n_out = shape.n_out,
                           .n_steps = n_steps,
                           .n_kept = n_kept,
                           .q = q.data() + first * shape.n_in,
                           .k = k.data() + first * shape.n_in,
                           .v = v.data() + first * shape.n_out,
                           .decay = decay.data() + first,
                           .beta = shape.corrects ? beta.data() + first : nullptr,
                           .n_silent = n_silent,
                           .out = out.data() + first * shape.n_out,
                           .out_stride = shape.n_out});
  }
};

TEST(AdvanceState, IsCloseToDoubles) {
  for (const StateShape& shape : StateShapes()) {
    const Head before(shape);
    Head after = before;
    after.Run(Scalar(), 1, 1, 0);
    const auto size = [](int n) { return static_cast<std::size_t>(n); };
    const auto number = [](float x) { return static_cast<double>(x); };
    for (std::size_t j = 0; j < size(shape.n_out); ++j) {
      double d = number(before.v[j]), known = 0, out = 0;
      const auto at = [&](std::size_t i) { return (j / 16 * size(shape.n_in) + i) * 16 + j % 16; };
      const auto old = [&](std::size_t i) {
        return number(before.state[at(i)]) * number(before.decay[0]);
      };
      for (std::size_t i = 0; i < size(shape.n_in); ++i) known += number(before.k[i]) * old(i);
      if (shape.corrects) d = (d - known) * number(before.beta[0]);
      for (std::size_t i = 0; i < size(shape.n_in); ++i) {
        const double s = old(i) + number(before.k[i]) * d;
        EXPECT_NEAR(number(after.state[at(i)]), s, 1e-4);
        out += number(before.q[i]) * s;
      }
      EXPECT_NEAR(number(after.out[j]), out, 2e-3);
    }
  }
}

TEST(AdvanceState, HasTheBitsOfTheScalarTable) {
  for (const Kernels* kernels : VectorTables())
    for (const StateShape& shape : StateShapes())
      for (int n_steps = 1; n_steps <= kMostSteps; n_steps += 2)
        for (int n_kept = 0; n_kept <= n_steps; ++n_kept) {
          Head a(shape), b(shape);
          const int n_silent = n_kept / 2;
          a.Run(*kernels, n_steps, n_kept, n_silent);
          b.Run(Scalar(), n_steps, n_kept, n_silent);
          EXPECT_TRUE(SameBits(a.state, b.state) && SameBits(a.out, b.out))
              << kernels->isa << " " << shape.n_in << " " << shape.n_out << " " << n_kept;
          EXPECT_TRUE(n_kept == n_steps || SameBits(a.work, b.work));
        }
}

// Positions together, in parts, kept or not: the same results, and a state that has taken in exactly
// those that are kept.
TEST(AdvanceState, HasTheBitsOfSinglePositions) {
  for (const Isa isa : AvailableIsas())
    for (const StateShape& shape : StateShapes())
      for (int n_kept = 0; n_kept <= kMostSteps; ++n_kept) {
        Head together(shape), single(shape);
        together.Run(KernelsFor(isa), kMostSteps, n_kept, 0);
        std::vector<float> kept = single.state;
        for (int step = 0; step < kMostSteps; ++step) {
          single.Run(KernelsFor(isa), 1, 1, 0, step);
          if (step + 1 == n_kept) kept = single.state;
        }
        EXPECT_TRUE(SameBits(together.out, single.out) && SameBits(together.state, kept));
      }
}

}  // namespace
}  // namespace foretoken::kernels
