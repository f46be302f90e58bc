// SPDX-License-Identifier: Apache-2.0
#include "kernels/avxvnni/vpdpbusd.h"

namespace foretoken::kernels::avxvnni {
namespace {

struct DotAvxVnni {
  static FORETOKEN_INLINE __m256i Add(__m256i sum, __m256i w, __m256i x) {
    return _mm256_dpbusd_avx_epi32(sum, w, x);
  }
};

}  // namespace

constinit const Kernels kMatmul = ProductsWith<DotAvxVnni>();

}  // namespace foretoken::kernels::avxvnni
