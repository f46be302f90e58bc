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
};

template <class Dot>
constexpr Kernels AttentionWith() {
  return {.attention = generic::Attention<AttentionLanes<Dot>>};
}

}  // namespace
}  // namespace foretoken::kernels::avxvnni
