// SPDX-License-Identifier: Apache-2.0
// Blocks outside, queries inside: a tile of up to kAttentionQueries queries walks the cache blocks
// once, and within a block groups of up to 4 queries share each K and V vector on its way from
// memory (and its conversion to f32).
//   scores   positions in the lanes, q[d] broadcast, d ascending
//   values   dimensions in the lanes, p[j] broadcast, j ascending
#include "kernels/neon/exp.h"
#include "kernels/neon/functions.h"
#include "kernels/neon/lanes.h"

namespace foretoken::kernels::neon {
namespace {

constexpr int kSlots = tensor::kKvBlock;
constexpr int kGroup = tensor::kBlock;  // dimensions that share a scale
constexpr int kQueries = kAttentionQueries;
constexpr int kAccumulators = 16;  // vectors that a loop keeps in registers
constexpr float kMinusInf = -__builtin_inff();

// What a stored type looks like: Load 4 n elements from index i on, as f32, to n vectors.
struct F32 {
  static constexpr bool kScaled = false;
  static constexpr int kBytes = 4;
  template <int n>
  [[gnu::always_inline]] static void Load(const std::byte* base, std::ptrdiff_t i, float32x4_t* x) {
    const float* from = reinterpret_cast<const float*>(base) + i;
#pragma GCC unroll 16
    for (int t = 0; t < n; ++t) x[t] = vld1q_f32(from + t * kWidth);
  }
};

struct F16 {
  static constexpr bool kScaled = false;
  static constexpr int kBytes = 2;
  template <int n>
  [[gnu::always_inline]] static void Load(const std::byte* base, std::ptrdiff_t i, float32x4_t* x) {
    const auto* from = reinterpret_cast<const std::uint16_t*>(base) + i;
#pragma GCC unroll 16
    for (int t = 0; t < n; ++t)
      x[t] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from + t * kWidth)));
  }
};

struct BF16 {
  static constexpr bool kScaled = false;
  static constexpr int kBytes = 2;
  template <int n>
  [[gnu::always_inline]] static void Load(const std::byte* base, std::ptrdiff_t i, float32x4_t* x) {
    const auto* from = reinterpret_cast<const std::uint16_t*>(base) + i;
#pragma GCC unroll 16
    for (int t = 0; t < n; ++t)
      x[t] = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(from + t * kWidth), 16));
  }
};

// n is even here: head_dim is a multiple of 32.
struct Q8_0 {
  static constexpr bool kScaled = true;
  static constexpr int kBytes = 1;
  template <int n>
  [[gnu::always_inline]] static void Load(const std::byte* base, std::ptrdiff_t i, float32x4_t* x) {
    const auto* from = reinterpret_cast<const std::int8_t*>(base) + i;
#pragma GCC unroll 8
    for (int t = 0; t + 2 <= n; t += 2) {
      const int16x8_t words = vmovl_s8(vld1_s8(from + t * kWidth));
      x[t] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(words)));
      x[t + 1] = vcvtq_f32_s32(vmovl_high_s16(words));
    }
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
  int visible[kQueries];      // of the present block
  float *acc, *p;             // [kQueries, head_dim], [kQueries, 32]
  float *max, *sum, *factor;  // [kQueries]
};

// sum[i][t] += q[i][d] * k[d][4 t ...] for d in [begin, end), in order.
template <class K, int kCount, int kWide>
[[gnu::always_inline]] inline void AddProducts(const float* const* q, const std::byte* k, int begin,
                                               int end, float32x4_t (&sum)[kCount][kWide]) {
  for (int d = begin; d < end; ++d) {
    float32x4_t x[kWide];
    K::template Load<kWide>(k, d * kSlots, x);
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 16
      for (int t = 0; t < kWide; ++t) sum[i][t] = vfmaq_n_f32(sum[i][t], x[t], q[i][d]);
  }
}

template <int kCount, int kWide>
[[gnu::always_inline]] inline void Clear(float32x4_t (&sum)[kCount][kWide]) {
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 16
    for (int t = 0; t < kWide; ++t) sum[i][t] = vdupq_n_f32(0.0f);
}

// The scores of positions [j, j + 4 kWide).
template <class K, int kCount, int kWide>
void ScoresAt(const Tile& tile, int first, const std::byte* block, int j) {
  const int head_dim = tile.args->head_dim;
  const float* const* q = tile.q + first;
  float32x4_t acc[kCount][kWide];
  Clear(acc);
  if constexpr (!K::kScaled) {
    AddProducts<K>(q, block + j * K::kBytes, 0, head_dim, acc);
  } else {
    const std::byte* scales = block + kSlots * head_dim;
    for (int d = 0; d < head_dim; d += kGroup, scales += kSlots * F16::kBytes) {
      float32x4_t part[kCount][kWide];
      Clear(part);
      AddProducts<K>(q, block + j * K::kBytes, d, d + kGroup, part);
      float32x4_t scale[kWide];
      F16::Load<kWide>(scales, j, scale);
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 16
        for (int t = 0; t < kWide; ++t) acc[i][t] = vfmaq_f32(acc[i][t], part[i][t], scale[t]);
    }
  }
  float* s = tile.p + first * kSlots + j;
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 16
    for (int t = 0; t < kWide; ++t)
      vst1q_f32(s + i * kSlots + t * kWidth, vmulq_n_f32(acc[i][t], tile.args->scale));
}

template <class K, int kCount>
void Scores(const Tile& tile, int first, const std::byte* block) {
  // A scaled type keeps two sums of each score.
  constexpr int kFit = kAccumulators / kCount / (K::kScaled ? 2 : 1);
  constexpr int kWide = kFit < kSlots / kWidth ? kFit : kSlots / kWidth;
  for (int j = 0; j < kSlots; j += kWide * kWidth)
    ScoresAt<K, kCount, kWide>(tile, first, block, j);
}

float MaxOf(const float* s, int n) {
  float32x4_t max = vdupq_n_f32(kMinusInf);
  for (int j = 0; j < n; j += kWidth) {
    const float32x4_t seen = vbslq_f32(FirstLanes(n - j), vld1q_f32(s + j), max);
    max = LargerOr(seen, max);
  }
  return vmaxvq_f32(max);
}

// s[j] becomes Exp(s[j] - max), 0 from n on; returns the sum.
float Exponentials(float* s, int n, float max) {
  Sixteen p[kSlots / kLanes];
  for (int h = 0; h < kSlots / kLanes; ++h) {
    p[h] = Load(s + h * kLanes);
    for (int t = 0; t < kVectors; ++t) p[h].v[t] = vsubq_f32(p[h].v[t], vdupq_n_f32(max));
    Exp(p[h].v);
    for (int t = 0; t < kVectors; ++t)
      p[h].v[t] = Masked(p[h].v[t], FirstLanes(n - h * kLanes - t * kWidth));
    Store(p[h], s + h * kLanes);
  }
  for (int t = 0; t < kVectors; ++t) p[0].v[t] = vaddq_f32(p[0].v[t], p[1].v[t]);
  return FoldSum(p[0]);
}

// Scores to p; max, sum and factor (c of the contract) of the queries from `first` on.
void Softmax(Tile& tile, int first) {
  static_assert(kQueries == kLanes);
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
  Sixteen c = Load(factor), sum = Load(tile.sum);
  const Sixteen added = Load(sums);
  Exp(c.v);
  for (int t = 0; t < kVectors; ++t) sum.v[t] = vfmaq_f32(added.v[t], sum.v[t], c.v[t]);
  Store(c, tile.factor);
  Store(sum, tile.sum);
}

// Positions [begin, end) of the block; the first of these ranges scales the accumulators by
// `factor`.
struct Range {
  int begin, end;
};

// 4 kWide dimensions of one position from d on; they share a scale.
template <class V, int kWide>
[[gnu::always_inline]] inline void LoadValues(const std::byte* block, int head_dim, int j, int d,
                                              float32x4_t (&x)[kWide]) {
  static_assert(kGroup % (kWide * kWidth) == 0);
  V::template Load<kWide>(block, j * head_dim + d, x);
  if constexpr (V::kScaled) {
    const auto* scales = reinterpret_cast<const std::uint16_t*>(block + kSlots * head_dim);
    const auto group = static_cast<unsigned>(j * head_dim + d) / kGroup;
    const float32x4_t scale = vcvt_f32_f16(vreinterpret_f16_u16(vld1_dup_u16(scales + group)));
#pragma GCC unroll 16
    for (int t = 0; t < kWide; ++t) x[t] = vmulq_f32(x[t], scale);
  }
}

// Dimensions [d, d + 4 kWide).
template <class V, int kCount, int kWide>
void ValuesAt(const Tile& tile, int first, const std::byte* block, Range range, int d) {
  const int head_dim = tile.args->head_dim;
  float* out = tile.acc + first * head_dim + d;
  const float* p = tile.p + first * kSlots;
  float32x4_t acc[kCount][kWide];
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) {
    const float c = range.begin == 0 ? tile.factor[first + i] : 1.0f;
#pragma GCC unroll 16
    for (int t = 0; t < kWide; ++t)
      acc[i][t] = vmulq_n_f32(vld1q_f32(out + i * head_dim + t * kWidth), c);
  }
  for (int j = range.begin; j < range.end; ++j) {
    float32x4_t x[kWide];
    LoadValues<V>(block, head_dim, j, d, x);
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 16
      for (int t = 0; t < kWide; ++t) acc[i][t] = vfmaq_n_f32(acc[i][t], x[t], p[i * kSlots + j]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 16
    for (int t = 0; t < kWide; ++t) vst1q_f32(out + i * head_dim + t * kWidth, acc[i][t]);
}

// All dimensions from d on, in strides as wide as kWide allows.
template <class V, int kCount, int kWide>
void ValuesFrom(const Tile& tile, int first, const std::byte* block, Range range, int d) {
  const int head_dim = tile.args->head_dim;
  for (; d + kWide * kWidth <= head_dim; d += kWide * kWidth)
    ValuesAt<V, kCount, kWide>(tile, first, block, range, d);
  if constexpr (kWide > (V::kScaled ? 2 : 1))
    if (d < head_dim) ValuesFrom<V, kCount, kWide / 2>(tile, first, block, range, d);
}

template <class V, int kCount>
void Values(const Tile& tile, int first, const std::byte* block) {
  constexpr int kOne = kAccumulators / 2;  // vectors of a lone query
  const int shared = tile.visible[first];  // rows are ascending: the first sees least
  constexpr int kWide = kCount == 1 ? kOne : kAccumulators / kCount;
  ValuesFrom<V, kCount, kWide>(tile, first, block, {0, shared}, 0);
  for (int i = first + 1; i < first + kCount; ++i)
    if (tile.visible[i] > shared)
      ValuesFrom<V, 1, kOne>(tile, i, block, {shared, tile.visible[i]}, 0);
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
    const auto block = static_cast<std::size_t>(args.blocks[begin / kSlots]);
    scores(tile, first, args.k + block * args.k_stride);
    Softmax(tile, first);
    values(tile, first, args.v + block * args.v_stride);
  }
  for (int i = 0; i < tile.n; ++i) {
    const float factor = 1.0f / tile.sum[i];
    const float* acc = tile.acc + i * args.head_dim;
    for (int d = 0; d < args.head_dim; d += kWidth)
      vst1q_f32(tile.out[i] + d, vmulq_n_f32(vld1q_f32(acc + d), factor));
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

}  // namespace foretoken::kernels::neon
