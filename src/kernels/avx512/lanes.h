// SPDX-License-Identifier: Apache-2.0
// kernels/avx512/lanes.h: the lanes of generic/lanes.h with 512-bit registers: 16 lanes are one
// register. Folds end in those of AVX2, which every processor with AVX-512 has. This file is also
// the only way to <immintrin.h> for this folder.
#pragma once

#pragma GCC diagnostic push  // g++ 12 raises false alarms inside its own header
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstdint>

#include "kernels/avx2/lanes.h"

namespace foretoken::kernels::avx512 {
namespace {

struct Lanes : generic::LaneDefaults {
  using Half = avx2::Lanes;  // of half as many lanes
  static constexpr int kWidth = 16;
  static constexpr int kExpGroups = 4;
  static constexpr int kStateGroups = 2;

  using F = __m512;
  using D = __m512d;
  using I = std::int32_t __attribute__((vector_size(64)));
  using U = std::uint32_t __attribute__((vector_size(64)));
  using U64 = std::uint64_t __attribute__((vector_size(64)));
  using Mask = __mmask16;

  static __m512i Raw(I x) { return __builtin_bit_cast(__m512i, x); }
  static __m512i Raw(U x) { return __builtin_bit_cast(__m512i, x); }
  static __m512i Raw(U64 x) { return __builtin_bit_cast(__m512i, x); }
  static I Signed(__m512i x) { return __builtin_bit_cast(I, x); }

  // ---- Memory -----------------------------------------------------------------------------------
  static F All(float x) { return _mm512_set1_ps(x); }
  // p[0], p[1], p[0], ...
  static F AllPairs(const float* p) {
    double pair;
    __builtin_memcpy(&pair, p, sizeof pair);
    return _mm512_castpd_ps(_mm512_set1_pd(pair));
  }
  static F Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(F x, float* p) { _mm512_storeu_ps(p, x); }
  static F LoadFirst(const float* p, int n) { return _mm512_maskz_loadu_ps(First(n), p); }
  static void StoreFirst(F x, int n, float* p) { _mm512_mask_storeu_ps(p, First(n), x); }

  // ---- Arithmetic -------------------------------------------------------------------------------
  static F Fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F MulAdd(F x, float y, F to) { return _mm512_fmadd_ps(All(y), x, to); }
  static F MulSub(F x, float y, F to) { return _mm512_fnmadd_ps(x, All(y), to); }
  static F AtMost(F x, float bound) { return _mm512_min_ps(All(bound), x); }
  static I Nearest(F x) { return Signed(_mm512_cvtps_epi32(x)); }

  // ---- Masks ------------------------------------------------------------------------------------
  static Mask First(int n) { return static_cast<Mask>((1u << generic::Bounded(n, kWidth)) - 1); }
  static Mask Less(F x, F y) { return _mm512_cmp_ps_mask(x, y, _CMP_LT_OQ); }
  static Mask NotLess(F x, F y) { return _mm512_cmp_ps_mask(x, y, _CMP_NLT_UQ); }
  static Mask Greater(F x, F y) { return _mm512_cmp_ps_mask(x, y, _CMP_GT_OQ); }
  static Mask AtLeast(F x, F y) { return _mm512_cmp_ps_mask(x, y, _CMP_GE_OQ); }
  static Mask Equal(F x, F y) { return _mm512_cmp_ps_mask(x, y, _CMP_EQ_OQ); }
  static Mask Both(Mask a, Mask b) { return static_cast<Mask>(a & b); }
  static Mask Either(Mask a, Mask b) { return static_cast<Mask>(a | b); }
  static unsigned Bits(Mask mask) { return mask; }
  static bool Any(Mask mask) { return mask != 0; }
  static F Keep(Mask mask, F x) { return _mm512_maskz_mov_ps(mask, x); }
  static F Select(Mask mask, F x, F y) { return _mm512_mask_blend_ps(mask, y, x); }

  // ---- Folds ------------------------------------------------------------------------------------
  static float FoldSum(F x) {
    return Half::FoldSum(_mm512_castps512_ps256(x) + _mm512_extractf32x8_ps(x, 1));
  }
  static float FoldMax(F x) {
    return Half::FoldMax(_mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)));
  }
  // Rows are folded in pairs, whose halves then share a register: i, i + 4, i + 8 and i + 12 first.
  template <class Combine>
  static FORETOKEN_INLINE F FoldRows(const F (&x)[16], Combine combine) {
    F fours[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const F a = combine(_mm512_shuffle_f32x4(x[i], x[i + 4], 0x44),
                          _mm512_shuffle_f32x4(x[i], x[i + 4], 0xee));
      const F b = combine(_mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0x44),
                          _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0xee));
      fours[i] = combine(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    }
    const F a = combine(_mm512_shuffle_ps(fours[0], fours[1], 0x44),
                        _mm512_shuffle_ps(fours[0], fours[1], 0xee));
    const F b = combine(_mm512_shuffle_ps(fours[2], fours[3], 0x44),
                        _mm512_shuffle_ps(fours[2], fours[3], 0xee));
    return combine(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
  }
  static std::int32_t LargestOf(I x) {
    return _mm512_reduce_max_epi32(Raw(x));
  }
  static D LowDoubles(F x) {
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
  }
  static D HighDoubles(F x) {
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
  }
  static double FoldSum(D x) {
    return Half::FoldSum(_mm512_castpd512_pd256(x) + _mm512_extractf64x4_pd(x, 1));
  }

  template <int h>
  static F Swap(F x) {
    if constexpr (h <= 2) return _mm512_permute_ps(x, h == 1 ? 0xb1 : 0x4e);
    return _mm512_shuffle_f32x4(x, x, h == 4 ? 0xb1 : 0x4e);
  }

  // ---- Rope -------------------------------------------------------------------------------------
  static generic::Pairs<Lanes> Unzip(F v0, F v1) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd =
        _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return {_mm512_permutex2var_ps(v0, even, v1), _mm512_permutex2var_ps(v0, odd, v1)};
  }
  static F InPairOrder(F x) {
    return x;
  }
  static generic::Pairs<Lanes> Zip(const generic::Pairs<Lanes>& x) {
    const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i second =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    return {_mm512_permutex2var_ps(x.a, first, x.b), _mm512_permutex2var_ps(x.a, second, x.b)};
  }

  // ---- Bytes ------------------------------------------------------------------------------------
  struct Bytes {
    __m128i low, high;
  };
  static Bytes Pack(const I (&v)[2]) {
    return {_mm512_cvtepi32_epi8(Raw(v[0])), _mm512_cvtepi32_epi8(Raw(v[1]))};
  }
  static void StoreBytes(const Bytes& bytes, std::int8_t* q) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q), bytes.low);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q + 16), bytes.high);
  }
  // The bytes of two times 32 numbers. Packing works within quarters of 128 bits, so the words come
  // out as 0 4 8 12 1 5 ...
  static void StoreTwoBlocks(const I (&first)[2], const I (&second)[2], std::int8_t* q) {
    const __m512i packed = _mm512_packs_epi16(_mm512_packs_epi32(Raw(first[0]), Raw(first[1])),
                                              _mm512_packs_epi32(Raw(second[0]), Raw(second[1])));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(q, _mm512_permutexvar_epi32(order, packed));
  }
  // Products with one, then two steps of pairs.
  static void StoreSums(const Bytes& bytes, std::int32_t* sums) {
    const __m128i ones = _mm_set1_epi8(1);
    const __m128i low = _mm_dpbusd_epi32(_mm_setzero_si128(), ones, bytes.low);
    const __m128i pairs = _mm_hadd_epi32(low, _mm_dpbusd_epi32(low, ones, bytes.high));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(sums), _mm_hadd_epi32(pairs, pairs));
  }

  // ---- Stored numbers ---------------------------------------------------------------------------
  static void StoreHalves(F x, std::uint16_t* p) {
    const __m256i halves = _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), halves);
  }
  static void StoreLow16(U x, std::uint16_t* p) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(Raw(x)));
  }
  static std::uint16_t ToHalf(float x) {
    return Half::ToHalf(x);
  }
  static float FromHalf(std::uint16_t x) {
    return Half::FromHalf(x);
  }
  static __m256i Load32(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  }
  static F LoadHalves(const std::uint16_t* p) {
    return _mm512_cvtph_ps(Load32(p));
  }
  static F LoadBfloats(const std::uint16_t* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(Load32(p)), 16));
  }
  static I LoadIntegers(const std::uint8_t* p) {
    return Signed(_mm512_cvtepu8_epi32(Half::Load16(p)));
  }
  static I LoadBytePairs(const std::uint8_t* p) {
    return Signed(_mm512_cvtepu8_epi16(Load32(p)));
  }
  static F LoadUnsigned(const std::uint8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(Half::Load16(p)));
  }

  // ---- Integer products of attention --------------------------------------------------------------
  // vpdpbusd multiplies unsigned by signed bytes, so keys become unsigned by an offset.
  static constexpr int kQuadWords = 1, kKeyOffset = 128;
  using Keys = __m512i;
  static Keys LoadKeys(const void* p) {
    return _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(-128));
  }
  static I AddKeys(I sum, Keys k, const std::int32_t* q) {
    return Signed(_mm512_dpbusd_epi32(Raw(sum), k, _mm512_set1_epi32(*q)));
  }
  using Values = __m512i;
  static Values LoadValues(const void* p) {
    return _mm512_loadu_si512(p);
  }
  static I AddValues(I sum, Values v, std::int32_t w) {
    return Signed(_mm512_dpbusd_epi32(Raw(sum), _mm512_set1_epi32(w), v));
  }

  // 16 times the nibbles, then bit 7 changed where `flip` is -128: 16 times (nibble - 8), with the offset
  // of keys or without.
  template <int kPart>
  static FORETOKEN_INLINE __m512i LoadFours(const void* p, char flip) {
    __m512i bytes = _mm512_loadu_si512(p);
    if constexpr (kPart == 0) bytes = _mm512_slli_epi16(bytes, 4);
    return _mm512_ternarylogic_epi64(bytes, _mm512_set1_epi8(-16), _mm512_set1_epi8(flip), 0x6a);
  }
  template <int kPart>
  static FORETOKEN_INLINE Keys LoadFourKeys(const void* p) {
    return LoadFours<kPart>(p, 0);
  }
  template <int kPart>
  static FORETOKEN_INLINE Values LoadFourValues(const void* p) {
    return LoadFours<kPart>(p, -128);
  }

  // ---- Noise ------------------------------------------------------------------------------------
  static U64 Product(U64 x, std::uint32_t factor) {
    return __builtin_bit_cast(U64,
                              _mm512_mul_epu32(Raw(x), _mm512_set1_epi64(std::int64_t{factor})));
  }
  static U Weave(U64 even, U64 odd) {
    return __builtin_bit_cast(U, _mm512_mask_mov_epi32(Raw(even), 0xaaaa, Raw(odd << 32)));
  }

  // ---- Attention --------------------------------------------------------------------------------
  static constexpr int kTogether = 8;       // queries that share a key or a value
  static constexpr int kAccumulators = 16;  // registers for the sums of a loop
  static constexpr bool kWholeBlocks = true;
  static constexpr int kIntegerBytes = 4608;
  // Always inlined: the compiler takes a function that only prefetches for one without effect, and
  // drops its calls.
  static FORETOKEN_INLINE void Prefetch(const void* p) {
    Half::Prefetch(p);
  }
  static FORETOKEN_INLINE void PrefetchFar(const void* p) {
    Half::PrefetchFar(p);
  }
};

}  // namespace
}  // namespace foretoken::kernels::avx512
