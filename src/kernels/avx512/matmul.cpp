// SPDX-License-Identifier: Apache-2.0
// kernels/avx512/matmul.cpp: the integer sums of AVX-512 with VNNI. One register holds the 16
// outputs of a tile. Activations enter as broadcasts from memory, which cost half a load and no
// vector slot.
//
// A run of 32 k becomes 8 registers of unsigned bytes, whatever the type. Then the rows pass by,
// two at a time, so that two chains of products hide each other's latency. Per run and row there
// are 8 vpdpbusd, one conversion, one product of scales and one fma, and one fma more for a
// minimum. Q6_K has two starting values, one for each 16 k, and per row two vpmulld by the scales
// and one addition. On Zen 4, with weights streaming from memory, this is 175 to 183 multiply-adds
// per ns and core for 8 to 16 rows. vpdpbusd alone peaks at 234 there, and two instructions of the
// fma class to eight of them leave 187.
#include "kernels/generic/matmul.h"
#include "kernels/avx512/weights.h"

namespace foretoken::kernels::avx512 {
namespace {

// The most rows that meet weights of two and three bits in place. Share of the speed of plain reading,
// one thread of Zen 4, with scaled weights and in place:
//   Q2_K, 1 to 4 rows    0.68 0.54 0.42 0.36    0.87 0.66 0.48 0.37
//   Q3_K                 0.71 0.65 0.53 0.48    0.82 0.85 0.70 0.55
constexpr int kFewRows = 4;

struct Habits : generic::CoreOf<Lanes>, CacheShare {
  template <int R>
  static constexpr bool kScalesWeights = (R > kFewRows);
};

template <class Type, int R>
using Row = generic::RowOf<Habits, Type, R>;

// c += w (unsigned bytes) . x (signed bytes, one word for all outputs). It is assembly because the
// compiler does not fold the broadcast into the instruction, and a separate broadcast competes for
// the ports of the multiplier.
FORETOKEN_INLINE void Dot(__m512i& c, __m512i w, const std::int32_t& x) {
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(c) : "v"(w), "m"(x));
}

// A sum over words [first, first + n) in place.
template <int n>
FORETOKEN_INLINE void DotWords(__m512i& c, const __m512i* q, const std::int32_t* x, int first) {
#pragma GCC unroll 8
  for (int i = first; i < first + n; ++i) Dot(c, q[i], x[i]);
}

// The sums of both halves of a run whose words are in place, side by side as 16 bits: at most
// 16 * 4 * 127.
template <class Type, class Row>
FORETOKEN_INLINE __m512i HalfSums(const __m512i* q, const Row& row) {
  __m512i first, second;
  if constexpr (Type::kBits == 2) {
    first = second = _mm512_setzero_si512();
    DotWords<2>(first, q, row.q, 2);
    DotWords<2>(second, q, row.q, 6);
    first = _mm512_srai_epi32(first, 2);
    second = _mm512_srai_epi32(second, 2);
    DotWords<2>(first, q, row.q, 0);
    DotWords<2>(second, q, row.q, 4);
    second = _mm512_slli_epi32(second, 16 - 4);
  } else {
    first = _mm512_set1_epi32(row.c[0]);
    second = _mm512_set1_epi32(row.c[1]);
    DotWords<1>(first, q, row.q, 3);
    DotWords<1>(second, q, row.q, 7);
    first = _mm512_srai_epi32(first, 5);
    second = _mm512_srai_epi32(second, 1);
    DotWords<3>(first, q, row.q, 0);
    DotWords<3>(second, q, row.q, 4);
    second = _mm512_slli_epi32(second, 16 - 3);
  }
  return _mm512_mask_blend_epi16(0xaaaaaaaa, first, second);
}

// The integer sums of kRows rows of a block of R side by side.
template <class Type, int R, int kRows>
FORETOKEN_INLINE void IntegerSums(const __m512i* q, const Row<Type, R>* row, const __m512i* scale,
                                  __m512i* sum) {
  constexpr int kSums = generic::kSums<Habits, Type, R>;
  constexpr bool kFromZero = generic::kOffset<Habits, Type, R> == 0;
  __m512i part[kRows][kSums];
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int h = 0; h < kSums; ++h)
      part[r][h] = kFromZero ? _mm512_setzero_si512() : _mm512_set1_epi32(row[r].c[h]);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) Dot(part[r][i * kSums / 8], q[i], row[r].q[i]);
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
    if constexpr (kSums == 1)
      sum[r] = part[r][0];
    else
      sum[r] = _mm512_add_epi32(_mm512_mullo_epi32(part[r][0], scale[0]),
                                _mm512_mullo_epi32(part[r][1], scale[1]));
  }
}

// Adds a run to the sums of kRows rows.
template <class Type, int R, int kRows>
FORETOKEN_INLINE void AddRows(const __m512i* q, const __m512i* scale,
                              const generic::TileScales<Lanes, Type>& scales,
                              const Row<Type, R>* row, __m512 (*acc)[1]) {
  __m512i sum[kRows];
  IntegerSums<Type, R, kRows>(q, row, scale, sum);
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) scales.Add(Lanes::Signed(sum[r]), row[r], acc[r][0]);
}

struct Core : Habits {
  static constexpr int kFloatRows = 8;
  template <int R>
  static constexpr int kStrips = R <= 3 ? 2 : 1;
  // 16 sums, 8 weights, scale, minimum and a pair of rows: 31 registers.
  template <class Type>
  static constexpr int kRows = 16;

  template <int R, int kBytes>
  static FORETOKEN_INLINE void PrefetchFloats(const void* p) {
    constexpr int kNear = R <= 3 ? 2048 : R == 4 ? 4096 : 0;
    PrefetchAhead<kNear == 0 ? 8192 : 0, kNear, kBytes>(p);
  }
  template <int R, int kBytes>
  static FORETOKEN_INLINE void PrefetchRun(const void* p) {
    constexpr bool kWideRun = kBytes > 512;  // eight bits
    if constexpr (R == 1)
      PrefetchAhead<kWideRun ? 4096 : 0, kWideRun ? 512 : 6144, kBytes>(p);
    else
      PrefetchAhead<8192, R <= 3 ? 0 : 1024, kBytes>(p);
  }

  template <class Type, int R>
  static constexpr bool kPacksStarts = Type::kBits == 3 && R <= kFewRows;
  template <class Type, class PackedRow>
  static FORETOKEN_INLINE void PackStarts(const std::int32_t* xs, PackedRow& to) {
    to.c[0] = -Type::kOffset * 32 * xs[0];  // as words 3 and 7 come
    to.c[1] = -Type::kOffset * 16 * (xs[1] - xs[0]);
  }

  template <class Type, int R>
  static FORETOKEN_INLINE void Run(const typename Type::Tile& w, int run, const Row<Type, R>* rows,
                                   generic::RowSums<Lanes, R>& acc) {
    __m512i q[8], scale[2] = {};
    const generic::TileScales<Lanes, Type> scales(w, run, 0);
    if constexpr (Type::kBits <= 3 && R <= kFewRows) {
      InPlace(w, run, q);
      const __m512i pairs = PairsOfScales(w, run);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r)
        scales.Add(Lanes::Signed(_mm512_madd_epi16(HalfSums<Type>(q, rows[r]), pairs)), rows[r],
                   acc.of[r][0]);
      return;
    }
    Weights<Type>(w, run, q);
    if constexpr (generic::kSums<Habits, Type, R> == 2 && Type::kBits > 3)
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h)
        scale[h] = _mm512_cvtepi8_epi32(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(w.scale[run][h])));
#pragma GCC unroll 16
    for (int r = 0; r + 2 <= R; r += 2) AddRows<Type, R, 2>(q, scale, scales, rows + r, acc.of + r);
    if constexpr (R % 2 == 1) AddRows<Type, R, 1>(q, scale, scales, rows + R - 1, acc.of + R - 1);
  }
};

}  // namespace

constinit const Kernels kMatmul = generic::ProductsOf<Core>::OfAllTypes();

}  // namespace foretoken::kernels::avx512
