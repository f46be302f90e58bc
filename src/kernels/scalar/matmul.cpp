// SPDX-License-Identifier: Apache-2.0
// kernels/scalar/matmul.cpp: the canonical sums of kernels.h, word for word. They are the oracle of
// every other folder, and the products of types for which a folder has none.
#include <cmath>

#include "kernels/parts.h"

namespace foretoken::kernels::scalar {
namespace {

using tensor::kTileOutputs;
using tensor::TileType;

float HalfOf(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31u, mantissa = bits & 0x3ffu;
  if (exponent == 0) {  // subnormal: mantissa * 2^-24, exact
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return __builtin_bit_cast(float, sign | (wide << 23) | (mantissa << 13));
}

// 2^(exponent - 128), of which the two smallest are subnormal.
float Mxfp4Scale(std::uint32_t exponent) {
  return __builtin_bit_cast(float, exponent < 2 ? 0x200000u << exponent : (exponent - 1) << 23);
}

struct F32 {
  static constexpr TileType kType = TileType::kF32;
  using Storage = float;
  static float ToFloat(float v) { return v; }
};
struct F16 {
  static constexpr TileType kType = TileType::kF16;
  using Storage = std::uint16_t;
  static float ToFloat(std::uint16_t bits) { return HalfOf(bits); }
};
struct BF16 {
  static constexpr TileType kType = TileType::kBF16;
  using Storage = std::uint16_t;
  static float ToFloat(std::uint16_t bits) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
  }
};

std::int64_t InputRow(const MatmulArgs& a, int row) {
  return a.x_rows == nullptr ? row : a.x_rows[row];
}

float* OutputOf(const MatmulArgs& a, int row, int tile) {
  return a.y + row * a.y_stride + std::int64_t{tile} * kTileOutputs;
}

void Store(const float* acc, bool accumulate, float* y) {
  for (int o = 0; o < kTileOutputs; ++o) y[o] = accumulate ? y[o] + acc[o] : acc[o];
}

template <class Type>
void MatmulFloat(const MatmulArgs& a) {
  const auto* tiles = static_cast<const typename Type::Storage*>(a.tiles);
  for (int tile = a.tile_begin; tile < a.tile_end; ++tile) {
    for (int row = 0; row < a.n_rows; ++row) {
      const auto* w = tiles + std::int64_t{tile} * a.k * kTileOutputs;
      const float* x = a.x + InputRow(a, row) * a.x_stride;
      float acc[kTileOutputs] = {};
      for (int k = 0; k < a.k; ++k, w += kTileOutputs)
        for (int o = 0; o < kTileOutputs; ++o) acc[o] = std::fma(Type::ToFloat(w[o]), x[k], acc[o]);
      Store(acc, a.accumulate, OutputOf(a, row, tile));
    }
  }
}

int Nibble(const std::uint8_t (&q)[4][kTileOutputs][4], int k, int o) {
  const std::uint8_t byte = q[k / 8][o][k % 4];
  return k % 8 < 4 ? byte & 15 : byte >> 4;
}

int FifthBit(const std::uint8_t (&qh)[kTileOutputs][4], int k, int o) {
  return (qh[o][k % 4] >> (k / 4) & 1) << 4;
}

// Two bits of k, of which four share a byte.
int TwoBits(const std::uint8_t (&q)[2][kTileOutputs][4], int k, int o) {
  return q[k / 16][o][k % 4] >> (k / 4 % 4 * 2) & 3;
}

int ThreeBits(const std::uint8_t (&q)[3][kTileOutputs][4], int k, int o) {
  const int word = k / 4 % 4, half = k / 16;
  const auto byte = [&](int i) { return static_cast<int>(q[i][o][k % 4]); };
  if (word < 3) return byte(word) >> (3 * half) & 7;
  return byte(2 * half) >> 6 | (byte(1) >> (7 - half) & 1) << 2;
}

// A tile type: runs of 32 k in a tile, and whether it has minima. Each adds Weight: q of output o
// at k of a run, without its offset; and where the halves of a run have scales, HalfScale.
template <TileType kTypeOf, class TileOf, int kRunsOf, bool kMinimumOf>
struct Quantised {
  static constexpr TileType kType = kTypeOf;
  using Tile = TileOf;
  static constexpr int kRuns = kRunsOf;
  static constexpr bool kMinimum = kMinimumOf;
  // Whether the sum of a run has a scale of its own.
  static constexpr bool kRunScale = kRuns > 1 && kMinimum;
};
struct Q8_0 : Quantised<TileType::kQ8_0, tensor::TileQ8_0, 1, false> {
  static int Weight(const Tile& t, int, int k, int o) { return t.q[k / 4][o][k % 4] - 128; }
};
struct Q4_0 : Quantised<TileType::kQ4_0, tensor::TileQ4_0, 1, false> {
  static int Weight(const Tile& t, int, int k, int o) { return Nibble(t.q, k, o) - 8; }
};
struct Q4_1 : Quantised<TileType::kQ4_1, tensor::TileQ4_1, 1, true> {
  static int Weight(const Tile& t, int, int k, int o) { return Nibble(t.q, k, o); }
};
struct Q5_0 : Quantised<TileType::kQ5_0, tensor::TileQ5_0, 1, false> {
  static int Weight(const Tile& t, int, int k, int o) {
    return (Nibble(t.q, k, o) | FifthBit(t.qh, k, o)) - 16;
  }
};
struct Q5_1 : Quantised<TileType::kQ5_1, tensor::TileQ5_1, 1, true> {
  static int Weight(const Tile& t, int, int k, int o) {
    return Nibble(t.q, k, o) | FifthBit(t.qh, k, o);
  }
};
struct Q4_K : Quantised<TileType::kQ4_K, tensor::TileQ4_K, 8, true> {
  static int Weight(const Tile& t, int run, int k, int o) { return Nibble(t.runs[run].q, k, o); }
};
struct Q5_K : Quantised<TileType::kQ5_K, tensor::TileQ5_K, 8, true> {
  static int Weight(const Tile& t, int run, int k, int o) {
    return Nibble(t.runs[run].q, k, o) | FifthBit(t.runs[run].qh, k, o);
  }
};
struct Q6_K : Quantised<TileType::kQ6_K, tensor::TileQ6_K, 8, false> {
  static int Weight(const Tile& t, int run, int k, int o) {
    return (Nibble(t.runs[run].q, k, o) | TwoBits(t.runs[run].qh, k, o) << 4) - 32;
  }
  static int HalfScale(const Tile& t, int run, int h, int o) { return t.scale[run][h][o]; }
};

struct MXFP4 : Quantised<TileType::kMXFP4, tensor::TileMXFP4, 1, false> {
  static int Weight(const Tile& t, int, int k, int o) {
    return tensor::kMxfp4Values[Nibble(t.q, k, o)];
  }
};

struct IQ4_NL : Quantised<TileType::kIQ4_NL, tensor::TileIQ4_NL, 1, false> {
  static int Weight(const Tile& t, int, int k, int o) {
    return tensor::kIq4Values[Nibble(t.q, k, o)];
  }
};
struct IQ4_XS : Quantised<TileType::kIQ4_XS, tensor::TileIQ4_XS, 8, false> {
  static constexpr bool kRunScale = true;
  static int Weight(const Tile& t, int run, int k, int o) {
    return tensor::kIq4Values[Nibble(t.runs[run].q, k, o)];
  }
};
struct Q3_K : Quantised<TileType::kQ3_K, tensor::TileQ3_K, 8, false> {
  static int Weight(const Tile& t, int run, int k, int o) {
    return ThreeBits(t.runs[run].q, k, o) - 4;
  }
  static int HalfScale(const Tile& t, int run, int h, int o) { return t.scale[run][o][h]; }
};
struct Q2_K : Quantised<TileType::kQ2_K, tensor::TileQ2_K, 8, true> {
  static constexpr bool kRunScale = false;
  static int Weight(const Tile& t, int run, int k, int o) {
    const int word = k / 4;
    return t.runs[run].q[word % 2][o][k % 4] >> (word / 2 * 2) & 3;
  }
  static int HalfScale(const Tile& t, int run, int h, int o) { return t.scale[run][o][h] % 16; }
};

struct Wide : Quantised<TileType::kWide, tensor::TileWide, 8, false> {
  static int Weight(const Tile& t, int run, int k, int o) {
    return t.runs[run].q[k / 4][o][k % 4] - 128;
  }
  static int HalfScale(const Tile& t, int run, int h, int o) { return t.scale[run][h][o]; }
};

template <class Type>
int IntegerSum(const typename Type::Tile& tile, int run, int o, const std::int8_t* xq) {
  if constexpr (requires { Type::HalfScale(tile, run, 0, o); }) {
    constexpr int kHalf = tensor::kBlock / 2;
    int sum[2] = {};
    for (int k = 0; k < tensor::kBlock; ++k)
      sum[k / kHalf] += Type::Weight(tile, run, k, o) * xq[k];
    return Type::HalfScale(tile, run, 0, o) * sum[0] + Type::HalfScale(tile, run, 1, o) * sum[1];
  } else {
    int sum = 0;
    for (int k = 0; k < tensor::kBlock; ++k) sum += Type::Weight(tile, run, k, o) * xq[k];
    return sum;
  }
}

float CommonScale(const tensor::TileWide& tile, int o) {
  return tile.d[o];
}
template <class Tile>
float CommonScale(const Tile& tile, int o) {
  return HalfOf(tile.d[o]);
}
float CommonScale(const tensor::TileMXFP4& tile, int o) {
  return Mxfp4Scale(tile.e[o]);
}

template <class Type>
float Scale(const typename Type::Tile& tile, int run, int o) {
  const float d = CommonScale(tile, o);
  if constexpr (Type::kType == TileType::kIQ4_XS)
    return d * static_cast<float>(tile.scale[run][o] - 32);
  else if constexpr (Type::kRunScale)
    return d * static_cast<float>(tile.scale[run][o]);
  else
    return d;
}

template <class Type>
float Minimum(const typename Type::Tile& tile, int run, int o) {
  if constexpr (Type::kRuns == 1)
    return HalfOf(tile.m[o]);
  else
    return -(HalfOf(tile.dmin[o]) * static_cast<float>(tile.minimum[run][o]));
}

// acc of output o, with what the minima of a run add.
template <class Type>
float AddMinima(const typename Type::Tile& tile, int run, int o, float xd, const std::int32_t* xs,
                float acc) {
  if constexpr (Type::kType == TileType::kQ2_K) {
    const float dmin = HalfOf(tile.dmin[o]);
    const auto minimum = [&](int h) {
      return -(dmin * static_cast<float>(tile.scale[run][o][h] / 16));
    };
    acc = std::fma(minimum(0), xd * static_cast<float>(xs[0]), acc);
    return std::fma(minimum(1), xd * static_cast<float>(xs[1] - xs[0]), acc);
  } else {
    return std::fma(Minimum<Type>(tile, run, o), xd * static_cast<float>(xs[1]), acc);
  }
}

template <class Type>
void MatmulQuantised(const MatmulArgs& a) {
  using Tile = typename Type::Tile;
  constexpr int kRuns = Type::kRuns;
  const int n_blocks = a.k / tensor::kBlock;
  for (int tile = a.tile_begin; tile < a.tile_end; ++tile) {
    for (int row = 0; row < a.n_rows; ++row) {
      const Tile* w = static_cast<const Tile*>(a.tiles) + std::int64_t{tile} * (n_blocks / kRuns);
      const std::int64_t input = InputRow(a, row);
      const std::int8_t* xq = a.xq + input * a.k;
      const float* xd = a.xd + input * n_blocks;
      const std::int32_t* xs = a.xs + input * n_blocks * 2;
      float acc[kTileOutputs] = {};
      for (int b = 0; b < n_blocks; ++b, xq += tensor::kBlock) {
        const Tile& t = w[b / kRuns];
        for (int o = 0; o < kTileOutputs; ++o) {
          const auto isum = static_cast<float>(IntegerSum<Type>(t, b % kRuns, o, xq));
          acc[o] = std::fma(isum, Scale<Type>(t, b % kRuns, o) * xd[b], acc[o]);
          if constexpr (Type::kMinimum)
            acc[o] = AddMinima<Type>(t, b % kRuns, o, xd[b], xs + 2 * b, acc[o]);
        }
      }
      Store(acc, a.accumulate, OutputOf(a, row, tile));
    }
  }
}

template <class... Types>
constexpr void SetFloats(Kernels& table) {
  ((table.matmul[static_cast<int>(Types::kType)] = MatmulFloat<Types>), ...);
}
template <class... Types>
constexpr void SetQuantised(Kernels& table) {
  ((table.matmul[static_cast<int>(Types::kType)] = MatmulQuantised<Types>), ...);
}

constexpr Kernels Products() {
  Kernels table = {};
  SetFloats<F32, F16, BF16>(table);
  SetQuantised<Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K, MXFP4, IQ4_NL, IQ4_XS, Q3_K, Q2_K,
               Wide>(table);
  return table;
}

}  // namespace

constinit const Kernels kMatmul = Products();

}  // namespace foretoken::kernels::scalar
