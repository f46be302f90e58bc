// SPDX-License-Identifier: Apache-2.0
// kernels/neon/matmul.cpp: the integer sums of NEON with the dot product. The 16 outputs of a tile
// are four registers of 4.
//
// The weights of 4 outputs in a run of 32 k become 8 registers of bytes, whatever the type, in the
// range of signed bytes: the top bit of Q8_0 is turned, which takes its offset away; tables hold
// signed weights; the others are below 64 and keep their offset. Then the rows pass by, two at a
// time, so that two chains of sdot hide each other's latency. Per run, row and 4 outputs there are
// 8 sdot, one conversion, one product of scales and one fma, and one fma more for a minimum. Q6_K
// has two starting values, one for each 16 k, and two products by the scales. The registers hold 16
// sums of 4 rows, 8 weights, 2 integer sums and 4 registers of activations.
#include "kernels/generic/matmul.h"
#include "kernels/neon/lanes.h"

namespace foretoken::kernels::neon {
namespace {

using tensor::kTileOutputs;

// Each byte moved up by kBits, or down where kBits is negative.
template <int kBits>
FORETOKEN_INLINE uint8x16_t Shift(uint8x16_t x) {
  if constexpr (kBits > 0) return vshlq_n_u8(x, kBits);
  if constexpr (kBits < 0) return vshrq_n_u8(x, -kBits);
  return x;
}

// Words 2 i and 2 i + 1 of the weights: the two nibbles of 16 bytes.
template <int i>
FORETOKEN_INLINE void Nibbles(const std::uint8_t (*from)[4], uint8x16_t* q) {
  const uint8x16_t both = vld1q_u8(from[0]);
  q[2 * i] = vandq_u8(both, vdupq_n_u8(15));
  q[2 * i + 1] = vshrq_n_u8(both, 4);
}
FORETOKEN_INLINE void AllNibbles(const std::uint8_t (*from)[kTileOutputs][4], int o,
                                 uint8x16_t* q) {
  Nibbles<0>(from[0] + o, q);
  Nibbles<1>(from[1] + o, q);
  Nibbles<2>(from[2] + o, q);
  Nibbles<3>(from[3] + o, q);
}

// Sets the bits of kMask in q to those of `high`, moved by kBits.
template <int kMask, int kBits>
FORETOKEN_INLINE void AddHigh(uint8x16_t& q, uint8x16_t high) {
  q = vbslq_u8(vdupq_n_u8(kMask), Shift<kBits>(high), q);
}

FORETOKEN_INLINE void AddFifthBits(uint8x16_t high, uint8x16_t* q) {
  AddHigh<16, 4>(q[0], high);
  AddHigh<16, 3>(q[1], high);
  AddHigh<16, 2>(q[2], high);
  AddHigh<16, 1>(q[3], high);
  AddHigh<16, 0>(q[4], high);
  AddHigh<16, -1>(q[5], high);
  AddHigh<16, -2>(q[6], high);
  AddHigh<16, -3>(q[7], high);
}

// Scales of a half of a run, 4 outputs, of Q2_K the low four bits. Those of two and three bits have the
// other half's beside them.
template <class Type>
FORETOKEN_INLINE int32x4_t HalfScales(const typename Type::Tile& tile, int run, int half, int o) {
  if constexpr (Type::kBits <= 3) {
    uint8x8_t bytes = vld1_u8(reinterpret_cast<const std::uint8_t*>(tile.scale[run][o]));
    if constexpr (Type::kBits == 2) bytes = vand_u8(bytes, vdup_n_u8(15));
    const int32x4_t pairs = vreinterpretq_s32_s16(vmovl_s8(vreinterpret_s8_u8(bytes)));
    return half == 1 ? vshrq_n_s32(pairs, 16) : vshrq_n_s32(vshlq_n_s32(pairs, 16), 16);
  } else {
    const int8x8_t bytes = vreinterpret_s8_u8(Lanes::LoadFour(tile.scale[run][half] + o));
    return vmovl_s16(vget_low_s16(vmovl_s8(bytes)));
  }
}

struct Habits : generic::CoreOf<Lanes> {
  static constexpr bool kSigned = true;
};

template <class Type>
using Row = generic::RowOf<Habits, Type, 1>;

// The weights of two and three bits of a run, 4 outputs from o on.
FORETOKEN_INLINE void FewBits(const tensor::TileQ2_K::Run& run, int o, uint8x16_t* q) {
  const uint8x16_t low = vdupq_n_u8(3);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const uint8x16_t bits = vld1q_u8(run.q[i][o]);
    q[i] = vandq_u8(bits, low);
    q[i + 2] = vandq_u8(vshrq_n_u8(bits, 2), low);
    q[i + 4] = vandq_u8(vshrq_n_u8(bits, 4), low);
    q[i + 6] = vshrq_n_u8(bits, 6);
  }
}
FORETOKEN_INLINE void FewBits(const tensor::TileQ3_K::Run& run, int o, uint8x16_t* q) {
  const uint8x16_t low = vdupq_n_u8(7);
  const uint8x16_t bits[3] = {vld1q_u8(run.q[0][o]), vld1q_u8(run.q[1][o]), vld1q_u8(run.q[2][o])};
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    q[i] = vandq_u8(bits[i], low);
    q[i + 4] = vandq_u8(vshrq_n_u8(bits[i], 3), low);
  }
  q[3] = vshrq_n_u8(bits[0], 6);
  q[7] = vshrq_n_u8(bits[2], 6);
  AddHigh<4, -5>(q[3], bits[1]);
  AddHigh<4, -4>(q[7], bits[1]);
}

// The weights of a run for the 4 outputs from o on, in 8 vectors.
template <class Type>
FORETOKEN_INLINE void Weights(const typename Type::Tile& tile, int run, int o, uint8x16_t* q) {
  const auto& weights = Type::Run(tile, run);
  if constexpr (Type::kBits == 8) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) q[i] = veorq_u8(vld1q_u8(weights.q[i][o]), vdupq_n_u8(0x80));
    return;
  } else if constexpr (Type::kBits <= 3) {
    FewBits(weights, o, q);
  } else {
    AllNibbles(weights.q, o, q);
  }
  if constexpr (Type::kHasTable) {
    const uint8x16_t table = vld1q_u8(generic::kCodeWeights<Type, 0>.of);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) q[i] = vqtbl1q_u8(table, q[i]);
  }
  if constexpr (Type::kBits == 5) AddFifthBits(vld1q_u8(weights.qh[o]), q);
  if constexpr (Type::kBits == 6) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const uint8x16_t high = vld1q_u8(weights.qh[h][o]);
      AddHigh<0x30, 4>(q[4 * h], high);
      AddHigh<0x30, 2>(q[4 * h + 1], high);
      AddHigh<0x30, 0>(q[4 * h + 2], high);
      AddHigh<0x30, -2>(q[4 * h + 3], high);
    }
  }
}

// part[r] += w . (word kWord of x[r])
template <int kRows, int kWord>
FORETOKEN_INLINE void Dot(uint8x16_t w, const int8x16_t* x, int32x4_t* part) {
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r)
    part[r] = vdotq_laneq_s32(part[r], vreinterpretq_s8_u8(w), x[r], kWord);
}

// The products of one half of the run: 4 words of activations.
template <int kRows, class Row>
FORETOKEN_INLINE void DotHalf(const uint8x16_t* q, const Row* row, int h, int32x4_t* part) {
  int8x16_t x[kRows];
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r)
    x[r] = vld1q_s8(reinterpret_cast<const std::int8_t*>(row[r].q + 4 * h));
  Dot<kRows, 0>(q[4 * h], x, part);
  Dot<kRows, 1>(q[4 * h + 1], x, part);
  Dot<kRows, 2>(q[4 * h + 2], x, part);
  Dot<kRows, 3>(q[4 * h + 3], x, part);
}

template <class Type, int kRows>
FORETOKEN_INLINE void StartSums(const Row<Type>* row, int h, int32x4_t* part) {
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r)
    part[r] = vdupq_n_s32(generic::kOffset<Habits, Type> == 0 ? 0 : row[r].c[h]);
}

// The integer sums of kRows rows side by side.
template <class Type, int kRows>
FORETOKEN_INLINE void IntegerSums(const uint8x16_t* q, const Row<Type>* row, const int32x4_t* scale,
                                  int32x4_t* sum) {
  StartSums<Type, kRows>(row, 0, sum);
  DotHalf<kRows>(q, row, 0, sum);
  if constexpr (Type::kSums == 1) {
    DotHalf<kRows>(q, row, 1, sum);
  } else {
    int32x4_t last[kRows];
    StartSums<Type, kRows>(row, 1, last);
    DotHalf<kRows>(q, row, 1, last);
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r)
      sum[r] = vmlaq_s32(vmulq_s32(sum[r], scale[0]), last[r], scale[1]);
  }
}

// Adds a run to the sums of kRows rows; their 4 outputs are register v of them.
template <class Type, int kRows, class Sums>
FORETOKEN_INLINE void AddRows(const uint8x16_t* q, const int32x4_t* scale,
                              const generic::TileScales<Lanes, Type>& scales, const Row<Type>* row,
                              int v, Sums* acc) {
  int32x4_t sum[kRows];
  IntegerSums<Type, kRows>(q, row, scale, sum);
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) scales.Add(Lanes::Signed(sum[r]), row[r], acc[r][v]);
}

struct Core : Habits {
  static constexpr std::int64_t kCacheBytes = 256 << 10;
  static constexpr int kLeastStrips = 4;
  static constexpr int kFloatRows = 5;  // 20 sums, 4 weights and the activations: 29 registers
  template <int R>
  static constexpr int kStrips = R == 1   ? 4
                                 : R == 2 ? 2
                                          : 1;
  static constexpr int kFloatSteps = 1;
  template <class Type>
  static constexpr int kRows = 4;

  // Otherwise the compiler first loads the weights of all outputs, or of the next k, and spills
  // what it has (71 accesses to the stack in the loop of Q8_0 with 4 rows, 6 with this).
  static constexpr bool kKeepsOrder = true;

  template <class Type, int R>
  static FORETOKEN_INLINE void Run(const typename Type::Tile& w, int run, const Row<Type>* rows,
                                   generic::RowSums<Lanes, R>& acc) {
#pragma GCC unroll 4
    for (int v = 0; v < generic::kRegisters<Lanes>; ++v) {
      generic::KeepOrder();
      const int o = v * Lanes::kWidth;
      uint8x16_t q[8];
      Weights<Type>(w, run, o, q);
      int32x4_t scale[2] = {};
      if constexpr (Type::kSums == 2)
        for (int h = 0; h < 2; ++h) scale[h] = HalfScales<Type>(w, run, h, o);
      const generic::TileScales<Lanes, Type> scales(w, run, o);
#pragma GCC unroll 4
      for (int r = 0; r + 2 <= R; r += 2)
        AddRows<Type, 2>(q, scale, scales, rows + r, v, acc.of + r);
      if constexpr (R % 2 == 1) AddRows<Type, 1>(q, scale, scales, rows + R - 1, v, acc.of + R - 1);
    }
  }
};

}  // namespace

constinit const Kernels kMatmul = generic::ProductsOf<Core>::OfAllTypes();

}  // namespace foretoken::kernels::neon
