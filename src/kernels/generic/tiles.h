// SPDX-License-Identifier: Apache-2.0
// kernels/generic/tiles.h: the quantised tiles of tensor/block_layout.h as types, their scales, and
// the rows of activations that meet them.
//
// What L offers for it: LoadHalves(p); LoadUnsigned(p), LoadIntegers(p): kWidth unsigned bytes to F and
// to I; LoadBytePairs(p): 2 kWidth unsigned bytes to I, the second of a pair 16 bits above the first.
#pragma once

#include "kernels/generic/lanes.h"

namespace foretoken::kernels::generic {
namespace {

using tensor::kBlock;
using tensor::kTileOutputs;
using tensor::TileType;

// kBits: bits of a weight in the tile. kRuns: runs of 32 k in a tile. kOffset: what was added to
// its weights. kMinima: minima of a run. kSums: sums of a run, each with a scale of its own.
// kHasTable: whether the four bits are the index of a weight in a table, CodeWeights. kWeightBits:
// bits of a weight with its offset.
template <TileType kTypeOf, class TileOf, int kBitsOf, int kRunsOf, int kOffsetOf, bool kMinimumOf>
struct QuantisedTile {
  using Tile = TileOf;
  static constexpr TileType kType = kTypeOf;
  static constexpr int kBits = kBitsOf, kRuns = kRunsOf, kOffset = kOffsetOf;
  static constexpr int kSums =
      kBits == 6 || kBits == 3 || kBits == 2 || kType == TileType::kWide ? 2 : 1;
  static constexpr int kMinima = kMinimumOf ? kSums : 0;
  static constexpr bool kHasTable =
      kType == TileType::kMXFP4 || kType == TileType::kIQ4_NL || kType == TileType::kIQ4_XS;
  static constexpr int kWeightBits = kType == TileType::kMXFP4 ? 5 : kHasTable ? 8 : kBits;

  // The part of the tile that holds the weights of a run: q and, where there are more than four
  // bits and fewer than eight, qh.
  static FORETOKEN_INLINE const auto& Run(const Tile& tile, int run) {
    if constexpr (kRuns == 1)
      return tile;
    else
      return tile.runs[run];
  }
};

using Q8_0 = QuantisedTile<TileType::kQ8_0, tensor::TileQ8_0, 8, 1, 128, false>;
using Q4_0 = QuantisedTile<TileType::kQ4_0, tensor::TileQ4_0, 4, 1, 8, false>;
using Q4_1 = QuantisedTile<TileType::kQ4_1, tensor::TileQ4_1, 4, 1, 0, true>;
using Q5_0 = QuantisedTile<TileType::kQ5_0, tensor::TileQ5_0, 5, 1, 16, false>;
using Q5_1 = QuantisedTile<TileType::kQ5_1, tensor::TileQ5_1, 5, 1, 0, true>;
using Q4_K = QuantisedTile<TileType::kQ4_K, tensor::TileQ4_K, 4, 8, 0, true>;
using Q5_K = QuantisedTile<TileType::kQ5_K, tensor::TileQ5_K, 5, 8, 0, true>;
using Q6_K = QuantisedTile<TileType::kQ6_K, tensor::TileQ6_K, 6, 8, 32, false>;
using MXFP4 = QuantisedTile<TileType::kMXFP4, tensor::TileMXFP4, 4, 1, 12, false>;
using IQ4_NL = QuantisedTile<TileType::kIQ4_NL, tensor::TileIQ4_NL, 4, 1, 128, false>;
using IQ4_XS = QuantisedTile<TileType::kIQ4_XS, tensor::TileIQ4_XS, 4, 8, 128, false>;
using Q3_K = QuantisedTile<TileType::kQ3_K, tensor::TileQ3_K, 3, 8, 4, false>;
using Wide = QuantisedTile<TileType::kWide, tensor::TileWide, 8, 8, 128, false>;
using Q2_K = QuantisedTile<TileType::kQ2_K, tensor::TileQ2_K, 2, 8, 0, true>;

// The weights of the 16 codes of a type with a table, plus kOffset, as bytes.
template <class Type, int kOffset>
struct CodeWeights {
  static_assert(Type::kHasTable);
  alignas(tensor::kTableCodes) std::uint8_t of[tensor::kTableCodes] = {};

  constexpr CodeWeights() {
    const std::int8_t* table =
        Type::kType == TileType::kMXFP4 ? tensor::kMxfp4Values : tensor::kIq4Values;
    for (int q = 0; q < tensor::kTableCodes; ++q)
      of[q] = static_cast<std::uint8_t>(table[q] + kOffset);
  }
};
template <class Type, int kOffset>
constexpr CodeWeights<Type, kOffset> kCodeWeights;

// A run of one row. It takes 40 bytes (44 with two starts; 72 and 76 where it is wide), so that
// neighbouring rows lie in different banks of the first-level cache.
template <int kStarts, bool kWide = false>
struct PackedRow {
  // 32 int8; where it is wide, 32 int16: of each four neighbours the first and the third, then the
  // second and the fourth.
  std::int32_t q[kWide ? 16 : 8];
  float d;
  union {
    std::int32_t c[kStarts];  // what the integer sums start from: the offset of the weights undone
    float xs[kStarts];        // d * xs, which the minima meet
  };
};

// The usual starting values: minus the offset of the weights times the activations it met.
template <int kSums, int kOffset, bool kWide>
FORETOKEN_INLINE void PackOffsets(const std::int32_t* xs, PackedRow<kSums, kWide>& to) {
  if constexpr (kSums == 1) {
    to.c[0] = -kOffset * xs[1];
  } else {
    to.c[0] = -kOffset * xs[0];
    to.c[1] = -kOffset * (xs[1] - xs[0]);
  }
}

// d of the kWidth outputs from o on.
template <class L, class Tile>
FORETOKEN_INLINE typename L::F LoadScales(const Tile& tile, int o) {
  return L::LoadHalves(tile.d + o);
}
template <class L>
FORETOKEN_INLINE typename L::F LoadScales(const tensor::TileMXFP4& tile, int o) {
  using I = typename L::I;
  // 2^(e - 128): the exponent of a normal number in bits 23 and up, or one bit of a subnormal one.
  const I e = L::LoadIntegers(tile.e + o), normal = 4 * e - 4, subnormal = e + 1;
  return __builtin_bit_cast(typename L::F, (normal > subnormal ? normal : subnormal) << 21);
}

template <class L>
FORETOKEN_INLINE typename L::F LoadScales(const tensor::TileWide& tile, int o) {
  return L::Load(tile.d + o);
}

// s and m of the contract for a run and the kWidth outputs from o on. Where the file subtracts its
// minima, m is the negative of the contract's.
template <class L, class Type>
struct TileScales {
  using F = typename L::F;
  using Tile = typename Type::Tile;

  FORETOKEN_INLINE TileScales(const Tile& tile, int run, int o) : s(LoadScales<L>(tile, o)) {
    if constexpr (Type::kMinima == 1 && Type::kRuns == 1) m[0] = L::LoadHalves(tile.m + o);
    if constexpr (Type::kMinima == 1 && Type::kRuns > 1) {
      s = s * L::LoadUnsigned(tile.scale[run] + o);
      m[0] = L::LoadHalves(tile.dmin + o) * L::LoadUnsigned(tile.minimum[run] + o);
    }
    if constexpr (Type::kMinima == 2) {
      const F dmin = L::LoadHalves(tile.dmin + o);
      const typename L::I pairs = L::LoadBytePairs(tile.scale[run][o]);
      m[0] = (dmin * L::All(0.0625f)) * Floats<L>(pairs & 0xf0);  // exact
      m[1] = dmin * Floats<L>(pairs >> 20);
    }
    if constexpr (Type::kType == TileType::kIQ4_XS)
      s = s * Floats<L>(L::LoadIntegers(tile.scale[run] + o) - 32);
  }
  // The last step for one run of one row: to += what its integer sums stand for.
  template <class Row>
  FORETOKEN_INLINE void Add(typename L::I sum, const Row& row, F& to) const {
    to = L::Fma(Floats<L>(sum), s * L::All(row.d), to);
    if constexpr (Type::kMinima > 0 && Type::kRuns == 1) to = L::MulAdd(m[0], row.xs[0], to);
    if constexpr (Type::kMinima > 0 && Type::kRuns > 1) to = L::MulSub(m[0], row.xs[0], to);
    if constexpr (Type::kMinima == 2) to = L::MulSub(m[1], row.xs[1], to);
  }
  F s, m[Type::kMinima == 2 ? 2 : 1];
};

}  // namespace
}  // namespace foretoken::kernels::generic
