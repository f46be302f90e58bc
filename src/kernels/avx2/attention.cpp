// SPDX-License-Identifier: Apache-2.0
// Blocks outside, queries inside: a tile of up to kAttentionQueries queries walks the cache blocks
// once, and within a block groups of up to 4 queries share each K and V vector on its way from
// memory (and its conversion to f32).
//   scores   positions in the lanes, q[d] broadcast, d ascending
//   values   dimensions in the lanes, p[j] broadcast, j ascending
#include <immintrin.h>

#include "kernels/avx2/exp.h"
#include "kernels/avx2/functions.h"
#include "kernels/avx2/lanes.h"

namespace foretoken::kernels::avx2 {
namespace {

constexpr int kSlots = tensor::kKvBlock;
constexpr int kGroup = tensor::kBlock;  // dimensions that share a scale
constexpr int kQueries = kAttentionQueries;
constexpr int kAccumulators = 8;  // vectors that a loop keeps in registers
constexpr float kMinusInf = -__builtin_inff();

// What a stored type looks like: Load 8 elements from index i on, as f32.
struct F32 {
  static constexpr bool kScaled = false;
  static constexpr int kBytes = 4;
  static __m256 Load(const std::byte* base, std::ptrdiff_t i) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(base) + i);
  }
};

struct F16 {
  static constexpr bool kScaled = false;
  static constexpr int kBytes = 2;
  static __m256 Load(const std::byte* base, std::ptrdiff_t i) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(base + 2 * i)));
  }
};

struct BF16 {
  static constexpr bool kScaled = false;
  static constexpr int kBytes = 2;
  static __m256 Load(const std::byte* base, std::ptrdiff_t i) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(base + 2 * i));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
};

struct Q8_0 {
  static constexpr bool kScaled = true;
  static constexpr int kBytes = 1;
  static __m256 Load(const std::byte* base, std::ptrdiff_t i) {
    const __m128i q = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(base + i));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q));
  }
};

// Up to kQueries queries, in order of rows; per query: its accumulator [head_dim], 32 scores, and
// the running softmax.
struct Tile {
  const AttentionArgs* args;
  int n;
  const float* q[kQueries];
  float* out[kQueries];
  int length[kQueries];
  int visible[kQueries];            // of the present block
  float *acc, *p;                   // [kQueries, head_dim], [kQueries, 32]
  float *max, *sum, *factor;        // [kQueries]
  std::ptrdiff_t k_ahead, v_ahead;  // bytes from this block to the next one of the sequence
};

// Brings the next block closer while this one is worked on: a block is a page of its own, where the
// processor's prefetcher stops (8 queries of 64 dimensions in f16, cache in memory: 200 us per 4096
// positions without, 141 us with).
template <int kBytes>
[[gnu::always_inline]] inline void Prefetch(const std::byte* address) {
#pragma GCC unroll 8
  for (int i = 0; i < kBytes; i += 64)
    _mm_prefetch(reinterpret_cast<const char*>(address + i), _MM_HINT_T0);
}

// sum[i][t] += q[i][d] * k[d][8 t ...] for d in [begin, end), in order.
template <class K, int kCount, int kVectors>
[[gnu::always_inline]] inline void AddProducts(const float* const* q, const std::byte* k,
                                               std::ptrdiff_t ahead, int begin, int end,
                                               __m256 (&sum)[kCount][kVectors]) {
  for (int d = begin; d < end; ++d) {
    Prefetch<kVectors * kHalf * K::kBytes>(k + d * kSlots * K::kBytes + ahead);
    __m256 x[kVectors];
#pragma GCC unroll 8
    for (int t = 0; t < kVectors; ++t) x[t] = K::Load(k, d * kSlots + t * kHalf);
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      const __m256 w = _mm256_set1_ps(q[i][d]);
#pragma GCC unroll 8
      for (int t = 0; t < kVectors; ++t) sum[i][t] = _mm256_fmadd_ps(w, x[t], sum[i][t]);
    }
  }
}

template <int kCount, int kVectors>
[[gnu::always_inline]] inline void Clear(__m256 (&sum)[kCount][kVectors]) {
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 8
    for (int t = 0; t < kVectors; ++t) sum[i][t] = _mm256_setzero_ps();
}

// The scores of positions [j, j + 8 kVectors).
template <class K, int kCount, int kVectors>
void ScoresAt(const Tile& tile, int first, const std::byte* block, int j) {
  const int head_dim = tile.args->head_dim;
  const float* const* q = tile.q + first;
  __m256 acc[kCount][kVectors];
  Clear(acc);
  if constexpr (!K::kScaled) {
    AddProducts<K>(q, block + j * K::kBytes, tile.k_ahead, 0, head_dim, acc);
  } else {
    const std::byte* scales = block + kSlots * head_dim;
    for (int d = 0; d < head_dim; d += kGroup, scales += kSlots * F16::kBytes) {
      __m256 part[kCount][kVectors];
      Clear(part);
      AddProducts<K>(q, block + j * K::kBytes, tile.k_ahead, d, d + kGroup, part);
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 8
        for (int t = 0; t < kVectors; ++t)
          acc[i][t] = _mm256_fmadd_ps(part[i][t], F16::Load(scales, j + t * kHalf), acc[i][t]);
    }
  }
  const __m256 scale = _mm256_set1_ps(tile.args->scale);
  float* s = tile.p + first * kSlots + j;
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 8
    for (int t = 0; t < kVectors; ++t)
      _mm256_storeu_ps(s + i * kSlots + t * kHalf, _mm256_mul_ps(scale, acc[i][t]));
}

template <class K, int kCount>
void Scores(const Tile& tile, int first, const std::byte* block) {
  constexpr int kVectors = kCount == 4 ? 2 : 4;
  for (int j = 0; j < kSlots; j += kVectors * kHalf)
    ScoresAt<K, kCount, kVectors>(tile, first, block, j);
}

float MaxOf(const float* s, int n) {
  __m256 max = _mm256_set1_ps(kMinusInf);
  for (int j = 0; j < n; j += kHalf) {
    const __m256 mask = _mm256_castsi256_ps(FirstLanes(n - j));
    max = _mm256_max_ps(_mm256_blendv_ps(max, _mm256_loadu_ps(s + j), mask), max);
  }
  return FoldMax(max);
}

// s[j] becomes Exp(s[j] - max), 0 from n on; returns the sum.
float Exponentials(float* s, int n, float max) {
  __m256 p[kSlots / kHalf];
#pragma GCC unroll 4
  for (int t = 0; t < kSlots / kHalf; ++t) {
    const __m256 e = Exp(_mm256_sub_ps(_mm256_loadu_ps(s + t * kHalf), _mm256_set1_ps(max)));
    p[t] = _mm256_and_ps(e, _mm256_castsi256_ps(FirstLanes(n - t * kHalf)));
    _mm256_storeu_ps(s + t * kHalf, p[t]);
  }
  return FoldSum(_mm256_add_ps(p[0], p[2]), _mm256_add_ps(p[1], p[3]));
}

// Scores to p; max, sum and factor (c of the contract) of the queries from `first` on.
void Softmax(Tile& tile, int first) {
  float sums[kQueries] = {};
  float factor[kQueries] = {};
  for (int i = first; i < tile.n; ++i) {
    const float m = MaxOf(tile.p + i * kSlots, tile.visible[i]);
    const float max = m > tile.max[i] ? m : tile.max[i];
    factor[i] = tile.max[i] - max;
    tile.max[i] = max;
    sums[i] = Exponentials(tile.p + i * kSlots, tile.visible[i], max);
  }
  // Queries below `first` are done: their sums must stay, so their factor becomes Exp(0) = 1 and
  // they add 0.
  for (int i = 0; i < kQueries; i += kHalf) {
    const __m256 c = Exp(_mm256_loadu_ps(factor + i));
    _mm256_storeu_ps(tile.factor + i, c);
    const __m256 sum = _mm256_fmadd_ps(_mm256_loadu_ps(tile.sum + i), c, _mm256_loadu_ps(sums + i));
    _mm256_storeu_ps(tile.sum + i, sum);
  }
}

// Positions [begin, end) of the block; the first of these ranges scales the accumulators by
// `factor`.
struct Range {
  int begin, end;
};

// Dimensions [d, d + 8 kVectors).
template <class V, int kCount, int kVectors>
void ValuesAt(const Tile& tile, int first, const std::byte* block, Range range, int d) {
  const int head_dim = tile.args->head_dim;
  float* out = tile.acc + first * head_dim + d;
  const float* p = tile.p + first * kSlots;
  __m256 acc[kCount][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) {
    const __m256 c = _mm256_set1_ps(range.begin == 0 ? tile.factor[first + i] : 1.0f);
#pragma GCC unroll 8
    for (int t = 0; t < kVectors; ++t)
      acc[i][t] = _mm256_mul_ps(_mm256_loadu_ps(out + i * head_dim + t * kHalf), c);
  }
  for (int j = range.begin; j < range.end; ++j) {
    const int at = j * head_dim + d;
    Prefetch<kVectors * kHalf * V::kBytes>(block + at * V::kBytes + tile.v_ahead);
    __m256 x[kVectors];
#pragma GCC unroll 8
    for (int t = 0; t < kVectors; ++t) {
      x[t] = V::Load(block, at + t * kHalf);
      if constexpr (V::kScaled) {
        const auto* scales = reinterpret_cast<const std::uint16_t*>(block + kSlots * head_dim);
        const float scale = _cvtsh_ss(scales[at / kGroup + t * kHalf / kGroup]);
        x[t] = _mm256_mul_ps(x[t], _mm256_set1_ps(scale));
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      const __m256 w = _mm256_set1_ps(p[i * kSlots + j]);
#pragma GCC unroll 8
      for (int t = 0; t < kVectors; ++t) acc[i][t] = _mm256_fmadd_ps(w, x[t], acc[i][t]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 8
    for (int t = 0; t < kVectors; ++t) _mm256_storeu_ps(out + i * head_dim + t * kHalf, acc[i][t]);
}

// All dimensions from d on, in strides as wide as kVectors allows.
template <class V, int kCount, int kVectors>
void ValuesFrom(const Tile& tile, int first, const std::byte* block, Range range, int d) {
  const int head_dim = tile.args->head_dim;
  for (; d + kVectors * kHalf <= head_dim; d += kVectors * kHalf)
    ValuesAt<V, kCount, kVectors>(tile, first, block, range, d);
  if constexpr (kVectors > 1)
    if (d < head_dim) ValuesFrom<V, kCount, kVectors / 2>(tile, first, block, range, d);
}

template <class V, int kCount>
void Values(const Tile& tile, int first, const std::byte* block) {
  const int shared = tile.visible[first];  // rows are ascending: the first sees least
  ValuesFrom<V, kCount, kAccumulators / kCount>(tile, first, block, {0, shared}, 0);
  for (int i = first + 1; i < first + kCount; ++i)
    if (tile.visible[i] > shared)
      ValuesFrom<V, 1, kAccumulators>(tile, i, block, {shared, tile.visible[i]}, 0);
}

template <class K>
void AllScores(const Tile& tile, int i, const std::byte* block) {
  for (; i + 4 <= tile.n; i += 4) Scores<K, 4>(tile, i, block);
  for (; i + 2 <= tile.n; i += 2) Scores<K, 2>(tile, i, block);
  for (; i < tile.n; ++i) Scores<K, 1>(tile, i, block);
}

template <class V>
void AllValues(const Tile& tile, int i, const std::byte* block) {
  for (; i + 4 <= tile.n; i += 4) Values<V, 4>(tile, i, block);
  for (; i + 2 <= tile.n; i += 2) Values<V, 2>(tile, i, block);
  for (; i < tile.n; ++i) Values<V, 1>(tile, i, block);
}

using Pass = void (*)(const Tile&, int, const std::byte*);
constexpr Pass kScores[tensor::kKvTypes] = {AllScores<F32>, AllScores<F16>, AllScores<BF16>,
                                            AllScores<Q8_0>};
constexpr Pass kValues[tensor::kKvTypes] = {AllValues<F32>, AllValues<F16>, AllValues<BF16>,
                                            AllValues<Q8_0>};

void RunTile(Tile& tile) {
  const AttentionArgs& args = *tile.args;
  const Pass scores = kScores[static_cast<int>(args.k_type)],
             values = kValues[static_cast<int>(args.v_type)];
  for (int i = 0; i < tile.n * args.head_dim; ++i) tile.acc[i] = 0.0f;
  for (int i = 0; i < kQueries; ++i) {
    tile.max[i] = kMinusInf;
    tile.sum[i] = 0.0f;
  }
  int first = 0;  // the first query that sees the block
  for (int begin = 0; begin < tile.length[tile.n - 1]; begin += kSlots) {
    while (tile.length[first] <= begin) ++first;
    for (int i = first; i < tile.n; ++i) {
      const int left = tile.length[i] - begin;
      tile.visible[i] = left < kSlots ? left : kSlots;
    }
    const int next = begin + kSlots < tile.length[tile.n - 1] ? begin + kSlots : begin;
    const std::ptrdiff_t block = args.blocks[begin / kSlots];
    const std::ptrdiff_t distance = args.blocks[next / kSlots] - block;
    const auto k_stride = static_cast<std::ptrdiff_t>(args.k_stride),
               v_stride = static_cast<std::ptrdiff_t>(args.v_stride);
    tile.k_ahead = distance * k_stride;
    tile.v_ahead = distance * v_stride;
    scores(tile, first, args.k + block * k_stride);
    Softmax(tile, first);
    values(tile, first, args.v + block * v_stride);
  }
  for (int i = 0; i < tile.n; ++i) {
    const __m256 factor = _mm256_set1_ps(1.0f / tile.sum[i]);
    const float* acc = tile.acc + i * args.head_dim;
    for (int d = 0; d < args.head_dim; d += kHalf)
      _mm256_storeu_ps(tile.out[i] + d, _mm256_mul_ps(_mm256_loadu_ps(acc + d), factor));
  }
}

}  // namespace

void Attention(const AttentionArgs& args) {
  Tile tile;
  tile.args = &args;
  tile.acc = args.scratch;
  tile.p = tile.acc + kQueries * args.head_dim;
  tile.max = tile.p + kQueries * kSlots;
  tile.sum = tile.max + kQueries;
  tile.factor = tile.sum + kQueries;
  const int n_queries = args.n_rows * args.n_group;
  for (int begin = 0; begin < n_queries; begin += kQueries) {
    tile.n = n_queries - begin < kQueries ? n_queries - begin : kQueries;
    for (int i = 0; i < tile.n; ++i) {
      const int row = (begin + i) / args.n_group, g = (begin + i) % args.n_group;
      tile.q[i] = args.q + row * args.q_stride + g * args.head_dim;
      tile.out[i] = args.out + row * args.out_stride + g * args.head_dim;
      tile.length[i] = args.row_len[row];
    }
    RunTile(tile);
  }
}

}  // namespace foretoken::kernels::avx2
