// SPDX-License-Identifier: Apache-2.0
// kernels/neon/lanes.h: the lanes of generic/lanes.h with 128-bit registers: 16 lanes are four
// registers of 4.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/generic/lane_basics.h"

namespace foretoken::kernels::neon {
namespace {

constexpr std::uint32_t kMasks[8] = {~0u, ~0u, ~0u, ~0u};
constexpr std::uint32_t kLaneBits[4] = {1, 2, 4, 8};

struct Lanes : generic::LaneDefaults {
  static constexpr int kWidth = 4;

  using F = float32x4_t;
  using D = float64x2_t;
  using I = std::int32_t __attribute__((vector_size(16)));
  using U = std::uint32_t __attribute__((vector_size(16)));
  using U64 = std::uint64_t __attribute__((vector_size(16)));
  using Mask = uint32x4_t;

  static int32x4_t Raw(I x) { return __builtin_bit_cast(int32x4_t, x); }
  static I Signed(int32x4_t x) { return __builtin_bit_cast(I, x); }

  // ---- Memory -----------------------------------------------------------------------------------
  static F All(float x) { return vdupq_n_f32(x); }
  static F Load(const float* p) { return vld1q_f32(p); }
  static void Store(F x, float* p) { vst1q_f32(p, x); }
  static F LoadFirst(const float* p, int n) {
    if (n >= kWidth) return Load(p);
    float all[kWidth];
    for (int i = 0; i < kWidth; ++i) all[i] = i < n ? p[i] : 0.0f;
    return Load(all);
  }
  static void StoreFirst(F x, int n, float* p) {
    if (n >= kWidth) return Store(x, p);
    float all[kWidth];
    Store(x, all);
    for (int i = 0; i < n; ++i) p[i] = all[i];
  }

  // ---- Arithmetic -------------------------------------------------------------------------------
  static F Fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }
  static F MulAdd(F x, float y, F to) { return vfmaq_n_f32(to, x, y); }
  static F MulSub(F x, float y, F to) { return vfmsq_n_f32(to, x, y); }
  static F AtMost(F x, float bound) { return vminq_f32(x, vdupq_n_f32(bound)); }
  static I Nearest(F x) { return Signed(vcvtnq_s32_f32(x)); }

  // ---- Masks ------------------------------------------------------------------------------------
  static Mask First(int n) { return vld1q_u32(kMasks + kWidth - generic::Bounded(n, kWidth)); }
  static Mask Less(F x, F y) { return vcltq_f32(x, y); }
  static Mask NotLess(F x, F y) { return vmvnq_u32(vcltq_f32(x, y)); }
  static Mask Greater(F x, F y) { return vcgtq_f32(x, y); }
  static Mask AtLeast(F x, F y) { return vcgeq_f32(x, y); }
  static Mask Equal(F x, F y) { return vceqq_f32(x, y); }
  static Mask Both(Mask a, Mask b) { return vandq_u32(a, b); }
  static Mask Either(Mask a, Mask b) { return vorrq_u32(a, b); }
  static unsigned Bits(Mask mask) { return vaddvq_u32(vandq_u32(mask, vld1q_u32(kLaneBits))); }
  static bool Any(Mask mask) { return vmaxvq_u32(mask) != 0; }
  static F Keep(Mask mask, F x) {
    return vreinterpretq_f32_u32(vandq_u32(mask, vreinterpretq_u32_f32(x)));
  }
  static F Select(Mask mask, F x, F y) { return vbslq_f32(mask, x, y); }

  // ---- Folds ------------------------------------------------------------------------------------
  static float FoldSum(F x) {
    const float32x2_t two = vadd_f32(vget_low_f32(x), vget_high_f32(x));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  static float FoldMax(F x) { return vmaxvq_f32(x); }
  template <class Combine>
  static FORETOKEN_INLINE F FoldRows(const F (&x)[4], Combine combine) {
    const auto halves = [](F a, F b) {
      return generic::Pairs<Lanes>{vcombine_f32(vget_low_f32(a), vget_low_f32(b)),
                                   vcombine_f32(vget_high_f32(a), vget_high_f32(b))};
    };
    const auto a = halves(x[0], x[1]), b = halves(x[2], x[3]);
    const F first = combine(a.a, a.b), second = combine(b.a, b.b);
    return combine(vuzp1q_f32(first, second), vuzp2q_f32(first, second));
  }
  static std::int32_t LargestOf(I x) { return vmaxvq_s32(Raw(x)); }
  template <int h>
  static F Swap(F x) {
    return h == 1 ? vrev64q_f32(x) : vextq_f32(x, x, 2);
  }
  static D LowDoubles(F x) { return vcvt_f64_f32(vget_low_f32(x)); }
  static D HighDoubles(F x) { return vcvt_high_f64_f32(x); }
  static double FoldSum(D x) { return vgetq_lane_f64(x, 0) + vgetq_lane_f64(x, 1); }

  // ---- Rope -------------------------------------------------------------------------------------
  static generic::Pairs<Lanes> Unzip(F v0, F v1) {
    return {vuzp1q_f32(v0, v1), vuzp2q_f32(v0, v1)};
  }
  static F InPairOrder(F x) { return x; }
  static generic::Pairs<Lanes> Zip(const generic::Pairs<Lanes>& x) {
    return {vzip1q_f32(x.a, x.b), vzip2q_f32(x.a, x.b)};
  }

  // ---- Bytes ------------------------------------------------------------------------------------
  struct Bytes {
    int8x16_t half[2];
  };
  static Bytes Pack(const I (&v)[8]) {
    Bytes bytes;
    for (int h = 0; h < 2; ++h) {
      const int16x4_t w0 = vmovn_s32(Raw(v[4 * h])), w1 = vmovn_s32(Raw(v[4 * h + 1]));
      const int16x4_t w2 = vmovn_s32(Raw(v[4 * h + 2])), w3 = vmovn_s32(Raw(v[4 * h + 3]));
      bytes.half[h] = vcombine_s8(vmovn_s16(vcombine_s16(w0, w1)), vmovn_s16(vcombine_s16(w2, w3)));
    }
    return bytes;
  }
  static void StoreBytes(const Bytes& bytes, std::int8_t* q) {
    vst1q_s8(q, bytes.half[0]);
    vst1q_s8(q + 16, bytes.half[1]);
  }
  static void StoreSums(const Bytes& bytes, std::int32_t* sums) {
    sums[0] = vaddlvq_s8(bytes.half[0]);
    sums[1] = sums[0] + vaddlvq_s8(bytes.half[1]);
  }

  // ---- Stored numbers ---------------------------------------------------------------------------
  static void StoreHalves(F x, std::uint16_t* p) {
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x)));
  }
  static void StoreLow16(U x, std::uint16_t* p) {
    vst1_u16(p, vmovn_u32(__builtin_bit_cast(uint32x4_t, x)));
  }
  static std::uint16_t ToHalf(float x) {
    return vget_lane_u16(vreinterpret_u16_f16(vcvt_f16_f32(vdupq_n_f32(x))), 0);
  }
  static float FromHalf(std::uint16_t x) {
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(x))), 0);
  }
  static F LoadHalves(const std::uint16_t* p) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
  }
  static F LoadBfloats(const std::uint16_t* p) {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
  }
  // Four bytes, in the lower half.
  static uint8x8_t LoadFour(const void* p) {
    std::uint32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return vreinterpret_u8_u32(vdup_n_u32(four));
  }
  static I LoadIntegers(const std::uint8_t* p) {
    return Signed(vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(LoadFour(p))))));
  }
  static I LoadBytePairs(const std::uint8_t* p) {
    return Signed(vreinterpretq_s32_u16(vmovl_u8(vld1_u8(p))));
  }
  static F LoadUnsigned(const std::uint8_t* p) {
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(LoadFour(p)))));
  }

  // ---- Integer products of attention --------------------------------------------------------------
  static constexpr int kQuadWords = 1, kKeyOffset = 0;
  using Keys = int8x16_t;
  static Keys LoadKeys(const void* p) { return vld1q_s8(static_cast<const std::int8_t*>(p)); }
  static I AddKeys(I sum, Keys k, const std::int32_t* q) { return AddValues(sum, k, *q); }
  using Values = int8x16_t;
  static Values LoadValues(const void* p) { return LoadKeys(p); }
  static I AddValues(I sum, Values v, std::int32_t w) {
    return Signed(vdotq_s32(Raw(sum), v, vreinterpretq_s8_s32(vdupq_n_s32(w))));
  }

  template <int kPart>
  static FORETOKEN_INLINE Keys LoadFourKeys(const void* p) {
    const uint8x16_t bytes = vld1q_u8(static_cast<const std::uint8_t*>(p));
    const uint8x16_t nibbles =
        kPart == 0 ? vshlq_n_u8(bytes, 4) : vandq_u8(bytes, vdupq_n_u8(0xf0));
    return vreinterpretq_s8_u8(veorq_u8(nibbles, vdupq_n_u8(0x80)));
  }
  template <int kPart>
  static FORETOKEN_INLINE Values LoadFourValues(const void* p) {
    return LoadFourKeys<kPart>(p);
  }

  // ---- Noise ------------------------------------------------------------------------------------
  static U64 Product(U64 x, std::uint32_t factor) {
    const uint32x2_t low = vmovn_u64(__builtin_bit_cast(uint64x2_t, x));
    return __builtin_bit_cast(U64, vmull_n_u32(low, factor));
  }
  static U Weave(U64 even, U64 odd) {
    return __builtin_bit_cast(U, vsliq_n_u64(__builtin_bit_cast(uint64x2_t, even),
                                             __builtin_bit_cast(uint64x2_t, odd), 32));
  }

  // ---- Attention --------------------------------------------------------------------------------
  static constexpr int kAccumulators = 16;  // registers for the sums of a loop
};

}  // namespace
}  // namespace foretoken::kernels::neon
