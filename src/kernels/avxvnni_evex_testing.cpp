// SPDX-License-Identifier: Apache-2.0
// The kernels of avxvnni/ with AVX-512's coding of the same instruction, so that their code is
// tested on processors that know only that coding. For stand_in_test.cpp and attention_test.cpp; compiled with flags of
// its own.
#include "kernels/avxvnni/attention.h"
#include "kernels/avxvnni/vpdpbusd.h"

namespace foretoken::kernels::avxvnni {
namespace {

struct DotAvx512Vl {
  static FORETOKEN_INLINE __m256i Add(__m256i sum, __m256i w, __m256i x) {
    return _mm256_dpbusd_epi32(sum, w, x);
  }
};

}  // namespace

constinit const Kernels kEvexMatmul = ProductsWith<DotAvx512Vl>();
constinit const Kernels kEvexAttention = AttentionWith<DotAvx512Vl>();

}  // namespace foretoken::kernels::avxvnni
