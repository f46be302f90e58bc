// SPDX-License-Identifier: Apache-2.0
// kernels/avx2/quantised.h: what the products of AVX2 and AVX-VNNI share: unpacking of weights, and
// strips with 256-bit registers. The integer sums are a parameter, because each of the two has an
// instruction of its own for them:
//
//   struct IntegerSums {
//     // How many rows its registers hold, at most 8; and how many one block takes if it is the only one.
//     template <class Type>
//     static constexpr int kRows, kLoneRows;
//     // Whether it reads activations as int16 (generic/tiles.h).
//     template <class Type, int R>
//     static constexpr bool kIsWide;
//     // What its weights have on top of the type's offset.
//     template <class Type>
//     static constexpr int kAddedOffset;
//     // How many halves of a tile, 8 outputs each, share the broadcasts of activations: 1 or 2.
//     template <class Type>
//     static constexpr int kHalves;
//     static constexpr bool kAsksForNext;  // see generic::CoreOf
//     // sum[i][r] = isum of outputs [8 (h + i), 8 (h + i + 1)) over one run, i = 0 .. kHalves - 1,
//     // r = 0 .. R - 1.
//     template <int R, class Type>
//     static void Sums(const typename Type::Tile& tile, int run, int h,
//                      const Row<Type, kIsWide<Type, R>>* rows, __m256i (*sum)[R]);
//   };
#pragma once

#include "kernels/avx2/lanes.h"
#include "kernels/avx2/prefetch.h"
#include "kernels/generic/matmul.h"

namespace foretoken::kernels::avx2 {
namespace {

struct Habits : generic::CoreOf<Lanes> {
  static constexpr int kMostSums = 1;
};

template <class Type, bool kWide = false>
using Row = generic::PackedRow<generic::kStarts<Habits, Type>, kWide>;

constexpr int kMaxRows = 8;

FORETOKEN_INLINE __m256i Load(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

// ---- Weights ------------------------------------------------------------------------------------

// Unsigned weights of 8 outputs: 4 k in the even word, and the next 4 in the odd one.
struct Words {
  __m256i even, odd;
};

FORETOKEN_INLINE Words Nibbles(const std::uint8_t (*q)[4]) {
  const __m256i both = Load(q), low = _mm256_set1_epi8(15);
  return {_mm256_and_si256(both, low), _mm256_and_si256(_mm256_srli_epi16(both, 4), low)};
}

// The bits kBits of each byte of `high`, moved left (right where by < 0), above the four of `low`.
template <int kBits>
FORETOKEN_INLINE __m256i WithHigh(__m256i low, __m256i high, int by) {
  const __m256i moved = by < 0 ? _mm256_srli_epi16(high, -by) : _mm256_slli_epi16(high, by);
  return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(kBits)));
}

// The bits of kMask in each byte of q, moved right first.
template <int kMask>
FORETOKEN_INLINE __m256i Bits(const std::uint8_t (*q)[4], int by) {
  return _mm256_and_si256(_mm256_srli_epi16(Load(q), by), _mm256_set1_epi8(kMask));
}

// Words 2 i and 2 i + 1 of 8 outputs from o on.
FORETOKEN_INLINE Words FewBits(const tensor::TileQ2_K::Run& run, int o, int i) {
  return {Bits<3>(run.q[0] + o, 2 * i), Bits<3>(run.q[1] + o, 2 * i)};
}
FORETOKEN_INLINE Words FewBits(const tensor::TileQ3_K::Run& run, int o, int i) {
  const int half = i / 2;
  if (i % 2 == 0) return {Bits<7>(run.q[0] + o, 3 * half), Bits<7>(run.q[1] + o, 3 * half)};
  return {Bits<7>(run.q[2] + o, 3 * half),
          _mm256_or_si256(Bits<3>(run.q[2 * half] + o, 6), Bits<4>(run.q[1] + o, 5 - half))};
}

// The bits above the low ones of words 2 i and 2 i + 1 put in.
template <class Type, class Weights>
FORETOKEN_INLINE Words WithHighBits(const Words& low, const Weights& weights, int h, int i) {
  if constexpr (Type::kBits == 5) {
    const __m256i high = Load(weights.qh + 8 * h);
    return {WithHigh<0x10>(low.even, high, 4 - 2 * i), WithHigh<0x10>(low.odd, high, 3 - 2 * i)};
  } else if constexpr (Type::kBits == 6) {
    const __m256i high = Load(weights.qh[i / 2] + 8 * h);
    const int first = i % 2 * 4;
    return {WithHigh<0x30>(low.even, high, 4 - first), WithHigh<0x30>(low.odd, high, 2 - first)};
  } else {
    return low;
  }
}

// The weights of all codes with this offset, in each half of the register.
template <class Type, int kOffset = Type::kOffset>
FORETOKEN_INLINE __m256i CodeTable() {
  const auto& weights = generic::kCodeWeights<Type, kOffset>.of;
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(weights)));
}
template <class Type>
FORETOKEN_INLINE Words LookUp(const Words& codes) {
  const __m256i table = CodeTable<Type>();
  return {_mm256_shuffle_epi8(table, codes.even), _mm256_shuffle_epi8(table, codes.odd)};
}

// Words 2 i and 2 i + 1 of a run, of outputs [8 h, 8 h + 8).
template <class Type>
FORETOKEN_INLINE Words Pair(const typename Type::Tile& tile, int run, int h, int i) {
  const auto& weights = Type::Run(tile, run);
  if constexpr (Type::kBits == 8)
    return {Load(weights.q[2 * i][8 * h]), Load(weights.q[2 * i + 1][8 * h])};
  else if constexpr (Type::kHasTable)
    return LookUp<Type>(Nibbles(weights.q[i] + 8 * h));
  else if constexpr (Type::kBits <= 3)
    return FewBits(weights, 8 * h, i);
  else
    return WithHighBits<Type>(Nibbles(weights.q[i] + 8 * h), weights, h, i);
}

// Scales of a run, 8 outputs, as pairs of 16 bits: of both halves, of Q2_K the low four bits.
template <class Type>
FORETOKEN_INLINE __m256i BothScales(const typename Type::Tile& tile, int run, int h) {
  const auto& scale = tile.scale[run];
  if constexpr (Type::kBits == 2)
    return _mm256_and_si256(Lanes::Raw(Lanes::LoadBytePairs(scale[8 * h])), _mm256_set1_epi16(15));
  else if constexpr (Type::kBits == 3)
    return _mm256_cvtepi8_epi16(Lanes::Load16(scale[8 * h]));
  else
    return _mm256_cvtepi8_epi16(
        _mm_unpacklo_epi8(Lanes::Load8(scale[0] + 8 * h), Lanes::Load8(scale[1] + 8 * h)));
}
// The scale of one half, twice.
template <class Type>
FORETOKEN_INLINE __m256i TwiceScale(const typename Type::Tile& tile, int run, int half, int h) {
  if constexpr (Type::kBits <= 3) {
    const __m256i place =
        _mm256_broadcastsi128_si256(_mm_setr_epi32(0x01000100, 0x05040504, 0x09080908, 0x0d0c0d0c));
    return _mm256_shuffle_epi8(BothScales<Type>(tile, run, h),
                               _mm256_or_si256(place, _mm256_set1_epi8(half == 0 ? 0 : 2)));
  } else {
    const __m128i scales = Lanes::Load8(tile.scale[run][half] + 8 * h);
    return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(scales, scales));
  }
}
// The scale of one half as 32 bits, of more than three bits a weight.
template <class Type>
FORETOKEN_INLINE __m256i HalfScale(const typename Type::Tile& tile, int run, int half, int h) {
  return _mm256_cvtepi8_epi32(Lanes::Load8(tile.scale[run][half] + 8 * h));
}

// What a row's integer sums of 8 outputs start from: the offset of the weights undone.
template <class Type>
struct Starts {
  static constexpr bool kAreScaled = Type::kSums == 2 && Type::kOffset > 0;

  FORETOKEN_INLINE Starts(const typename Type::Tile& tile, int run, int h) {
    if constexpr (kAreScaled) {
      constexpr int kLogOffset = Type::kBits - 1;
      static_assert(Type::kOffset == 1 << kLogOffset);
      scale = _mm256_slli_epi16(BothScales<Type>(tile, run, h), kLogOffset);  // below 2^13
    }
  }
  template <class Row>
  FORETOKEN_INLINE __m256i Of(const Row& row) const {
    if constexpr (kAreScaled)
      return _mm256_madd_epi16(scale, _mm256_set1_epi32(row.c[0]));
    else if constexpr (Type::kOffset == 0)
      return _mm256_setzero_si256();
    else
      return _mm256_set1_epi32(row.c[0]);
  }
  __m256i scale;
};

// ---- Strips -------------------------------------------------------------------------------------

template <class IntegerSums>
struct Core : Habits {
  static constexpr std::int64_t kCacheBytes = 512 << 10;
  static constexpr int kLeastStrips = 8;
  static constexpr bool kAsksForNext = IntegerSums::kAsksForNext;
  static constexpr int kFloatRows = 6;  // 12 sums, two weights and a broadcast: 15 of 16 registers
  template <int R>
  static constexpr int kStrips = R <= 2 ? 2 : 1;
  template <class Type>
  static constexpr int kRows = IntegerSums::template kRows<Type>;
  template <class Type>
  static constexpr int kLoneRows = IntegerSums::template kLoneRows<Type>;
  template <class Type, int R>
  static constexpr bool kIsWide = IntegerSums::template kIsWide<Type, R>;
  template <class Type>
  static constexpr int kAddedOffset = IntegerSums::template kAddedOffset<Type>;

  // A run that has more than 64 bytes for each row waits for memory, and needs its lines near. GB/s
  // of weights, 2 threads of a Xeon (Sapphire Rapids) that read 33 to 35 GB/s, by what is asked for
  // (both: 4 kB ahead to the second level of the cache, 1 kB to the first):
  //                    1 row: 4 kB ahead   1 kB ahead   both    4 rows: 8 kB   1 kB
  //   AVX2, Q4_0                    23.3         30.7   35.0            19.6   19.9
  //   AVX2, Q8_0                    25.3         30.2   34.2            20.2   23.1
  //   AVX2, MXFP4                   26.1         28.6   33.5            17.5   17.9
  //   AVX2, Q4_K                    24.9         28.5   30.9            18.8   18.4
  //   AVX-VNNI, Q4_0                27.7         31.6   35.0            20.4   21.9
  //   AVX-VNNI, Q8_0                30.8         32.9   33.8            24.3   27.2
  //   AVX-VNNI, Q3_K                23.9         24.0   25.2            14.9   14.1
  // Two rows gained at most 5 % there from what is 4 kB ahead; on one thread of a Zen 3 with AVX2 two to
  // four rows gain 5 to 12 %. One row of two or three bits, which gains least from both there, asks once:
  // share of the speed of plain reading on one and two threads of Zen 4 with AVX2, both and 8 kB ahead:
  //   Q2_K 0.46 0.69   0.54 0.78        Q3_K 0.54 0.82   0.72 0.95
  // Other rows are busy, and a line that comes early must not displace them in
  // the first level.
  template <int R, int kBytes>
  static FORETOKEN_INLINE void PrefetchRun(const void* p) {
    constexpr bool kWaits = kBytes > 64 * R && !(kBytes < 256 && R == 1);
    PrefetchAhead<kWaits ? 4096 : 8192, kWaits ? 1024 : 0, kBytes>(p);
  }
  template <int R, int kBytes>
  static FORETOKEN_INLINE void PrefetchFloats(const void* p) {
    PrefetchAhead<R <= 2 ? 0 : 8192, R <= 2 ? 4096 : 0, kBytes>(p);
  }

  // Writes a block as int16: the first and the third of four neighbours, then the second and the fourth.
  static FORETOKEN_INLINE void Widen(const std::int8_t* block, std::int32_t* to) {
    const __m256i x = Load(block), even = _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8),
                  odd = _mm256_srai_epi16(x, 8);
    const __m256i first = _mm256_unpacklo_epi32(even, odd),
                  second = _mm256_unpackhi_epi32(even, odd);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_permute2x128_si256(first, second, 0x20));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 8),
                        _mm256_permute2x128_si256(first, second, 0x31));
  }

  // Minus the sums of both halves, 16 bits each, the first one in the low bits.
  template <class Type, int R>
  static constexpr bool kPacksStarts = Type::kSums == 2 && Type::kMinima == 0;
  template <class Type, class PackedRow>
  static FORETOKEN_INLINE void PackStarts(const std::int32_t* xs, PackedRow& to) {
    to.c[0] = (-xs[0] & 0xffff) | (xs[0] - xs[1]) * 65536;
  }

  template <class Type, int R>
  static FORETOKEN_INLINE void Run(const typename Type::Tile& tile, int run,
                                   const Row<Type, kIsWide<Type, R>>* rows,
                                   generic::RowSums<Lanes, R>& acc) {
    constexpr int kHalves = IntegerSums::template kHalves<Type>;
#pragma GCC unroll 2
    for (int h = 0; h < 2; h += kHalves) {
      // Each half broadcasts the activations of several rows anew: kept, they would be spilled.
      if constexpr (R > 1 && kHalves == 1) asm volatile("" : "+r"(rows));
      __m256i sum[kHalves][R];
      IntegerSums::template Sums<R, Type>(tile, run, h, rows, sum);
#pragma GCC unroll 2
      for (int i = 0; i < kHalves; ++i) {
        const generic::TileScales<Lanes, Type> scales(tile, run, 8 * (h + i));
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) scales.Add(Lanes::Signed(sum[i][r]), rows[r], acc.of[r][h + i]);
      }
    }
  }
};

}  // namespace
}  // namespace foretoken::kernels::avx2
