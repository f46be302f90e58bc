// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/heads/local_convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/normal_testing.h"
#include "kernels/dispatch.h"
#include "kernels/repack.h"
#include "model/network.h"

namespace foretoken::model {
namespace {

constexpr int kDim = 96, kRows = 8, kTaps = 3, kGroup = 16, kGroups = kDim / kGroup;
constexpr int kCoefficients = 2 * kTaps * kGroups;
constexpr LocalConvolutionConfig kConvolution = {.taps = kTaps, .group = kGroup};

using ConvolutionRows = std::vector<std::vector<double>>;

// A part that adds twice what it reads.
class Twice final : public Block {
 public:
  explicit Twice(const Workspace& space) : space_(space) {}
  void AddPhases(std::vector<Phase>& phases) const override {
    phases.push_back(PhaseOf<&Twice::Run>(*this, Split::kRows));
  }

 private:
  void Run(const Pass& pass, int thread) const noexcept {
    const auto rows = space_.RowsOf(pass, thread);
    const Activation in = space_.scratch.normed.View(kDim), out = space_.scratch.delta.View(kDim);
    for (int row = rows.begin; row < rows.end; ++row)
      for (int i = 0; i < kDim; ++i) out.Row(row)[i] = 2 * in.Row(row)[i];
  }
  const Workspace space_;
};

struct Numbers {
  std::vector<float> base = Normal(2 * kTaps * kDim, 1, 0.7f);
  std::vector<float> w = Normal(kCoefficients * kDim, 2, 0.1f);
  std::vector<float> norm = Normal(kDim, 3, 1), x = Normal(kRows * kDim, 4, 1);
};

constexpr float kEps = 1e-5f, kScale = 0.75f;

ModelConfig Config() {
  LayerConfig layer;
  layer.mixer = AttentionConfig{.n_heads = 1, .n_kv_heads = 1, .head_dim = 32};
  layer.feed_forward = GatedFfnConfig{.width = 32};
  layer.convolution = kConvolution;
  return {.layers = {layer}, .dim = kDim, .vocabulary = 32, .head = HeadConfig{.target_dim = kDim}};
}

// The residual stream behind the block.
std::vector<float> ConvolutionResult(const Numbers& numbers, std::span<const kv::Segment> segments,
                                     int threads) {
  const kernels::Kernels& kernels = *kernels::KernelsFromEnvironment().value();
  ThreadPool pool(threads);
  Scratch scratch(Config(), kRows, 1, threads);
  CacheMemory cache = *CacheMemory::Create({}, {});
  StateMemory states{{}, {}};
  comm::Alone ranks;
  const Division division;
  const Workspace space = {kernels, pool, scratch, cache, states, ranks, division};
  LocalConvolutionWeights weights{.base = numbers.base.data()};
  weights.coefficients.type = tensor::TileType::kF32;
  weights.coefficients.k = kDim, weights.coefficients.n_out = kCoefficients;
  weights.coefficients.n_tiles = kernels::TilesFor(kCoefficients);
  AlignedBytes tiles(kernels::TiledBytes(tensor::TileType::kF32, kCoefficients, kDim));
  kernels::Repack(tensor::DType::kF32, numbers.w.data(), kCoefficients, kDim, 0,
                  weights.coefficients.n_tiles, tiles.data());
  weights.coefficients.tiles = tiles.data();
  const LocalConvolution block(
      space, kConvolution, weights,
      {.dim = kDim, .norm_eps = kEps, .residual_scale = kScale, .convolved = true},
      {numbers.norm.data(), false}, std::make_unique<Twice>(space));
  std::vector<Phase> phases;
  block.AddPhases(phases);
  const Activation residual = scratch.residual.View(kDim);
  for (int row = 0; row < kRows; ++row)
    std::copy_n(numbers.x.data() + row * kDim, kDim, residual.Row(row));
  const std::vector<Token> tokens(kRows);
  const Pass pass = {.tokens = tokens, .segments = segments, .logit_rows = {}};
  pool.Run([&](int thread) { Walk(phases, pass, thread, [&] { pool.Barrier(); }); });
  std::vector<float> out;
  for (int row = 0; row < kRows; ++row)
    out.insert(out.end(), residual.Row(row), residual.Row(row) + kDim);
  return out;
}

// The formula of the header, row by row.
ConvolutionRows Expected(const Numbers& numbers, std::span<const kv::Segment> segments) {
  ConvolutionRows h(kRows, std::vector<double>(kDim)), c(kRows, std::vector<double>(kCoefficients)),
      x = h;
  for (std::size_t row = 0; row < kRows; ++row) {
    double squares = 0;
    for (std::size_t i = 0; i < kDim; ++i) {
      x[row][i] = static_cast<double>(numbers.x[row * kDim + i]);
      squares += x[row][i] * x[row][i];
    }
    for (std::size_t i = 0; i < kDim; ++i)
      h[row][i] = x[row][i] / std::sqrt(squares / kDim + static_cast<double>(kEps)) *
                  static_cast<double>(numbers.norm[i]);
    for (std::size_t out = 0; out < kCoefficients; ++out)
      for (std::size_t i = 0; i < kDim; ++i)
        c[row][out] += static_cast<double>(numbers.w[out * kDim + i]) * h[row][i];
  }
  const auto convolved = [&](const ConvolutionRows& in, std::size_t side) {
    ConvolutionRows y(kRows, std::vector<double>(kDim));
    for (const kv::Segment& s : segments)
      for (int offset = 0; offset < s.n_rows; ++offset)
        for (int tap = 0; tap <= std::min(offset, kTaps - 1); ++tap)
          for (std::size_t i = 0; i < kDim; ++i) {
            const auto row = static_cast<std::size_t>(s.row_begin + offset),
                       at = side * kTaps + static_cast<std::size_t>(tap);
            y[row][i] += (static_cast<double>(numbers.base[at * kDim + i]) +
                          c[row][at * kGroups + i / kGroup]) *
                         in[row - static_cast<std::size_t>(tap)][i];
          }
    return y;
  };
  ConvolutionRows part = convolved(h, 0);
  for (auto& row : part)
    for (double& value : row) value *= 2;
  const ConvolutionRows added = convolved(part, 1);
  for (std::size_t row = 0; row < kRows; ++row)
    for (std::size_t i = 0; i < kDim; ++i) x[row][i] += static_cast<double>(kScale) * added[row][i];
  return x;
}

TEST(LocalConvolution, IsTheFormulaWithinEachSegmentWhateverTheThreads) {
  const Numbers numbers;
  const kv::Segment segments[] = {{.row_begin = 0, .n_rows = 5}, {.row_begin = 5, .n_rows = 3}};
  const std::vector<float> one = ConvolutionResult(numbers, segments, 1);
  const ConvolutionRows expected = Expected(numbers, segments);
  for (std::size_t row = 0; row < kRows; ++row)
    for (std::size_t i = 0; i < kDim; ++i)
      EXPECT_NEAR(static_cast<double>(one[row * kDim + i]), expected[row][i], 2e-4)
          << row << ", " << i;
  for (const int threads : {2, 3}) EXPECT_EQ(ConvolutionResult(numbers, segments, threads), one);
}

}  // namespace
}  // namespace foretoken::model
