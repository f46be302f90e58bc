// SPDX-License-Identifier: Apache-2.0
// kernels/scalar/matmul.cpp: the canonical sums of kernels.h, word for word: the oracle of every
// other folder.
#include <cmath>

#include "kernels/scalar/functions.h"

namespace foretoken::kernels::scalar {
namespace {

using tensor::kTileOutputs;
using tensor::TileQ4_0;
using tensor::TileQ6_K;
using tensor::TileQ8_0;

struct F32 {
  using Storage = float;
  static float ToFloat(float v) { return v; }
};

struct BF16 {
  using Storage = std::uint16_t;
  static float ToFloat(std::uint16_t bits) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
  }
};

struct F16 {
  using Storage = std::uint16_t;
  static float ToFloat(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t exponent = (bits >> 10) & 31u, mantissa = bits & 0x3ffu;
    if (exponent == 0) {  // subnormal: mantissa * 2^-24, exact
      const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
      return sign != 0 ? -magnitude : magnitude;
    }
    const std::uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
    return __builtin_bit_cast(float, sign | (wide << 23) | (mantissa << 13));
  }
};

float* OutputOf(const MatmulArgs& a, int row, int tile) {
  return a.y + row * a.y_stride + std::int64_t{tile} * kTileOutputs;
}

void Store(const float* acc, bool accumulate, float* y) {
  for (int o = 0; o < kTileOutputs; ++o) y[o] = accumulate ? y[o] + acc[o] : acc[o];
}

template <typename Type>
void MatmulFloat(const MatmulArgs& a) {
  const auto* tiles = static_cast<const typename Type::Storage*>(a.tiles);
  for (int tile = a.tile_begin; tile < a.tile_end; ++tile) {
    for (int row = 0; row < a.n_rows; ++row) {
      const auto* w = tiles + std::int64_t{tile} * a.k * kTileOutputs;
      const float* x = a.x + row * a.x_stride;
      float acc[kTileOutputs] = {};
      for (int k = 0; k < a.k; ++k, w += kTileOutputs)
        for (int o = 0; o < kTileOutputs; ++o) acc[o] = std::fma(Type::ToFloat(w[o]), x[k], acc[o]);
      Store(acc, a.accumulate, OutputOf(a, row, tile));
    }
  }
}

std::int32_t Weight(const TileQ8_0& tile, int k, int o) {
  return tile.q[k / 4][o][k % 4] - 128;
}

std::int32_t Weight(const TileQ4_0& tile, int k, int o) {
  const std::uint8_t byte = tile.q[k / 8][o][k % 4];
  return (k % 8 < 4 ? byte & 15 : byte >> 4) - 8;
}

std::int32_t Weight(const TileQ6_K& tile, int k, int o) {
  const std::uint8_t low = tile.ql[k / 8][o][k % 4], high = tile.qh[k / 16][o][k % 4];
  return ((k % 8 < 4 ? low & 15 : low >> 4) | (high >> (k / 4 % 4 * 2) & 3) << 4) - 32;
}

template <typename Tile>
std::int32_t IntegerSum(const Tile& tile, int o, const std::int8_t* xq) {
  std::int32_t isum = 0;
  for (int k = 0; k < tensor::kBlock; ++k) isum += Weight(tile, k, o) * xq[k];
  return isum;
}

std::int32_t IntegerSum(const TileQ6_K& tile, int o, const std::int8_t* xq) {
  constexpr int kHalf = tensor::kBlock / 2;
  std::int32_t dot[2] = {};
  for (int k = 0; k < tensor::kBlock; ++k) dot[k / kHalf] += Weight(tile, k, o) * xq[k];
  return tile.scale[0][o] * dot[0] + tile.scale[1][o] * dot[1];
}

template <typename Tile>
void MatmulQuantised(const MatmulArgs& a) {
  const int n_blocks = a.k / tensor::kBlock;
  const auto* tiles = static_cast<const Tile*>(a.tiles);
  for (int tile = a.tile_begin; tile < a.tile_end; ++tile) {
    for (int row = 0; row < a.n_rows; ++row) {
      const Tile* w = tiles + std::int64_t{tile} * n_blocks;
      const std::int8_t* xq = a.xq + std::int64_t{row} * a.k;
      const float* xd = a.xd + std::int64_t{row} * n_blocks;
      float acc[kTileOutputs] = {};
      for (int b = 0; b < n_blocks; ++b, xq += tensor::kBlock) {
        for (int o = 0; o < kTileOutputs; ++o) {
          const auto isum = static_cast<float>(IntegerSum(w[b], o, xq));
          acc[o] = std::fma(isum, F16::ToFloat(w[b].d[o]) * xd[b], acc[o]);
        }
      }
      Store(acc, a.accumulate, OutputOf(a, row, tile));
    }
  }
}

}  // namespace

void MatmulF32(const MatmulArgs& a) {
  MatmulFloat<F32>(a);
}
void MatmulF16(const MatmulArgs& a) {
  MatmulFloat<F16>(a);
}
void MatmulBF16(const MatmulArgs& a) {
  MatmulFloat<BF16>(a);
}
void MatmulQ8_0(const MatmulArgs& a) {
  MatmulQuantised<TileQ8_0>(a);
}
void MatmulQ4_0(const MatmulArgs& a) {
  MatmulQuantised<TileQ4_0>(a);
}
void MatmulQ6_K(const MatmulArgs& a) {
  MatmulQuantised<TileQ6_K>(a);
}

}  // namespace foretoken::kernels::scalar
