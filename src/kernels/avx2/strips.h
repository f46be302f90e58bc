// SPDX-License-Identifier: Apache-2.0
// kernels/avx2/strips.h: how matrix products walk strips of tiles with 256-bit registers: two hold
// the 16 outputs of a tile, and a block of R rows meets each weight register once. For this folder
// and for those that extend it.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/kernels.h"

#define FORETOKEN_INLINE inline __attribute__((always_inline))

namespace foretoken::kernels::avx2 {
namespace {

using tensor::kTileOutputs;

// Asks for memory that the stream of weights reads soon: the hardware's own prefetcher stops at the
// end of each page. Few rows wait for memory, and want the line in the first-level cache; many are
// busy, and there a line that comes early must not displace the rows.
template <int R, int kBytes>
FORETOKEN_INLINE void PrefetchAhead(const void* p) {
  constexpr bool kFewRows = R <= 2;
  const char* ahead = static_cast<const char*>(p) + (kFewRows ? 4096 : 8192);
#pragma GCC unroll 16
  for (int i = 0; i < kBytes; i += 64)
    _mm_prefetch(ahead + i, kFewRows ? _MM_HINT_T0 : _MM_HINT_T1);
}

template <int R>
FORETOKEN_INLINE void StoreTile(const MatmulArgs& a, int row, int tile, const __m256 (&acc)[R][2]) {
  float* y = a.y + row * a.y_stride + std::int64_t{tile} * kTileOutputs;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r, y += a.y_stride) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const __m256 v = acc[r][h];
      _mm256_storeu_ps(y + 8 * h, a.accumulate ? _mm256_add_ps(_mm256_loadu_ps(y + 8 * h), v) : v);
    }
  }
}

using RowsFunction = void (*)(const MatmulArgs& a, int row, int tile_begin, int tile_end);

// Cuts the rows into even blocks of at most max_rows. Where there are several, they take turns on a
// group of strips that stays in the second-level cache, so that memory is read once.
void ForRowBlocks(const MatmulArgs& a, std::int64_t strip_bytes, const RowsFunction* by_rows,
                  int max_rows) {
  const int n_row_blocks = (a.n_rows + max_rows - 1) / max_rows;
  int group = a.tile_end - a.tile_begin;
  if (n_row_blocks > 1) {
    const std::int64_t fit = (std::int64_t{512} << 10) / (strip_bytes + 1);
    group = fit < 8 ? 8 : static_cast<int>(fit);
  }
  for (int tile = a.tile_begin; tile < a.tile_end; tile += group) {
    const int tile_end = a.tile_end - tile < group ? a.tile_end : tile + group;
    for (int block = 0; block < n_row_blocks; ++block) {
      const int row = static_cast<int>(std::int64_t{a.n_rows} * block / n_row_blocks);
      const int row_end = static_cast<int>(std::int64_t{a.n_rows} * (block + 1) / n_row_blocks);
      by_rows[row_end - row - 1](a, row, tile, tile_end);
    }
  }
}

}  // namespace
}  // namespace foretoken::kernels::avx2
