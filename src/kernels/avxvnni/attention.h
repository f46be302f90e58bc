// SPDX-License-Identifier: Apache-2.0
// kernels/avxvnni/attention.h: AVX2's attention with integer products by vpdpbusd, whose coding is a
// parameter as in vpdpbusd.h. The instruction multiplies unsigned by signed bytes, so keys become
// unsigned by an offset.
#pragma once

#include "kernels/avx2/lanes.h"
#include "kernels/generic/attention.h"

namespace foretoken::kernels::avxvnni {
namespace {

template <class Dot>
struct AttentionLanes : avx2::Lanes {
  static constexpr int kQuadWords = 1, kKeyOffset = 128;
  using Keys = __m256i;
  static Keys LoadKeys(const void* p) {
    return _mm256_xor_si256(LoadValues(p), _mm256_set1_epi8(-128));
  }
  static I AddKeys(I sum, Keys k, const std::int32_t* q) {
    return Signed(Dot::Add(Raw(sum), k, _mm256_set1_epi32(*q)));
  }
  static I AddValues(I sum, Values v, std::int32_t w) {
    return Signed(Dot::Add(Raw(sum), _mm256_set1_epi32(w), v));
  }

  // AVX2's numbers, which are not multiplied by 16, in sums of 32 bits.
  struct Fours : avx2::Lanes::Fours {
    static I Start(std::int32_t start) { return Signed(_mm256_set1_epi32(start / 16)); }
    static I AddKeys(I sum, __m256i k, const std::int32_t* q) {
      return AttentionLanes::AddKeys(sum, k, q);
    }
    static I KeyTotal(I sum, std::int32_t) { return ValueTotal(sum); }
    static I AddValues(I sum, __m256i v, std::int32_t w) {
      return AttentionLanes::AddValues(sum, v, w);
    }
    static I ValueTotal(I sum) { return sum << 4; }
  };
};

template <class Dot>
constexpr Kernels AttentionWith() {
  return {.attention = generic::Attention<AttentionLanes<Dot>>};
}

}  // namespace
}  // namespace foretoken::kernels::avxvnni
