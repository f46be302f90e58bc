// SPDX-License-Identifier: Apache-2.0
// kernels/avx2/prefetch.h: asks for weights before they are read. For the folders that extend this
// one, too.
#pragma once

#include "kernels/avx2/lanes.h"

namespace foretoken::kernels::avx2 {
namespace {

// Asks for kBytes of weights that are read soon: those kFar bytes ahead for the second-level cache,
// those kNear bytes ahead for the first; 0 asks for none. The hardware's own prefetcher stops at
// the end of each page, and forgets its place in the pauses that many rows cause. Few lines can be
// on their way to the first level at a time, so what is far goes to the second.
template <int kFar, int kNear, int kBytes>
FORETOKEN_INLINE void PrefetchAhead(const void* p) {
  const char* at = static_cast<const char*>(p);
#pragma GCC unroll 16
  for (int i = 0; i < kBytes; i += 64) {
    if constexpr (kFar > 0) _mm_prefetch(at + kFar + i, _MM_HINT_T1);
    if constexpr (kNear > 0) _mm_prefetch(at + kNear + i, _MM_HINT_T0);
  }
}

}  // namespace
}  // namespace foretoken::kernels::avx2
