// SPDX-License-Identifier: Apache-2.0
// kernels/avx2/matmul.cpp: the integer sums of AVX2, which has no VNNI. All of it is exact.
//
// Few bits: vpmaddubsw multiplies unsigned weights by signed activations and adds two neighbours in
// 16 bits. As many such sums as fit are added in 16 bits, and then one vpmaddwd widens them:
//   4 bits  all 8 words of a run: at most 8 * 2 * 15 * 127 = 30480
//   5 bits  4 words: at most 4 * 2 * 31 * 127 = 31496 (MXFP4, whose weights plus 12 are at most 24,
//           too)
//   2 and 3 bits  4 words, which have one scale: at most 4 * 2 * 7 * 127 = 7112
//   6 bits  2 words: at most 2 * 2 * 63 * 127 = 32004; the vpmaddwd also multiplies by the scale
// 8 bits (IQ4_NL and IQ4_XS with their offset, and wide tiles, too): vpmaddwd of weights and
// activations as int16, which adds two neighbours in 32 bits. It takes as many multiplications as two
// halves of 4 bits with vpmaddubsw, half as many registers for the sums, and no widening at last. One
// row takes vpmaddubsw(|w|, x with the sign of w): w lies in [-128, 127] and |x| <= 127, so a pair is at
// most 2 * 128 * 127 = 32512.
//
// Both halves of a tile share the broadcasts of the activations. GMAC/s of one thread (Zen 3, weights in
// the second-level cache; before: half by half, 8 bits as two times 4):
//            2 rows  3   4   5   8         2 rows  3   4   5   8
//   Q4_0 before  62  69  77  79  80    Q8_0    46  52  54  48  53
//         after  80  84  99 101  95            56  60  62  65  62
#include "kernels/avx2/quantised.h"

namespace foretoken::kernels::avx2 {
namespace {

// Pairs of words whose products fit in 16 bits and have one scale.
constexpr int PairsThatFit(int bits) {
  return bits == 4 ? 4 : bits == 5 || bits <= 3 ? 2 : 1;
}

// to += p. Without the asm the compiler turns a chain of sums into a tree and runs out of
// registers.
FORETOKEN_INLINE void Add16(__m256i& to, __m256i p) {
  to = _mm256_add_epi16(to, p);
  asm("" : "+x"(to));
}
FORETOKEN_INLINE void Add32(__m256i& to, __m256i p) {
  to = _mm256_add_epi32(to, p);
  asm("" : "+x"(to));
}

// The factor of the 16-bit sums from word pair i on.
template <class Type>
FORETOKEN_INLINE __m256i Factor(const typename Type::Tile& t, int run, int h, int i) {
  if constexpr (Type::kSums == 2)
    return TwiceScale<Type>(t, run, i / 2, h);
  else
    return _mm256_set1_epi16(1);
}

// Word i of 8 outputs as int16: the first and the third weight, or the second and the fourth.
template <class Type>
FORETOKEN_INLINE __m256i Int16Of(const typename Type::Tile& t, int run, int h, int i, int odd) {
  const auto& weights = Type::Run(t, run);
  if constexpr (!Type::kHasTable) {
    const __m256i word = Load(weights.q[i] + 8 * h);
    return odd == 1 ? _mm256_srli_epi16(word, 8) : _mm256_and_si256(word, _mm256_set1_epi16(255));
  } else {
    const int shift = i % 2 * 4 + odd * 8;
    const __m256i codes = _mm256_srli_epi16(Load(weights.q[i / 2] + 8 * h), shift);
    return _mm256_shuffle_epi8(
        CodeTable<Type>(), shift == 12 ? codes : _mm256_and_si256(codes, _mm256_set1_epi16(15)));
  }
}

// Word i of 8 outputs as signed bytes, without an offset.
template <class Type>
FORETOKEN_INLINE __m256i SignedWord(const typename Type::Tile& t, int run, int h, int i) {
  const auto& weights = Type::Run(t, run);
  if constexpr (!Type::kHasTable) {
    return _mm256_xor_si256(Load(weights.q[i] + 8 * h), _mm256_set1_epi8(-128));
  } else {
    const Words codes = Nibbles(weights.q[i / 2] + 8 * h);
    return _mm256_shuffle_epi8(CodeTable<Type, 0>(), i % 2 == 0 ? codes.even : codes.odd);
  }
}

struct Maddubs {
  template <class Type>
  static constexpr bool kHasBytes = Type::kWeightBits == 8;
  // More rows of a block would need more registers than there are. Where one block takes all rows, each
  // word is unpacked once, which pays for 7 rows of few bits.
  template <class Type>
  static constexpr int kRows = !kHasBytes<Type>                      ? 6
                               : Type::kHasTable || Type::kSums == 2 ? 4
                                                                     : 5;
  template <class Type>
  static constexpr int kLoneRows = kHasBytes<Type> ? 5 : 7;
  template <class Type, int R>
  static constexpr bool kIsWide = kHasBytes<Type> && (R > 1 || Type::kSums == 2);
  // The code of the upper byte of each int16 is 0.
  template <class Type>
  static constexpr int kAddedOffset = [] {
    if constexpr (kHasBytes<Type> && Type::kHasTable)
      return 256 * generic::kCodeWeights<Type, Type::kOffset>.of[0];
    else
      return 0;
  }();
  // Both halves of six bits take 1.1 to 1.3 times as long from memory: their sums fill the registers.
  template <class Type>
  static constexpr int kHalves = Type::kBits == 6 ? 1 : 2;
  static constexpr bool kAsksForNext = true;

  template <int R, class Type>
  static FORETOKEN_INLINE void Sums(const typename Type::Tile& t, int run, int h,
                                    const Row<Type, kIsWide<Type, R>>* rows, __m256i (*sum)[R]) {
    if constexpr (!kHasBytes<Type>)
      SumFewBits<R, Type>(t, run, h, rows, sum);
    else if constexpr (!kIsWide<Type, R>)
      SumSigned<Type>(t, run, rows[0], sum);
    else
      SumBytes<R, Type>(t, run, rows, sum);
  }

  template <int R, class Type>
  static FORETOKEN_INLINE void SumFewBits(const typename Type::Tile& t, int run, int first_half,
                                          const Row<Type>* rows, __m256i (*sum)[R]) {
    constexpr int kPairs = PairsThatFit(Type::kWeightBits), H = kHalves<Type>;
#pragma GCC unroll 4
    for (int first = 0; first < 4; first += kPairs) {
      __m256i part[H][R];
#pragma GCC unroll 4
      for (int i = first; i < first + kPairs; ++i) {
        Words words[H];
#pragma GCC unroll 2
        for (int h = 0; h < H; ++h) words[h] = Pair<Type>(t, run, first_half + h, i);
#pragma GCC unroll 2
        for (int odd = 0; odd < 2; ++odd)
#pragma GCC unroll 8
          for (int r = 0; r < R; ++r) {
            const __m256i x = _mm256_set1_epi32(rows[r].q[2 * i + odd]);
#pragma GCC unroll 2
            for (int h = 0; h < H; ++h) {
              const __m256i w = odd == 0 ? words[h].even : words[h].odd;
              const __m256i p = _mm256_maddubs_epi16(w, x);
              if (i == first && odd == 0)
                part[h][r] = p;
              else
                Add16(part[h][r], p);
            }
          }
      }
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h) {
        const __m256i factor = Factor<Type>(t, run, first_half + h, first);
        const Starts<Type> starts(t, run, first_half + h);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const __m256i wide = _mm256_madd_epi16(part[h][r], factor);
          sum[h][r] = _mm256_add_epi32(first == 0 ? starts.Of(rows[r]) : sum[h][r], wide);
        }
      }
    }
  }

  template <class Type>
  static FORETOKEN_INLINE void SumSigned(const typename Type::Tile& t, int run,
                                         const Row<Type>& row, __m256i (*sum)[1]) {
    sum[0][0] = sum[1][0] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const __m256i all = _mm256_set1_epi32(row.q[i]);
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        const __m256i w = SignedWord<Type>(t, run, h, i);
        const __m256i p = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(all, w));
        Add32(sum[h][0], _mm256_madd_epi16(p, _mm256_set1_epi16(1)));
      }
    }
  }

  template <int R, class Type>
  static FORETOKEN_INLINE void SumBytes(const typename Type::Tile& t, int run,
                                        const Row<Type, true>* rows, __m256i (*sum)[R]) {
    constexpr int kWords = 8 / Type::kSums;  // that have one scale
#pragma GCC unroll 2
    for (int first = 0; first < 8; first += kWords) {
      __m256i part[2][R];
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h)
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r)
          part[h][r] = Type::kSums == 1 ? _mm256_set1_epi32(rows[r].c[0]) : _mm256_setzero_si256();
#pragma GCC unroll 8
      for (int i = first; i < first + kWords; ++i) AddWord<R, Type>(t, run, i, rows, part);
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        if constexpr (Type::kSums == 1) {
#pragma GCC unroll 8
          for (int r = 0; r < R; ++r) sum[h][r] = part[h][r];
        } else {
          const __m256i scale = HalfScale<Type>(t, run, first / kWords, h);
          const Starts<Type> starts(t, run, h);
#pragma GCC unroll 8
          for (int r = 0; r < R; ++r)
            sum[h][r] = _mm256_add_epi32(first == 0 ? starts.Of(rows[r]) : sum[h][r],
                                         _mm256_mullo_epi32(part[h][r], scale));
        }
      }
    }
  }

  // part[h][r] += the products of word i.
  template <int R, class Type>
  static FORETOKEN_INLINE void AddWord(const typename Type::Tile& t, int run, int i,
                                       const Row<Type, true>* rows, __m256i (*part)[R]) {
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; ++odd) {
      const __m256i w[2] = {Int16Of<Type>(t, run, 0, i, odd), Int16Of<Type>(t, run, 1, i, odd)};
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256i x = _mm256_set1_epi32(rows[r].q[2 * i + odd]);
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) Add32(part[h][r], _mm256_madd_epi16(w[h], x));
      }
    }
  }
};

}  // namespace

constinit const Kernels kMatmul = generic::ProductsOf<Core<Maddubs>>::OfAllTypes();

}  // namespace foretoken::kernels::avx2
