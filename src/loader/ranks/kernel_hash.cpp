// SPDX-License-Identifier: Apache-2.0
#include "loader/ranks/kernel_hash.h"

#include <array>
#include <cstring>
#include <vector>

#include "base/hash.h"
#include "kernels/dispatch.h"
#include "kernels/repack.h"
#include "tensor/dtype.h"

namespace foretoken::loader {
namespace {

constexpr int kWidth = 256, kOutputs = 64, kRows = 3;

std::vector<float> Numbers(std::size_t n, std::uint32_t seed) {
  std::vector<float> numbers(n);
  for (float& x : numbers) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<std::int32_t>(seed)) * 0x1p-31f;
  }
  return numbers;
}

// Bytes of Q8_0 rows: a scale of 1/64, and integers from the numbers.
std::vector<std::byte> Q8Rows(const std::vector<float>& numbers) {
  constexpr std::array kScale = {std::byte{0x00}, std::byte{0x24}};
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i % tensor::kBlock == 0) bytes.insert(bytes.end(), kScale.begin(), kScale.end());
    bytes.push_back(static_cast<std::byte>(static_cast<std::int8_t>(numbers[i] * 127)));
  }
  return bytes;
}

}  // namespace

std::uint64_t KernelHash() {
  const kernels::Kernels& kernels = **kernels::KernelsFromEnvironment();
  const auto weights = Numbers(kWidth * kOutputs, 1), scale = Numbers(kWidth, 2);
  auto x = Numbers(kWidth * kRows, 3);
  for (int r = 0; r < kRows; ++r)
    kernels.rms_norm(x.data() + r * kWidth, scale.data(), kWidth, 1e-5f, x.data() + r * kWidth);
  std::vector<std::int8_t> xq(x.size());
  std::vector<float> xd(x.size() / tensor::kBlock);
  std::vector<std::int32_t> xs(2 * xd.size());
  kernels.quantize(x.data(), kWidth, kRows, kWidth, xq.data(), xd.data(), xs.data());
  std::vector<float> results;
  const auto multiply = [&](tensor::DType type, const void* rows) {
    const tensor::TileType tile =
        type == tensor::DType::kF32 ? tensor::TileType::kF32 : tensor::TileType::kQ8_0;
    std::vector<std::byte> tiles(kernels::TiledBytes(tile, kOutputs, kWidth));
    kernels::Repack(type, rows, kOutputs, kWidth, 0, kernels::TilesFor(kOutputs), tiles.data());
    std::vector<float> y(kRows * kOutputs);
    kernels.matmul[static_cast<std::size_t>(tile)]({.tiles = tiles.data(),
                                                    .k = kWidth,
                                                    .tile_begin = 0,
                                                    .tile_end = kernels::TilesFor(kOutputs),
                                                    .n_rows = kRows,
                                                    .x = x.data(),
                                                    .x_stride = kWidth,
                                                    .xq = xq.data(),
                                                    .xd = xd.data(),
                                                    .xs = xs.data(),
                                                    .x_rows = nullptr,
                                                    .y = y.data(),
                                                    .y_stride = kOutputs,
                                                    .accumulate = false});
    kernels.silu_mul(y.data(), x.data(), kOutputs, y.data());
    results.insert(results.end(), y.begin(), y.end());
  };
  multiply(tensor::DType::kF32, weights.data());
  multiply(tensor::DType::kQ8_0, Q8Rows(weights).data());
  return HashOf(results);
}

}  // namespace foretoken::loader
