// SPDX-License-Identifier: Apache-2.0
// kernels/avx2/lanes.h: the lanes of generic/lanes.h with 256-bit registers: 16 lanes are two
// registers of 8.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/generic/lane_basics.h"

namespace foretoken::kernels::avx2 {
namespace {

constexpr std::int32_t kMasks[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

struct Lanes : generic::LaneDefaults {
  static constexpr int kWidth = 8;

  using F = __m256;
  using D = __m256d;
  using I = std::int32_t __attribute__((vector_size(32)));
  using U = std::uint32_t __attribute__((vector_size(32)));
  using U64 = std::uint64_t __attribute__((vector_size(32)));
  using Mask = I;

  static __m256i Raw(I x) { return __builtin_bit_cast(__m256i, x); }
  static I Signed(__m256i x) { return __builtin_bit_cast(I, x); }
  static I Signed(F x) { return __builtin_bit_cast(I, x); }
  static F Float(I x) { return __builtin_bit_cast(F, x); }

  // ---- Memory -----------------------------------------------------------------------------------
  static F All(float x) { return _mm256_set1_ps(x); }
  static F Load(const float* p) { return _mm256_loadu_ps(p); }
  static void Store(F x, float* p) { _mm256_storeu_ps(p, x); }
  static F LoadFirst(const float* p, int n) { return _mm256_maskload_ps(p, Raw(First(n))); }
  static void StoreFirst(F x, int n, float* p) { _mm256_maskstore_ps(p, Raw(First(n)), x); }

  // ---- Arithmetic -------------------------------------------------------------------------------
  static F Fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F MulAdd(F x, float y, F to) { return _mm256_fmadd_ps(All(y), x, to); }
  static F MulSub(F x, float y, F to) { return _mm256_fnmadd_ps(x, All(y), to); }
  static F AtMost(F x, float bound) { return _mm256_min_ps(All(bound), x); }
  static I Nearest(F x) { return Signed(_mm256_cvtps_epi32(x)); }

  // ---- Masks ------------------------------------------------------------------------------------
  static Mask First(int n) {
    return Signed(_mm256_loadu_si256(
        reinterpret_cast<const __m256i*>(kMasks + kWidth - generic::Bounded(n, kWidth))));
  }
  static Mask Less(F x, F y) { return Signed(_mm256_cmp_ps(x, y, _CMP_LT_OQ)); }
  static Mask NotLess(F x, F y) { return Signed(_mm256_cmp_ps(x, y, _CMP_NLT_UQ)); }
  static Mask Greater(F x, F y) { return Signed(_mm256_cmp_ps(x, y, _CMP_GT_OQ)); }
  static Mask AtLeast(F x, F y) { return Signed(_mm256_cmp_ps(x, y, _CMP_GE_OQ)); }
  static Mask Equal(F x, F y) { return Signed(_mm256_cmp_ps(x, y, _CMP_EQ_OQ)); }
  static Mask Both(Mask a, Mask b) { return a & b; }
  static Mask Either(Mask a, Mask b) { return a | b; }
  static unsigned Bits(Mask mask) { return static_cast<unsigned>(_mm256_movemask_ps(Float(mask))); }
  static bool Any(Mask mask) { return Bits(mask) != 0; }
  static F Keep(Mask mask, F x) { return _mm256_and_ps(Float(mask), x); }
  static F Select(Mask mask, F x, F y) { return _mm256_blendv_ps(y, x, Float(mask)); }

  // ---- Folds ------------------------------------------------------------------------------------
  static float FoldSum(F x) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float FoldMax(F x) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  // Rows are folded in pairs, whose halves then share a register: i and i + 4 first.
  template <class Combine>
  static FORETOKEN_INLINE F FoldRows(const F (&x)[8], Combine combine) {
    F fours[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      fours[i] = combine(_mm256_permute2f128_ps(x[i], x[i + 4], 0x20),
                         _mm256_permute2f128_ps(x[i], x[i + 4], 0x31));
    const F a = combine(_mm256_shuffle_ps(fours[0], fours[1], 0x44),
                        _mm256_shuffle_ps(fours[0], fours[1], 0xee));
    const F b = combine(_mm256_shuffle_ps(fours[2], fours[3], 0x44),
                        _mm256_shuffle_ps(fours[2], fours[3], 0xee));
    return combine(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
  }
  static std::int32_t LargestOf(I x) {
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(Raw(x)), _mm256_extracti128_si256(Raw(x), 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1)));
  }
  template <int h>
  static F Swap(F x) {
    if constexpr (h <= 2) return _mm256_permute_ps(x, h == 1 ? 0xb1 : 0x4e);
    return _mm256_permute2f128_ps(x, x, 1);
  }
  static D LowDoubles(F x) {
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
  }
  static D HighDoubles(F x) {
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
  }
  static double FoldSum(D x) {
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }

  // ---- Rope -------------------------------------------------------------------------------------
  // Shuffles work within halves of 128 bits, so between them the pairs lie in the order 0 1 4 5 2 3
  // 6 7.
  static generic::Pairs<Lanes> Unzip(F v0, F v1) {
    return {_mm256_shuffle_ps(v0, v1, 0x88), _mm256_shuffle_ps(v0, v1, 0xdd)};
  }
  static F InPairOrder(F x) {
    return _mm256_permutevar8x32_ps(x, _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7));
  }
  static generic::Pairs<Lanes> Zip(const generic::Pairs<Lanes>& x) {
    return {_mm256_unpacklo_ps(x.a, x.b), _mm256_unpackhi_ps(x.a, x.b)};
  }

  // ---- Bytes ------------------------------------------------------------------------------------
  using Bytes = __m256i;
  // Packing works within halves of 128 bits, so the words come out as 0 2 4 6 1 3 5 7.
  static Bytes Pack(const I (&v)[4]) {
    const __m256i low = _mm256_packs_epi32(Raw(v[0]), Raw(v[1]));
    const __m256i packed = _mm256_packs_epi16(low, _mm256_packs_epi32(Raw(v[2]), Raw(v[3])));
    return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }
  static void StoreBytes(Bytes bytes, std::int8_t* q) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), bytes);
  }
  static void StoreSums(Bytes bytes, std::int32_t* sums) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
    const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    const __m128i first = _mm256_castsi256_si128(fours);
    const __m128i all = _mm_add_epi32(first, _mm256_extracti128_si256(fours, 1));
    const __m128i halves = _mm_hadd_epi32(first, all);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(sums), _mm_hadd_epi32(halves, halves));
  }

  // ---- Stored numbers ---------------------------------------------------------------------------
  static void StoreHalves(F x, std::uint16_t* p) {
    const __m128i halves = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), halves);
  }
  static void StoreLow16(U x, std::uint16_t* p) {
    const __m256i words = __builtin_bit_cast(__m256i, x);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
  static std::uint16_t ToHalf(float x) {
    return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static float FromHalf(std::uint16_t x) {
    return _cvtsh_ss(x);
  }
  static __m128i Load16(const void* p) {
    return _mm_loadu_si128(static_cast<const __m128i*>(p));
  }
  static __m128i Load8(const void* p) {
    return _mm_loadl_epi64(static_cast<const __m128i*>(p));
  }
  static F LoadHalves(const std::uint16_t* p) {
    return _mm256_cvtph_ps(Load16(p));
  }
  static F LoadBfloats(const std::uint16_t* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(Load16(p)), 16));
  }
  static I LoadIntegers(const std::uint8_t* p) {
    return Signed(_mm256_cvtepu8_epi32(Load8(p)));
  }
  static I LoadBytePairs(const std::uint8_t* p) {
    return Signed(_mm256_cvtepu8_epi16(Load16(p)));
  }
  static F LoadUnsigned(const std::uint8_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(Load8(p)));
  }

  // ---- Integer products of attention --------------------------------------------------------------
  // Keys and queries are signed, so they are multiplied as 16-bit numbers: those of the even bytes,
  // and those of the odd ones. Weights are at most 127, so two of their products fit 16 bits.
  static constexpr int kQuadWords = 2, kKeyOffset = 0;
  struct Keys {
    __m256i even, odd;
  };
  static Keys LoadKeys(const void* p) {
    const __m256i bytes = _mm256_loadu_si256(static_cast<const __m256i*>(p));
    return {_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8), _mm256_srai_epi16(bytes, 8)};
  }
  static I AddKeys(I sum, const Keys& k, const std::int32_t* q) {
    return sum + Signed(_mm256_madd_epi16(k.even, _mm256_set1_epi32(q[0]))) +
           Signed(_mm256_madd_epi16(k.odd, _mm256_set1_epi32(q[1])));
  }
  using Values = __m256i;
  static Values LoadValues(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  }
  static I AddValues(I sum, Values v, std::int32_t w) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi32(w), v);
    return sum + Signed(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }

  // Keys of q4_0 are nibbles, at most 15, and values nibbles less 8: sums of 16 products each fit 16 bits.
  struct Fours {
    static constexpr int kQuadWords = 1, kKeyOffset = 128, kParts = 2;
    static constexpr float kUnits = 16.0f;
    using Keys = __m256i;
    using Values = __m256i;
    template <int kPart>
    static FORETOKEN_INLINE Keys LoadKeys(const void* p) {
      __m256i bytes = Lanes::LoadValues(p);
      if constexpr (kPart == 1) bytes = _mm256_srli_epi16(bytes, 4);
      return _mm256_and_si256(bytes, _mm256_set1_epi8(15));
    }
    template <int kPart>
    static FORETOKEN_INLINE Values LoadValues(const void* p) {
      return _mm256_sub_epi8(LoadKeys<kPart>(p), _mm256_set1_epi8(8));
    }
    static I Start(std::int32_t) { return I{}; }
    static I AddKeys(I sum, Keys k, const std::int32_t* q) {
      return Signed(_mm256_add_epi16(Raw(sum), _mm256_maddubs_epi16(k, _mm256_set1_epi32(*q))));
    }
    static I KeyTotal(I sum, std::int32_t start) {
      return ValueTotal(sum) + Signed(_mm256_set1_epi32(start));
    }
    static I AddValues(I sum, Values v, std::int32_t w) {
      return Signed(_mm256_add_epi16(Raw(sum), _mm256_maddubs_epi16(_mm256_set1_epi32(w), v)));
    }
    static I ValueTotal(I sum) {
      return Signed(_mm256_madd_epi16(Raw(sum), _mm256_set1_epi16(16)));
    }
  };

  // ---- Noise ------------------------------------------------------------------------------------
  static U64 Product(U64 x, std::uint32_t factor) {
    return __builtin_bit_cast(U64, _mm256_mul_epu32(__builtin_bit_cast(__m256i, x),
                                                    _mm256_set1_epi64x(std::int64_t{factor})));
  }
  static U Weave(U64 even, U64 odd) {
    return __builtin_bit_cast(U, _mm256_blend_epi32(__builtin_bit_cast(__m256i, even),
                                                    __builtin_bit_cast(__m256i, odd << 32), 0xaa));
  }

  // ---- Attention --------------------------------------------------------------------------------
  static constexpr int kTogether = 6;       // queries that share a key or a value
  static constexpr int kAccumulators = 12;  // registers for the sums of a loop
  static constexpr bool kWholeBlocks = true;
  // Always inlined: the compiler takes a function that only prefetches for one without effect, and
  // drops its calls.
  static FORETOKEN_INLINE void Prefetch(const void* p) {
    _mm_prefetch(p, _MM_HINT_T0);
  }
  // The second level takes more lines at a time than the first (one row of attention over q8_0, AVX-512, two threads of
  // a Zen 4, us for 8.9 MB: 564 with the first level, 4 kB ahead; 435 with the second, 336 with it 12 kB ahead). A Zen 5
  // differs (avx512/attention.cpp).
  static FORETOKEN_INLINE void PrefetchFar(const void* p) {
    _mm_prefetch(p, _MM_HINT_T1);
  }
};

}  // namespace
}  // namespace foretoken::kernels::avx2
