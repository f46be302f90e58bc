// SPDX-License-Identifier: Apache-2.0
// The table of avxvnni/ with AVX-512's coding of the same instruction, so that its code is tested
// on processors that know only that one too. For stand_in_test.cpp alone; compiled with flags of
// its own.
#include "kernels/avxvnni/vpdpbusd.h"

namespace foretoken::kernels {
namespace {

struct DotAvx512Vl {
  static FORETOKEN_INLINE __m256i Add(__m256i sum, __m256i w, __m256i x) {
    return _mm256_dpbusd_epi32(sum, w, x);
  }
};

}  // namespace

extern const Kernels kAvxVnniEvex;
constinit const Kernels kAvxVnniEvex = avxvnni::TableWith<DotAvx512Vl>("avxvnni (AVX-512 coding)");

}  // namespace foretoken::kernels
