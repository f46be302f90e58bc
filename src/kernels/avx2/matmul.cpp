// SPDX-License-Identifier: Apache-2.0
// kernels/avx2/matmul.cpp: the integer sums of AVX2, which has no VNNI. It has vpmaddubsw, which
// multiplies unsigned weights by signed activations and adds two neighbours in 16 bits. All of it
// is exact. As many such sums as fit are added in 16 bits, and then one vpmaddwd widens them:
//   4 bits  all 8 words of a run: at most 8 * 2 * 15 * 127 = 30480
//   5 bits  4 words: at most 4 * 2 * 31 * 127 = 31496 (MXFP4, whose weights plus 12 are at most 24,
//           too)
//   2 and 3 bits  4 words, which have one scale: at most 4 * 2 * 7 * 127 = 7112
//   6 bits  2 words: at most 2 * 2 * 63 * 127 = 32004; the vpmaddwd also multiplies by the scale
//   8 bits  as two times 4 bits (IQ4_NL and IQ4_XS with their offset, and wide tiles, too); the
//           vpmaddwd of the upper four multiplies by 16. Splitting pays from two rows on. One row
//           of Q8_0 takes vpmaddubsw(|w|, x with the sign of w): w = q - 128 lies in
//           [-128, 127] and |x| <= 127, so a pair is at most 2 * 128 * 127 = 32512.
#include "kernels/avx2/quantised.h"

namespace foretoken::kernels::avx2 {
namespace {

// Pairs of words whose products fit in 16 bits and have one scale.
constexpr int PairsThatFit(int bits) {
  return bits == 4 ? 4 : bits == 5 || bits <= 3 ? 2 : 1;
}

FORETOKEN_INLINE __m256i Products(const Words& w, const std::int32_t* q) {
  return _mm256_add_epi16(_mm256_maddubs_epi16(w.even, _mm256_set1_epi32(q[0])),
                          _mm256_maddubs_epi16(w.odd, _mm256_set1_epi32(q[1])));
}

// to += p. Without the asm the compiler turns a chain of sums into a tree and runs out of
// registers.
FORETOKEN_INLINE void AddInOrder(__m256i& to, __m256i p) {
  to = _mm256_add_epi16(to, p);
  asm("" : "+x"(to));
}

// The factor of the 16-bit sums from word pair i on.
template <class Type>
FORETOKEN_INLINE __m256i Factor(const typename Type::Tile& t, int run, int h, int i) {
  if constexpr (Type::kSums == 2)
    return PairScales<Type>(t, run, i / 2, i / 2, h);
  else
    return _mm256_set1_epi16(1);
}

// The low and the high four bits of word i of a type whose weights have eight.
template <class Type>
FORETOKEN_INLINE Words HalvesOfBytes(const typename Type::Tile& t, int run, int h, int i) {
  if constexpr (!Type::kHasTable) {
    return Nibbles(Type::Run(t, run).q[i] + 8 * h);
  } else {
    const __m256i low = _mm256_set1_epi8(15), weights = CodeTable<Type>();
    const __m256i both = Load(Type::Run(t, run).q[i / 2] + 8 * h);
    const __m256i code = _mm256_and_si256(i % 2 == 0 ? both : _mm256_srli_epi16(both, 4), low);
    const __m256i high_weights = _mm256_and_si256(_mm256_srli_epi16(weights, 4), low);
    return {_mm256_shuffle_epi8(_mm256_and_si256(weights, low), code),
            _mm256_shuffle_epi8(high_weights, code)};
  }
}

struct Maddubs {
  template <class Type>
  static constexpr int kRows = Type::kWeightBits == 8 ? 4
                               : Type::kBits == 6     ? 6
                                                      : kMaxRows;
  // The first block waits for memory. So five and six rows in one block take less time than in two (Q8_0, of one
  // row 1.36 and 1.42 in place of 1.55 and 1.68; two threads of a Zen 3), though some of its sums are spilled.
  template <class Type>
  static constexpr int kLoneRows = Type::kWeightBits == 8 ? 6 : kRows<Type>;

  template <int R, class Type>
  static FORETOKEN_INLINE void Sums(const typename Type::Tile& t, int run, int h,
                                    const Row<Type>* rows, __m256i* sum) {
    if constexpr (Type::kBits == 8 && Type::kSums == 1 && R == 1) {
      sum[0] = SignedSum(t, h, rows[0]);
    } else {
      StartSums<R, Type>(t, run, h, rows, sum);
      if constexpr (Type::kWeightBits != 8) {
        AddFewBits<R, Type>(t, run, h, rows, sum);
      } else if constexpr (Type::kSums == 1) {
        AddBytes<R, Type, 0, 8>(t, run, h, rows, sum);
      } else {
        AddBytes<R, Type, 0, 4>(t, run, h, rows, sum);
        AddBytes<R, Type, 4, 8>(t, run, h, rows, sum);
      }
    }
  }

  template <int R, class Type>
  static FORETOKEN_INLINE void AddFewBits(const typename Type::Tile& t, int run, int h,
                                          const Row<Type>* rows, __m256i* sum) {
    constexpr int kPairs = PairsThatFit(Type::kWeightBits);
#pragma GCC unroll 4
    for (int first = 0; first < 4; first += kPairs) {
      __m256i part[R];
#pragma GCC unroll 4
      for (int i = first; i < first + kPairs; ++i) {
        const Words w = Pair<Type>(t, run, h, i);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const __m256i p = Products(w, rows[r].q + 2 * i);
          if (i == first)
            part[r] = p;
          else
            AddInOrder(part[r], p);
        }
      }
      const __m256i factor = Factor<Type>(t, run, h, first);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sum[r] = _mm256_add_epi32(sum[r], _mm256_madd_epi16(part[r], factor));
    }
  }

  static FORETOKEN_INLINE __m256i SignedSum(const tensor::TileQ8_0& t, int h,
                                            const Row<generic::Q8_0>& row) {
    __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const __m256i w = _mm256_xor_si256(Load(t.q[i][8 * h]), _mm256_set1_epi8(-128));
      const __m256i x = _mm256_sign_epi8(_mm256_set1_epi32(row.q[i]), w);
      const __m256i p = _mm256_maddubs_epi16(_mm256_abs_epi8(w), x);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(p, _mm256_set1_epi16(1)));
    }
    return sum;
  }

  // Words [kBegin, kEnd) of a run, which have one scale.
  template <int R, class Type, int kBegin, int kEnd>
  static FORETOKEN_INLINE void AddBytes(const typename Type::Tile& t, int run, int h,
                                        const Row<Type>* rows, __m256i* sum) {
    __m256i low[R], high[R];
#pragma GCC unroll 8
    for (int i = kBegin; i < kEnd; ++i) {
      const Words w = HalvesOfBytes<Type>(t, run, h, i);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256i x = _mm256_set1_epi32(rows[r].q[i]);
        const __m256i p0 = _mm256_maddubs_epi16(w.even, x), p1 = _mm256_maddubs_epi16(w.odd, x);
        if (i == kBegin) {
          low[r] = p0;
          high[r] = p1;
        } else {
          AddInOrder(low[r], p0);
          AddInOrder(high[r], p1);
        }
      }
    }
    const __m256i one = Factor<Type>(t, run, h, kBegin / 2), sixteen = _mm256_slli_epi16(one, 4);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256i lower = _mm256_madd_epi16(low[r], one);
      const __m256i upper = _mm256_madd_epi16(high[r], sixteen);
      sum[r] = _mm256_add_epi32(sum[r], _mm256_add_epi32(lower, upper));
    }
  }
};

}  // namespace

constinit const Kernels kMatmul = generic::ProductsOf<Core<Maddubs>>::OfAllTypes();

}  // namespace foretoken::kernels::avx2
