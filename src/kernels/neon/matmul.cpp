// SPDX-License-Identifier: Apache-2.0
// kernels/neon/matmul.cpp: the 16 outputs of a tile are four vectors of 4; a row block of R rows
// meets each weight vector once.
//
// Quantised: of a run of 32 k, the weights of 4 outputs become 8 vectors of bytes, whatever the
// type, in the range of signed ones (Q8_0 by its top bit turned, which takes its offset away; the
// others are below 64 and keep theirs). Then the rows pass by, two at a time, so that two chains of
// sdot hide each other's latency. The rows are packed before, run by run:
//   PackedRun = rows [R] of { q [32 int8] | d | c }
//   c = -(weight offset) * xs, from which the integer sum starts, or d * xs, which the minimum
//   meets
// Per run, row and 4 outputs: 8 sdot, one conversion, s * xd, one fma, and one fma more for a
// minimum. Q6_K has two c, one for each 16 k, and two products by the scales.
// Registers: 16 sums of 4 rows, 8 weights, 2 integer sums and 4 vectors of activations.
#include <arm_neon.h>

#include "kernels/neon/functions.h"

namespace foretoken::kernels::neon {
namespace {

using tensor::kTileOutputs;

#define FORETOKEN_INLINE inline __attribute__((always_inline))

constexpr int kWidth = 4;  // outputs of a vector
constexpr int kVectors = kTileOutputs / kWidth;

// No load moves across: the compiler would first load the weights of all outputs, or of the next k,
// and spill what it has (71 accesses to the stack in the loop of Q8_0 with 4 rows, 6 with this).
FORETOKEN_INLINE void KeepOrder() {
  asm volatile("" : : : "memory");
}

// Sums of a row block: [R rows][4 vectors].
template <int R>
struct Sums {
  float32x4_t of[R][kVectors];

  FORETOKEN_INLINE void Clear() {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) of[r][v] = vdupq_n_f32(0.0f);
  }
  FORETOKEN_INLINE void Store(const MatmulArgs& a, int row, int tile) const {
    float* y = a.y + row * a.y_stride + std::int64_t{tile} * kTileOutputs;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r, y += a.y_stride)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        float* to = y + v * kWidth;
        vst1q_f32(to, a.accumulate ? vaddq_f32(vld1q_f32(to), of[r][v]) : of[r][v]);
      }
  }
};

// ---- Quantised tiles ----------------------------------------------------------------------------

constexpr int kBlock = tensor::kBlock;
constexpr int kQuantRows = 4;
constexpr int kPackRuns = 1024;  // k up to 32768 is packed once per row block, on the stack

FORETOKEN_INLINE float32x4_t LoadHalves(const std::uint16_t* p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}

// 4 bytes, in the lower half.
FORETOKEN_INLINE uint8x8_t LoadBytes(const void* p) {
  std::uint32_t four;
  __builtin_memcpy(&four, p, sizeof four);
  return vreinterpret_u8_u32(vdup_n_u32(four));
}
FORETOKEN_INLINE float32x4_t LoadUnsigned(const std::uint8_t* p) {
  return vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(LoadBytes(p)))));
}
FORETOKEN_INLINE int32x4_t LoadSigned(const std::int8_t* p) {
  const int8x8_t bytes = vreinterpret_s8_u8(LoadBytes(p));
  return vmovl_s16(vget_low_s16(vmovl_s8(bytes)));
}

// Each byte moved up by kBits, or down where kBits is negative.
template <int kBits>
FORETOKEN_INLINE uint8x16_t Shift(uint8x16_t x) {
  if constexpr (kBits > 0) return vshlq_n_u8(x, kBits);
  if constexpr (kBits < 0) return vshrq_n_u8(x, -kBits);
  return x;
}

// Words 2 i and 2 i + 1 of the weights: the two nibbles of 16 bytes.
template <int i>
FORETOKEN_INLINE void Nibbles(const std::uint8_t (*from)[4], uint8x16_t* q) {
  const uint8x16_t both = vld1q_u8(from[0]);
  q[2 * i] = vandq_u8(both, vdupq_n_u8(15));
  q[2 * i + 1] = vshrq_n_u8(both, 4);
}
FORETOKEN_INLINE void AllNibbles(const std::uint8_t (*from)[kTileOutputs][4], int o,
                                 uint8x16_t* q) {
  Nibbles<0>(from[0] + o, q);
  Nibbles<1>(from[1] + o, q);
  Nibbles<2>(from[2] + o, q);
  Nibbles<3>(from[3] + o, q);
}

// Sets the bits of kMask in q to those of `high`, moved by kBits.
template <int kMask, int kBits>
FORETOKEN_INLINE void AddHigh(uint8x16_t& q, uint8x16_t high) {
  q = vbslq_u8(vdupq_n_u8(kMask), Shift<kBits>(high), q);
}

FORETOKEN_INLINE void FiveBits(const std::uint8_t (*from)[kTileOutputs][4],
                               const std::uint8_t (*qh)[4], int o, uint8x16_t* q) {
  AllNibbles(from, o, q);
  const uint8x16_t high = vld1q_u8(qh[o]);
  AddHigh<16, 4>(q[0], high);
  AddHigh<16, 3>(q[1], high);
  AddHigh<16, 2>(q[2], high);
  AddHigh<16, 1>(q[3], high);
  AddHigh<16, 0>(q[4], high);
  AddHigh<16, -1>(q[5], high);
  AddHigh<16, -2>(q[6], high);
  AddHigh<16, -3>(q[7], high);
}

// Per tile type: runs of 32 k in a tile; what its bytes here have too much; sums per run; whether
// it has minima.
template <int kRunsOf, int kOffsetOf, bool kMinimumOf, int kSumsOf = 1>
struct Traits {
  static constexpr int kRuns = kRunsOf, kOffset = kOffsetOf, kSums = kSumsOf;
  static constexpr bool kMinimum = kMinimumOf;
};

// And of each: the run's weights for the 4 outputs from o on, in 8 vectors.
struct Q8_0 : Traits<1, 0, false> {
  using Tile = tensor::TileQ8_0;
  static FORETOKEN_INLINE void Weights(const Tile& t, int, int o, uint8x16_t* q) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) q[i] = veorq_u8(vld1q_u8(t.q[i][o]), vdupq_n_u8(0x80));
  }
};
struct Q4_0 : Traits<1, 8, false> {
  using Tile = tensor::TileQ4_0;
  static FORETOKEN_INLINE void Weights(const Tile& t, int, int o, uint8x16_t* q) {
    AllNibbles(t.q, o, q);
  }
};
struct Q4_1 : Traits<1, 0, true> {
  using Tile = tensor::TileQ4_1;
  static FORETOKEN_INLINE void Weights(const Tile& t, int, int o, uint8x16_t* q) {
    AllNibbles(t.q, o, q);
  }
};
struct Q5_0 : Traits<1, 16, false> {
  using Tile = tensor::TileQ5_0;
  static FORETOKEN_INLINE void Weights(const Tile& t, int, int o, uint8x16_t* q) {
    FiveBits(t.q, t.qh, o, q);
  }
};
struct Q5_1 : Traits<1, 0, true> {
  using Tile = tensor::TileQ5_1;
  static FORETOKEN_INLINE void Weights(const Tile& t, int, int o, uint8x16_t* q) {
    FiveBits(t.q, t.qh, o, q);
  }
};
struct Q4_K : Traits<8, 0, true> {
  using Tile = tensor::TileQ4_K;
  static FORETOKEN_INLINE void Weights(const Tile& t, int run, int o, uint8x16_t* q) {
    AllNibbles(t.runs[run].q, o, q);
  }
};
struct Q5_K : Traits<8, 0, true> {
  using Tile = tensor::TileQ5_K;
  static FORETOKEN_INLINE void Weights(const Tile& t, int run, int o, uint8x16_t* q) {
    FiveBits(t.runs[run].q, t.runs[run].qh, o, q);
  }
};
struct Q6_K : Traits<8, 32, false, 2> {
  using Tile = tensor::TileQ6_K;
  static FORETOKEN_INLINE void Weights(const Tile& t, int run, int o, uint8x16_t* q) {
    AllNibbles(t.runs[run].q, o, q);
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const uint8x16_t high = vld1q_u8(t.runs[run].qh[h][o]);
      AddHigh<0x30, 4>(q[4 * h], high);
      AddHigh<0x30, 2>(q[4 * h + 1], high);
      AddHigh<0x30, 0>(q[4 * h + 2], high);
      AddHigh<0x30, -2>(q[4 * h + 3], high);
    }
  }
};

// s and m of a run for 4 outputs, and the scales of its integer sums; m is the negative of the
// contract's where the file subtracts its minima.
template <typename Type>
struct Scales {
  FORETOKEN_INLINE Scales(const typename Type::Tile& t, int run, int o) : s(LoadHalves(t.d + o)) {
    if constexpr (Type::kMinimum && Type::kRuns == 1) m = LoadHalves(t.m + o);
    if constexpr (Type::kMinimum && Type::kRuns > 1) {
      s = vmulq_f32(s, LoadUnsigned(t.scale[run] + o));
      m = vmulq_f32(LoadHalves(t.dmin + o), LoadUnsigned(t.minimum[run] + o));
    }
    if constexpr (Type::kSums == 2)
      for (int h = 0; h < 2; ++h) of_sum[h] = LoadSigned(t.scale[run][h] + o);
  }
  float32x4_t s, m;
  int32x4_t of_sum[2];
};

template <int R, typename Type>
struct PackedRun {
  struct Row {
    std::int8_t q[kBlock];
    float d;
    union {
      std::int32_t c[Type::kSums];
      float xs;
    };
  } rows[R];
};

template <int R, typename Type>
void Pack(const MatmulArgs& a, int row, int run, int n, PackedRun<R, Type>* out) {
  const std::int64_t n_runs = a.k / kBlock;
  for (int r = 0; r < R; ++r) {
    const std::int64_t first = (row + r) * n_runs + run;
    for (int b = 0; b < n; ++b) {
      auto& to = out[b].rows[r];
      __builtin_memcpy(to.q, a.xq + (first + b) * kBlock, kBlock);
      to.d = a.xd[first + b];
      const std::int32_t* xs = a.xs + 2 * (first + b);
      if constexpr (Type::kMinimum) {
        to.xs = to.d * static_cast<float>(xs[1]);
      } else if constexpr (Type::kSums == 1) {
        to.c[0] = -Type::kOffset * xs[1];
      } else {
        to.c[0] = -Type::kOffset * xs[0];
        to.c[1] = -Type::kOffset * (xs[1] - xs[0]);
      }
    }
  }
}

// part[r] += w . word of x[r]
template <int kRows, int kWord>
FORETOKEN_INLINE void Dot(uint8x16_t w, const int8x16_t* x, int32x4_t* part) {
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r)
    part[r] = vdotq_laneq_s32(part[r], vreinterpretq_s8_u8(w), x[r], kWord);
}

// The products of one half of the run: 4 words of activations.
template <int kRows, typename Row>
FORETOKEN_INLINE void DotHalf(const uint8x16_t* q, const Row* row, int h, int32x4_t* part) {
  int8x16_t x[kRows];
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) x[r] = vld1q_s8(row[r].q + h * kBlock / 2);
  Dot<kRows, 0>(q[4 * h], x, part);
  Dot<kRows, 1>(q[4 * h + 1], x, part);
  Dot<kRows, 2>(q[4 * h + 2], x, part);
  Dot<kRows, 3>(q[4 * h + 3], x, part);
}

template <typename Type, int kRows, typename Row>
FORETOKEN_INLINE void StartSums(const Row* row, int h, int32x4_t* part) {
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) part[r] = vdupq_n_s32(Type::kOffset == 0 ? 0 : row[r].c[h]);
}

// isum of kRows rows side by side.
template <typename Type, int kRows, typename Row>
FORETOKEN_INLINE void IntegerSums(const uint8x16_t* q, const Row* row, const int32x4_t* scale,
                                  int32x4_t* sum) {
  StartSums<Type, kRows>(row, 0, sum);
  DotHalf<kRows>(q, row, 0, sum);
  if constexpr (Type::kSums == 1) {
    DotHalf<kRows>(q, row, 1, sum);
  } else {
    int32x4_t last[kRows];
    StartSums<Type, kRows>(row, 1, last);
    DotHalf<kRows>(q, row, 1, last);
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r)
      sum[r] = vmlaq_s32(vmulq_s32(sum[r], scale[0]), last[r], scale[1]);
  }
}

template <typename Type, int kRows, typename Row>
FORETOKEN_INLINE void AddRows(const uint8x16_t* q, const Scales<Type>& scales, const Row* row,
                              float32x4_t (*acc)[kVectors], int v) {
  int32x4_t sum[kRows];
  IntegerSums<Type, kRows>(q, row, scales.of_sum, sum);
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
    float32x4_t& to = acc[r][v];
    to = vfmaq_f32(to, vcvtq_f32_s32(sum[r]), vmulq_n_f32(scales.s, row[r].d));
    if constexpr (Type::kMinimum && Type::kRuns == 1) to = vfmaq_n_f32(to, scales.m, row[r].xs);
    if constexpr (Type::kMinimum && Type::kRuns > 1) to = vfmsq_n_f32(to, scales.m, row[r].xs);
  }
}

template <int R, typename Type>
FORETOKEN_INLINE void AddRun(const typename Type::Tile& w, int run, const PackedRun<R, Type>& x,
                             Sums<R>& acc) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    KeepOrder();
    uint8x16_t q[8];
    Type::Weights(w, run, v * kWidth, q);
    const Scales<Type> scales(w, run, v * kWidth);
#pragma GCC unroll 4
    for (int r = 0; r + 2 <= R; r += 2) AddRows<Type, 2>(q, scales, x.rows + r, acc.of + r, v);
    if constexpr (R % 2 == 1) AddRows<Type, 1>(q, scales, x.rows + R - 1, acc.of + R - 1, v);
  }
}

template <int R, typename Type>
FORETOKEN_INLINE void QuantStrip(const typename Type::Tile* w, const PackedRun<R, Type>* x,
                                 int n_runs, Sums<R>& acc) {
  for (; n_runs > 0; n_runs -= Type::kRuns, ++w)
    for (int run = 0; run < Type::kRuns; ++run, ++x) AddRun<R, Type>(*w, run, *x, acc);
}

template <int R, typename Type>
struct QuantRows {
  static __attribute__((noinline)) void Run(const MatmulArgs& a, int row, int tile_begin,
                                            int tile_end) {
    using Tile = typename Type::Tile;
    PackedRun<R, Type> x[kPackRuns];
    const int n_runs = a.k / kBlock;
    const bool packs_once = n_runs <= kPackRuns;
    if (packs_once) Pack(a, row, 0, n_runs, x);
    for (int tile = tile_begin; tile < tile_end; ++tile) {
      const Tile* w =
          static_cast<const Tile*>(a.tiles) + std::int64_t{tile} * (n_runs / Type::kRuns);
      Sums<R> acc;
      acc.Clear();
      for (int b = 0; b < n_runs; b += kPackRuns) {
        const int n = n_runs - b < kPackRuns ? n_runs - b : kPackRuns;
        if (!packs_once) Pack(a, row, b, n, x);
        QuantStrip<R, Type>(w + b / Type::kRuns, x, n, acc);
      }
      acc.Store(a, row, tile);
    }
  }
};

// ---- Float tiles --------------------------------------------------------------------------------

constexpr int kFloatRows = 5;  // 20 sums, 4 weights and the activations: 29 of 32 registers

struct F32 {
  using Storage = float;
  static FORETOKEN_INLINE float32x4_t Load(const float* w) { return vld1q_f32(w); }
};
struct F16 {
  using Storage = std::uint16_t;
  static FORETOKEN_INLINE float32x4_t Load(const std::uint16_t* w) { return LoadHalves(w); }
};
struct BF16 {
  using Storage = std::uint16_t;
  static FORETOKEN_INLINE float32x4_t Load(const std::uint16_t* w) {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(w), 16));
  }
};

// One k: acc[r] += w * x[r].
template <int R, typename Type>
FORETOKEN_INLINE void FloatStep(const typename Type::Storage* w, const float* x,
                                std::int64_t x_stride, Sums<R>& acc) {
  KeepOrder();
  float32x4_t q[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) q[v] = Type::Load(w + v * kWidth);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const float xr = x[r * x_stride];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) acc.of[r][v] = vfmaq_n_f32(acc.of[r][v], q[v], xr);
  }
}

// T strips side by side, so that few rows still give enough independent chains of fma.
template <int T, int R, typename Type>
FORETOKEN_INLINE void FloatStrips(const MatmulArgs& a, int row, int tile) {
  const std::int64_t strip = std::int64_t{a.k} * kTileOutputs;
  const auto* w = static_cast<const typename Type::Storage*>(a.tiles) + tile * strip;
  const float* x = a.x + row * a.x_stride;
  Sums<R> acc[T];
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) acc[t].Clear();
  for (int k = 0; k < a.k; ++k, ++x, w += kTileOutputs) {
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) FloatStep<R, Type>(w + t * strip, x, a.x_stride, acc[t]);
  }
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) acc[t].Store(a, row, tile + t);
}

template <int R, typename Type>
struct FloatRows {
  static __attribute__((noinline)) void Run(const MatmulArgs& a, int row, int tile_begin,
                                            int tile_end) {
    constexpr int T = R == 1 ? 4 : R == 2 ? 2 : 1;
    int tile = tile_begin;
    for (; tile + T <= tile_end; tile += T) FloatStrips<T, R, Type>(a, row, tile);
    for (; tile < tile_end; ++tile) FloatStrips<1, R, Type>(a, row, tile);
  }
};

// ---- Rows and tiles -----------------------------------------------------------------------------

using RowsFunction = void (*)(const MatmulArgs& a, int row, int tile_begin, int tile_end);

// Cuts the rows into even blocks of at most max_rows. Where there are several, they take turns on a
// group of strips that stays in the second-level cache, so that memory is read once.
void ForRowBlocks(const MatmulArgs& a, std::int64_t strip_bytes, const RowsFunction* by_rows,
                  int max_rows) {
  const int n_row_blocks = (a.n_rows + max_rows - 1) / max_rows;
  int group = a.tile_end - a.tile_begin;
  if (n_row_blocks > 1) {
    const std::int64_t fit = (std::int64_t{256} << 10) / (strip_bytes + 1);
    group = fit < 4 ? 4 : static_cast<int>(fit);
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

template <typename Type>
void MatmulQuantised(const MatmulArgs& a) {
  static constexpr RowsFunction kByRows[kQuantRows] = {
      QuantRows<1, Type>::Run, QuantRows<2, Type>::Run, QuantRows<3, Type>::Run,
      QuantRows<4, Type>::Run};
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(typename Type::Tile));
  ForRowBlocks(a, a.k / kBlock / Type::kRuns * kBytes, kByRows, kQuantRows);
}

template <typename Type>
void MatmulFloat(const MatmulArgs& a) {
  static constexpr RowsFunction kByRows[kFloatRows] = {
      FloatRows<1, Type>::Run, FloatRows<2, Type>::Run, FloatRows<3, Type>::Run,
      FloatRows<4, Type>::Run, FloatRows<5, Type>::Run};
  constexpr std::int64_t kStep =
      kTileOutputs * static_cast<std::int64_t>(sizeof(typename Type::Storage));
  ForRowBlocks(a, a.k * kStep, kByRows, kFloatRows);
}

}  // namespace

void MatmulF32(const MatmulArgs& a) {
  MatmulFloat<F32>(a);
}
void MatmulF16(const MatmulArgs& a) {
  MatmulFloat<F16>(a);
}
void MatmulBF16(const MatmulArgs& a) {
  MatmulFloat<BF16>(a);
}
void MatmulQ8_0(const MatmulArgs& a) {
  MatmulQuantised<Q8_0>(a);
}
void MatmulQ4_0(const MatmulArgs& a) {
  MatmulQuantised<Q4_0>(a);
}
void MatmulQ4_1(const MatmulArgs& a) {
  MatmulQuantised<Q4_1>(a);
}
void MatmulQ5_0(const MatmulArgs& a) {
  MatmulQuantised<Q5_0>(a);
}
void MatmulQ5_1(const MatmulArgs& a) {
  MatmulQuantised<Q5_1>(a);
}
void MatmulQ4_K(const MatmulArgs& a) {
  MatmulQuantised<Q4_K>(a);
}
void MatmulQ5_K(const MatmulArgs& a) {
  MatmulQuantised<Q5_K>(a);
}
void MatmulQ6_K(const MatmulArgs& a) {
  MatmulQuantised<Q6_K>(a);
}

}  // namespace foretoken::kernels::neon
