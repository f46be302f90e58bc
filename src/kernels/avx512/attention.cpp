// SPDX-License-Identifier: Apache-2.0
// Blocks outside, queries inside: a tile of up to kAttentionQueries queries walks the cache blocks
// once, and within a block groups of up to 8 queries share each K and V vector on its way from
// memory (and its conversion to f32).
//   scores   positions in the lanes: 2 vectors per query, q[d] broadcast, d ascending
//   values   dimensions in the lanes: p[j] broadcast, j ascending
#include "kernels/avx512/exp.h"
#include "kernels/avx512/functions.h"
#include "kernels/avx512/lanes.h"

namespace foretoken::kernels::avx512 {
namespace {

constexpr int kSlots = tensor::kKvBlock;
constexpr int kGroup = tensor::kBlock;  // dimensions that share a scale
constexpr int kQueries = kAttentionQueries;
constexpr float kMinusInf = -__builtin_inff();

// What a stored type looks like: Load 16 (Load8: 8, the rest zero) elements from index i on, as
// f32.
struct F32 {
  static constexpr bool kScaled = false;
  static constexpr int kBytes = 4;
  static const float* At(const std::byte* base, std::ptrdiff_t i) {
    return reinterpret_cast<const float*>(base) + i;
  }
  static __m512 Load(const std::byte* base, std::ptrdiff_t i) {
    return _mm512_loadu_ps(At(base, i));
  }
  static __m512 Load8(const std::byte* base, std::ptrdiff_t i) {
    return _mm512_zextps256_ps512(_mm256_loadu_ps(At(base, i)));
  }
};

struct Sixteen {
  static constexpr bool kScaled = false;
  static constexpr int kBytes = 2;
  static __m256i Bits(const std::byte* base, std::ptrdiff_t i) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(base + 2 * i));
  }
  static __m256i Bits8(const std::byte* base, std::ptrdiff_t i) {
    return _mm256_zextsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(base + 2 * i)));
  }
};

struct F16 : Sixteen {
  static __m512 Load(const std::byte* base, std::ptrdiff_t i) {
    return _mm512_cvtph_ps(Bits(base, i));
  }
  static __m512 Load8(const std::byte* base, std::ptrdiff_t i) {
    return _mm512_cvtph_ps(Bits8(base, i));
  }
};

struct BF16 : Sixteen {
  static __m512 Widen(__m256i bits) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static __m512 Load(const std::byte* base, std::ptrdiff_t i) { return Widen(Bits(base, i)); }
  static __m512 Load8(const std::byte* base, std::ptrdiff_t i) { return Widen(Bits8(base, i)); }
};

struct Q8_0 {
  static constexpr bool kScaled = true;
  static constexpr int kBytes = 1;
  static __m512 Load(const std::byte* base, std::ptrdiff_t i) {
    const __m128i q = _mm_loadu_si128(reinterpret_cast<const __m128i*>(base + i));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(q));
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
// processor's prefetcher stops (8 queries of 64 dimensions in f16, cache in memory: 164 us per 4096
// positions without, 113 us with).
template <int kBytes>
[[gnu::always_inline]] inline void Prefetch(const std::byte* address) {
#pragma GCC unroll 8
  for (int i = 0; i < kBytes; i += 64)
    _mm_prefetch(reinterpret_cast<const char*>(address + i), _MM_HINT_T0);
}

// sum[i] += q[i][d] * k[d] for d in [begin, end), in order.
template <class K, int kCount>
[[gnu::always_inline]] inline void AddProducts(const float* const* q, const std::byte* k,
                                               std::ptrdiff_t ahead, int begin, int end,
                                               __m512 (&sum)[kCount][2]) {
  for (int d = begin; d < end; ++d) {
    Prefetch<kSlots * K::kBytes>(k + d * kSlots * K::kBytes + ahead);
    const __m512 k0 = K::Load(k, d * kSlots), k1 = K::Load(k, d * kSlots + kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      const __m512 w = _mm512_set1_ps(q[i][d]);
      sum[i][0] = _mm512_fmadd_ps(w, k0, sum[i][0]);
      sum[i][1] = _mm512_fmadd_ps(w, k1, sum[i][1]);
    }
  }
}

template <int kCount>
[[gnu::always_inline]] inline void Clear(__m512 (&sum)[kCount][2]) {
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
}

template <class K, int kCount>
void Scores(const Tile& tile, int first, const std::byte* block) {
  const int head_dim = tile.args->head_dim;
  const float* const* q = tile.q + first;
  __m512 acc[kCount][2];
  Clear(acc);
  if constexpr (!K::kScaled) {
    AddProducts<K>(q, block, tile.k_ahead, 0, head_dim, acc);
  } else {
    const std::byte* scales = block + kSlots * head_dim;
    for (int d = 0; d < head_dim; d += kGroup, scales += 2 * kSlots) {
      __m512 part[kCount][2];
      Clear(part);
      AddProducts<K>(q, block, tile.k_ahead, d, d + kGroup, part);
      const __m512 s0 = F16::Load(scales, 0), s1 = F16::Load(scales, kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i) {
        acc[i][0] = _mm512_fmadd_ps(part[i][0], s0, acc[i][0]);
        acc[i][1] = _mm512_fmadd_ps(part[i][1], s1, acc[i][1]);
      }
    }
  }
  const __m512 scale = _mm512_set1_ps(tile.args->scale);
  float* s = tile.p + first * kSlots;
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) {
    _mm512_storeu_ps(s + i * kSlots, _mm512_mul_ps(scale, acc[i][0]));
    _mm512_storeu_ps(s + i * kSlots + kLanes, _mm512_mul_ps(scale, acc[i][1]));
  }
}

// Scores to p; max, sum and factor (c of the contract) of the queries from `first` on.
void Softmax(Tile& tile, int first) {
  const __m512 minus_inf = _mm512_set1_ps(kMinusInf);
  __m512 old_max = _mm512_loadu_ps(tile.max);
  for (int i = first; i < tile.n; ++i) {
    const float* s = tile.p + i * kSlots;
    const int n = tile.visible[i];
    const __mmask16 low = FirstLanes(n < kLanes ? n : kLanes),
                    high = FirstLanes(n > kLanes ? n - kLanes : 0);
    const __m512 s0 = _mm512_mask_loadu_ps(minus_inf, low, s);
    const __m512 s1 = _mm512_mask_loadu_ps(minus_inf, high, s + kLanes);
    const float m = FoldMax(_mm512_max_ps(s0, s1));
    tile.max[i] = m > tile.max[i] ? m : tile.max[i];
  }
  const __m512 c = Exp(_mm512_sub_ps(old_max, _mm512_loadu_ps(tile.max)));
  _mm512_storeu_ps(tile.factor, c);
  float sums[kQueries] = {};
  for (int i = first; i < tile.n; ++i) {
    float* s = tile.p + i * kSlots;
    const int n = tile.visible[i];
    const __mmask16 low = FirstLanes(n < kLanes ? n : kLanes),
                    high = FirstLanes(n > kLanes ? n - kLanes : 0);
    const __m512 max = _mm512_set1_ps(tile.max[i]);
    const __m512 p0 = _mm512_maskz_mov_ps(low, Exp(_mm512_sub_ps(_mm512_loadu_ps(s), max)));
    const __m512 p1 =
        _mm512_maskz_mov_ps(high, Exp(_mm512_sub_ps(_mm512_loadu_ps(s + kLanes), max)));
    _mm512_storeu_ps(s, p0);
    _mm512_storeu_ps(s + kLanes, p1);
    sums[i] = FoldSum(_mm512_add_ps(p0, p1));
  }
  const __m512 sum = _mm512_fmadd_ps(_mm512_loadu_ps(tile.sum), c, _mm512_loadu_ps(sums));
  const __mmask16 active = static_cast<__mmask16>(FirstLanes(tile.n) & ~FirstLanes(first));
  _mm512_mask_storeu_ps(tile.sum, active, sum);
}

// Positions [begin, end) of the block; the first of these ranges scales the accumulators by
// `factor`.
struct Range {
  int begin, end;
};

// Dimensions [d, d + 16 kVectors), or 8 where kHalf.
template <class V, int kCount, int kVectors, bool kHalf>
void ValuesAt(const Tile& tile, int first, const std::byte* block, Range range, int d) {
  const int head_dim = tile.args->head_dim;
  const __mmask16 mask = kHalf ? 0xff : 0xffff;
  float* out = tile.acc + first * head_dim + d;
  const float* p = tile.p + first * kSlots;
  __m512 acc[kCount][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) {
    const __m512 c = _mm512_set1_ps(range.begin == 0 ? tile.factor[first + i] : 1.0f);
#pragma GCC unroll 8
    for (int t = 0; t < kVectors; ++t)
      acc[i][t] = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, out + i * head_dim + t * kLanes), c);
  }
  for (int j = range.begin; j < range.end; ++j) {
    __m512 x[kVectors];
    const std::ptrdiff_t at = j * head_dim + d;
    Prefetch<kVectors * kLanes * V::kBytes>(block + at * V::kBytes + tile.v_ahead);
#pragma GCC unroll 8
    for (int t = 0; t < kVectors; ++t) {
      if constexpr (kHalf) {
        x[t] = V::Load8(block, at);
      } else if constexpr (V::kScaled) {
        const auto* scales = reinterpret_cast<const std::uint16_t*>(block + kSlots * head_dim);
        const std::uint16_t scale = scales[at / kGroup + t * kLanes / kGroup];
        x[t] = _mm512_mul_ps(V::Load(block, at + t * kLanes), _mm512_set1_ps(_cvtsh_ss(scale)));
      } else {
        x[t] = V::Load(block, at + t * kLanes);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      const __m512 w = _mm512_set1_ps(p[i * kSlots + j]);
#pragma GCC unroll 8
      for (int t = 0; t < kVectors; ++t) acc[i][t] = _mm512_fmadd_ps(w, x[t], acc[i][t]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 8
    for (int t = 0; t < kVectors; ++t)
      _mm512_mask_storeu_ps(out + i * head_dim + t * kLanes, mask, acc[i][t]);
}

template <class V, int kCount, int kVectors>
void ValuesFrom(const Tile& tile, int first, const std::byte* block, Range range, int d) {
  const int head_dim = tile.args->head_dim;
  for (; d + kVectors * kLanes <= head_dim; d += kVectors * kLanes)
    ValuesAt<V, kCount, kVectors, false>(tile, first, block, range, d);
  if (d == head_dim) return;
  if constexpr (kVectors > 1)
    ValuesFrom<V, kCount, kVectors / 2>(tile, first, block, range, d);
  else if constexpr (!V::kScaled)
    ValuesAt<V, kCount, 1, true>(tile, first, block, range, d);
}

template <class V, int kCount>
void Values(const Tile& tile, int first, const std::byte* block) {
  constexpr int kVectors = 16 / kCount < 8 ? 16 / kCount : 8;
  const int shared = tile.visible[first];  // rows are ascending: the first sees least
  ValuesFrom<V, kCount, kVectors>(tile, first, block, {0, shared}, 0);
  for (int i = first + 1; i < first + kCount; ++i)
    if (tile.visible[i] > shared) ValuesFrom<V, 1, 8>(tile, i, block, {shared, tile.visible[i]}, 0);
}

template <class K>
void AllScores(const Tile& tile, int i, const std::byte* block) {
  for (; i + 8 <= tile.n; i += 8) Scores<K, 8>(tile, i, block);
  for (; i + 4 <= tile.n; i += 4) Scores<K, 4>(tile, i, block);
  for (; i + 2 <= tile.n; i += 2) Scores<K, 2>(tile, i, block);
  for (; i < tile.n; ++i) Scores<K, 1>(tile, i, block);
}

template <class V>
void AllValues(const Tile& tile, int i, const std::byte* block) {
  for (; i + 8 <= tile.n; i += 8) Values<V, 8>(tile, i, block);
  for (; i + 4 <= tile.n; i += 4) Values<V, 4>(tile, i, block);
  for (; i + 2 <= tile.n; i += 2) Values<V, 2>(tile, i, block);
  for (; i < tile.n; ++i) Values<V, 1>(tile, i, block);
}

using Pass = void (*)(const Tile&, int, const std::byte*);
constexpr Pass kScores[tensor::kKvTypes] = {AllScores<F32>, AllScores<F16>, AllScores<BF16>,
                                            AllScores<Q8_0>};
constexpr Pass kValues[tensor::kKvTypes] = {AllValues<F32>, AllValues<F16>, AllValues<BF16>,
                                            AllValues<Q8_0>};

// The block after `begin`, as distances for the prefetches.
void LookAhead(Tile& tile, int begin) {
  const AttentionArgs& args = *tile.args;
  const int next = begin + kSlots < tile.length[tile.n - 1] ? begin + kSlots : begin;
  const std::ptrdiff_t distance = args.blocks[next / kSlots] - args.blocks[begin / kSlots];
  tile.k_ahead = distance * static_cast<std::ptrdiff_t>(args.k_stride);
  tile.v_ahead = distance * static_cast<std::ptrdiff_t>(args.v_stride);
}

// Few queries leave the running softmax bound by latency: one block's maximum, exponentials and sum
// each wait for the one before. So as many blocks as the scores have room for go through each stage
// together; only the maxima, one comparison a block, and the values follow the order of the blocks.
// REQUIRES: all queries see all of the blocks [block, block + count); count * tile.n <= kQueries.
void RunWholeBlocks(Tile& tile, int block, int count) {
  const AttentionArgs& args = *tile.args;
  const Pass scores = kScores[static_cast<int>(args.k_type)],
             values = kValues[static_cast<int>(args.v_type)];
  float *const p = tile.p, *const factor = tile.factor;
  const int n = tile.n, rows = count * n;
  for (int i = 0; i < n; ++i) tile.visible[i] = kSlots;
  for (int b = 0; b < count; ++b) {
    tile.p = p + b * n * kSlots;
    LookAhead(tile, (block + b) * kSlots);
    scores(tile, 0, args.k + args.blocks[block + b] * static_cast<std::ptrdiff_t>(args.k_stride));
  }
  float before[kQueries] = {}, after[kQueries] = {}, sums[kQueries];
  for (int r = 0; r < rows; ++r) {
    const float* s = p + r * kSlots;
    const float m = FoldMax(_mm512_max_ps(_mm512_loadu_ps(s), _mm512_loadu_ps(s + kLanes)));
    before[r] = r < n ? tile.max[r] : after[r - n];
    after[r] = m > before[r] ? m : before[r];
  }
  const __m512 c = Exp(_mm512_sub_ps(_mm512_loadu_ps(before), _mm512_loadu_ps(after)));
  _mm512_storeu_ps(factor, c);
  for (int r = 0; r < rows; ++r) {
    float* s = p + r * kSlots;
    const __m512 max = _mm512_set1_ps(after[r]);
    const __m512 p0 = Exp(_mm512_sub_ps(_mm512_loadu_ps(s), max));
    const __m512 p1 = Exp(_mm512_sub_ps(_mm512_loadu_ps(s + kLanes), max));
    _mm512_storeu_ps(s, p0);
    _mm512_storeu_ps(s + kLanes, p1);
    sums[r] = FoldSum(_mm512_add_ps(p0, p1));
  }
  for (int r = 0; r < rows; ++r) {
    float& sum = tile.sum[r % n];
    sum = _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(sum), _mm_set_ss(factor[r]), _mm_set_ss(sums[r])));
  }
  for (int i = 0; i < n; ++i) tile.max[i] = after[rows - n + i];
  for (int b = 0; b < count; ++b) {
    tile.p = p + b * n * kSlots;
    tile.factor = factor + b * n;
    LookAhead(tile, (block + b) * kSlots);
    values(tile, 0, args.v + args.blocks[block + b] * static_cast<std::ptrdiff_t>(args.v_stride));
  }
  tile.p = p;
  tile.factor = factor;
}

void RunTile(Tile& tile) {
  const AttentionArgs& args = *tile.args;
  const Pass scores = kScores[static_cast<int>(args.k_type)],
             values = kValues[static_cast<int>(args.v_type)];
  for (int i = 0; i < kQueries * args.head_dim; i += kLanes)
    _mm512_storeu_ps(tile.acc + i, _mm512_setzero_ps());
  _mm512_storeu_ps(tile.max, _mm512_set1_ps(kMinusInf));
  _mm512_storeu_ps(tile.sum, _mm512_setzero_ps());
  int begin = 0;
  if (tile.n <= kQueries / 2) {
    const int whole = tile.length[0] / kSlots, together = kQueries / tile.n;
    for (int b = 0; b < whole; b += together)
      RunWholeBlocks(tile, b, whole - b < together ? whole - b : together);
    begin = whole * kSlots;
  }
  int first = 0;  // the first query that sees the block
  for (; begin < tile.length[tile.n - 1]; begin += kSlots) {
    while (tile.length[first] <= begin) ++first;
    for (int i = first; i < tile.n; ++i) {
      const int left = tile.length[i] - begin;
      tile.visible[i] = left < kSlots ? left : kSlots;
    }
    LookAhead(tile, begin);
    const std::ptrdiff_t block = args.blocks[begin / kSlots];
    scores(tile, first, args.k + block * static_cast<std::ptrdiff_t>(args.k_stride));
    Softmax(tile, first);
    values(tile, first, args.v + block * static_cast<std::ptrdiff_t>(args.v_stride));
  }
  for (int i = 0; i < tile.n; ++i) {
    const __m256 factor = _mm256_set1_ps(1.0f / tile.sum[i]);
    const float* acc = tile.acc + i * args.head_dim;
    for (int d = 0; d < args.head_dim; d += 8)
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

}  // namespace foretoken::kernels::avx512
