// SPDX-License-Identifier: Apache-2.0
// kernels/avxvnni/dot.h: vpdpbusd in the coding of AVX-VNNI.
#pragma once

#include "kernels/avx2/lanes.h"

namespace foretoken::kernels::avxvnni {
namespace {

struct DotAvxVnni {
  static FORETOKEN_INLINE __m256i Add(__m256i sum, __m256i w, __m256i x) {
    return _mm256_dpbusd_avx_epi32(sum, w, x);
  }
};

}  // namespace
}  // namespace foretoken::kernels::avxvnni
