// SPDX-License-Identifier: Apache-2.0
// kernels/kernels.h: the arithmetic of foretoken as a table of functions, one table per instruction
// set, and their contracts.
//
// CANONICAL ARITHMETIC. Every function here is defined to the bit: the order of each sum, each
// rounding, each fused multiply-add (written fma below, one rounding) is stated, and the table of
// every instruction set gives exactly those bits. So
//   - a row's result never depends on how many rows, tiles or threads share the pass (the promise
//   that speculation rests on);
//   - all instruction sets agree bit for bit, and scalar is the oracle of the others.
// Where a sum says "lanes", sum[i mod 16] accumulates element i in increasing order of i, and the
// 16 sums are then folded 16 -> 8 -> 4 -> 2 -> 1 by adding the upper half to the lower half (lane j
// += lane j + width/2). Missing elements of the last group leave their lane untouched.
//
// EXP. Exp(x) on f32, within 2 ulp on [-87.3, 88.3]; the same sequence everywhere:
//   x < -87.33654 gives 0 (also -inf);  x > 88.37626 is taken as 88.37626
//   n = fma(x, 1.44269504, 12582912.0) - 12582912.0                                        (nearest
//   integer, by the magic constant) r = fma(n, -0.693359375, x);  r = fma(n, 2.12194440e-4, r) y
//   = 1.9875691500e-4;  y = fma(y, r, c) for c
//   in 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1 y =
//   fma(y, r * r, r) + 1;  result = y * 2^n (2^n built from exponent bits)             (Cephes
//   expf)
//
// LOG. Log(x) on f32, within 2 ulp for normal x > 0; the same sequence everywhere:
//   e = (bits(x) - bits(0.70710677)) >> 23 (arithmetic);  m = x * 2^-e, in [0.707, 1.414);  r = m -
//   1;  z = r * r;  y = 7.0376836292e-2;  y = fma(y, r, c) for c in -1.1514610310e-1,
//   1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1,
//   -2.4999993993e-1, 3.3333331174e-1
//   y = (y * r) * z;  y = fma(e, -2.12194440e-4, y);  y = fma(z, -0.5, y);
//   result = fma(e, 0.693359375, r + y)                                            (Cephes logf)
//
// RACE. The exponential race that draws a token: the winner is the x of the lowest score, the
// lowest such x; with E_x exponential of rate 1, x wins with probability p[x] / sum of p.
//   w = word (x / 16) mod 4 of Philox4x32-10({counter[0], counter[1], counter[2], b}, key),
//       b = 16 (x / 64) + x mod 16: so the 64 tokens of 16 blocks need no shuffle
//   v = fma(float(w >> 16), 65536, float(w & 65535) + 0.5) * 2^-32;  u = the same of ~w, which is
//       1 - v: both have all their bits, where w is small and where it is large
//   E = -ln(1 - v) = -(LOG of u), but for v < 0.29289323 with e = 0 and r = -v
//   score = E / p[x], for p[x] > 0 alone
// As E >= v >= 2^-33, most tokens are seen to lose without E and many without their w: the other
// tables leave those out. The winner is the same.
//
// All functions are noexcept by nature, allocate nothing, and take non-overlapping buffers unless
// they say so. Pointers need the alignment of their elements, no more; strides are in elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/block_layout.h"

namespace foretoken::kernels {

// y[row, 16 t + o] for tiles t in [tile_begin, tile_end). All 16 lanes of a tile are written, so
// y_stride >= 16 * n_tiles.
//
// Float tiles (F32, F16, BF16), reading x:    acc = 0; for k ascending: acc = fma(w[k][o],
// x[row][k], acc)
// Quantised tiles, reading xq:                acc = 0; for runs b of 32 k ascending:
//      isum  exact in int32: the sum of q * xq over the run, q the integer weights (less their
//            offset, where the tile has one);
//            Q6_K: scale[0][o] * (its first 16 k) + scale[1][o] * (its last 16): below 2^24
//      s     f32(d[o]); Q4_K, Q5_K: f32(d[o]) * scale[o], which is exact
//      acc = fma(float(isum), s * xd[row][b], acc)
//   and, where the type has minima (Q4_1, Q5_1; Q4_K, Q5_K), right after it
//      acc = fma(m, xd[row][b] * float(xs[row][b][1]), acc), m = f32(m[o]) or, exact,
//            -(f32(dmin[o]) * minimum[o])
// then y = acc, or y = y + acc where accumulate is set.
struct MatmulArgs {
  const void* tiles;  // strips of all n_tiles, contiguous
  int k;              // inner size, a multiple of tensor::TileValues
  int tile_begin, tile_end;
  int n_rows;      // >= 1
  const float* x;  // [n_rows, x_stride]              float tiles only
  std::int64_t x_stride;
  const std::int8_t* xq;  // [n_rows, k]                     quantised tiles only
  const float* xd;        // [n_rows, k / 32] scales
  const std::int32_t*
      xs;    // [n_rows, k / 32, 2] sums of xq over the first 16 of each block, and over all 32
  float* y;  // [n_rows, y_stride]
  std::int64_t y_stride;
  bool accumulate;
};

// One head of keys and values (a "KV head") against the rows of one sequence. Query g of row r sits
// at q + r * q_stride + g * head_dim; its result goes to out + r * out_stride + g * head_dim. Row r
// sees positions [0, row_len[r]). Queries may be processed in any grouping. For each query, over
// the cache blocks of 32 positions in order:
//   s[j] = scale * dot_j, dot_j: acc = 0; for d ascending: acc = fma(q[d], k[d][j], acc)
//          (q8_0: for each 32 d: t likewise over int8 values as f32; acc = fma(t, f32(kscale[d /
//          32][j]), acc))
//   m' = max(m, max of s over the visible j);  c = Exp(m - m')  (m starts at -inf);  p[j] =
//   Exp(s[j] - m'), 0 where not visible l = fma(l, c, sum p), the sum over 32 elements by lanes
//   acc[d] = acc[d] * c; for visible j ascending: acc[d] = fma(p[j], v[j][d], acc[d])
//          (q8_0: v = float(int8) * f32(vscale[j][d / 32]), rounded)
// and at the end out[d] = acc[d] * (1 / l). Positions that are not visible are never read into a
// result, whatever they hold.
struct AttentionArgs {
  const float* q;
  std::int64_t q_stride;
  float* out;
  std::int64_t out_stride;
  int n_rows, n_group, head_dim;  // head_dim a multiple of 8 (of 32 where a type is q8_0)
  float scale;
  const std::int32_t* row_len;  // [n_rows], each >= 1, ascending
  const std::int32_t* blocks;   // block ids of the sequence, in order of position
  const std::byte* k;           // block id i of this layer and head starts at k + i * k_stride
  std::size_t k_stride;         // bytes
  const std::byte* v;
  std::size_t v_stride;
  tensor::KvType k_type, v_type;
  float* scratch;  // AttentionScratchFloats(head_dim) floats of the calling thread
};
// Queries that one call works on at a time; scratch holds [kAttentionQueries][head_dim + 2 * 32 +
// 16] floats.
inline constexpr int kAttentionQueries = 16;
constexpr std::size_t AttentionScratchFloats(int head_dim) {
  return std::size_t{kAttentionQueries} * static_cast<std::size_t>(head_dim + 2 * 32 + 16);
}

// Of one race: a block of noise is Philox4x32-10 of counter, with the block's number as fourth
// word, under key.
struct RaceNoise {
  std::uint32_t counter[3];
  std::uint32_t key[2];
};

enum class Finiteness : std::uint32_t { kFinite, kMinusInfinity, kNotANumber };

// Of the largest bit patterns, compared as signed and as unsigned numbers: those of +infinity and
// NaN with a plus are from 0x7f800000 on, those of -infinity and NaN with a minus from 0xff800000.
// Static: each instruction set has a copy of its own.
static constexpr Finiteness FinitenessOf(std::int32_t most_signed, std::uint32_t most_unsigned) {
  if (most_signed >= 0x7f800000 || most_unsigned > 0xff800000u) return Finiteness::kNotANumber;
  return most_unsigned == 0xff800000u ? Finiteness::kMinusInfinity : Finiteness::kFinite;
}

struct Kernels {
  const char* isa;  // "scalar", "avx2", "amx", ...: see dispatch.h

  // -- weights
  // ------------------------------------------------------------------------------------------------------------
  void (*matmul[tensor::kTileTypes])(const MatmulArgs&);

  // Blocks of 32: amax = max |x|, taken as 0 below 2^-100 (so that 127 / amax is finite); d = amax
  // / 127; id = amax > 0 ? 127 / amax : 0; q = x * id rounded to nearest even; xs = {sum of the
  // first 16 q, sum of all 32}. x: [n_rows, x_stride] -> xq [n_rows, k], xd [n_rows, k / 32], xs
  // [n_rows, k / 32, 2]. k a multiple of 32. Where a value of the block is NaN or infinite, d is
  // too, and q and xs are anything: what is wrong with a row must show in all that is computed of
  // it.
  void (*quantize)(const float* x, std::int64_t x_stride, int n_rows, int k, std::int8_t* xq,
                   float* xd, std::int32_t* xs);

  // -- between the matrices
  // -----------------------------------------------------------------------------------------------
  // ss = sum of x[i] * x[i] by lanes, each step fma(x, x, lane); y[i] = (x[i] * (1 / sqrt(ss / n +
  // eps))) * weight[i]. y may be x.
  void (*rms_norm)(const float* x, const float* weight, int n, float eps, float* y);

  // Rotates n_heads heads of head_dim in place, their first n_rot dimensions (even). c, s: [n_rot /
  // 2]. Pairs (2 i, 2 i + 1) where interleaved, else (i, i + n_rot / 2):  a' = fma(a, c, -(b * s));
  // b' = fma(a, s, b * c)
  void (*rope)(float* x, int n_heads, int head_dim, int n_rot, bool interleaved, const float* c,
               const float* s);

  // y[i] = (g[i] / (1 + Exp(-g[i]))) * u[i]. y may be g or u.
  void (*silu_mul)(const float* g, const float* u, int n, float* y);

  // -- cache
  // --------------------------------------------------------------------------------------------------------------
  // Writes one position (slot in [0, 32)) of one head into its block. f16 and bf16 round to nearest
  // even; q8_0: per 32 dimensions amax / 127 rounded to f16 is the scale d, q = x / f32(d) rounded
  // to nearest even and clamped to +-127 (0 where d is 0); d is NaN or infinite where a value of x
  // is, and q is then anything.
  void (*store_k[tensor::kKvTypes])(const float* x, int head_dim, int slot, void* block);
  void (*store_v[tensor::kKvTypes])(const float* x, int head_dim, int slot, void* block);
  void (*attention)(const AttentionArgs&);

  // -- vocabulary-wide passes (n of any size)
  // ------------------------------------------------------------------------------- Index of the
  // largest value, the lowest such index; NaN never wins; 0 if nothing is larger than -inf.
  std::int32_t (*argmax)(const float* x, int n);
  // Largest value, NaN ignored; -inf for n = 0; a zero is +0 (in block_max too).
  float (*max)(const float* x, int n);
  // p[i] = Exp((x[i] - max) * inv_temperature); returns the sum of p by lanes, in double. p may be
  // x.
  double (*exp_sum)(const float* x, int n, float max, float inv_temperature, float* p);
  // x[i] *= factor.
  void (*scale)(float* x, int n, float factor);
  // The worst that stands in x: kFinite, kMinusInfinity, or kNotANumber for NaN and +infinity.
  Finiteness (*finiteness)(const float* x, int n);
  // Sum by lanes, in double.
  double (*sum)(const float* x, int n);
  // r[i] = max(0, p[i] - q[i]); returns its sum by lanes, in double. r may be p or q.
  double (*residual)(const float* p, const float* q, int n, float* r);
  // Entropy of the law p in nats: minus the sum by lanes, in double, of p[i] * Log(p[i]), where a
  // p[i] that is not at least 2^-126 (also NaN) adds 0.
  double (*entropy)(const float* p, int n);
  // The first i whose running sum exceeds target (>= 0). The running sum adds, in double, whole
  // chunks of 256 elements (each a sum by lanes), then, in the first chunk whose sum exceeds, its
  // elements in order. If rounding leaves none there, the last i up to the end of that chunk
  // (without one: of all) with p[i] > 0; -1 if there is none. So p[result] > 0 always.
  std::int32_t (*find_cumulative)(const float* p, int n, double target);
  // The winner of the RACE (above) over p[0, n), p finite; a p that is not > 0 (also NaN) takes no
  // part; -1 if none does. So p[result] > 0 always.
  std::int32_t (*race)(const float* p, int n, const RaceNoise& noise);
  // maxima[j] = max of x over [64 j, 64 j + 64), NaN ignored. ceil(n / 64) values.
  void (*block_max)(const float* x, int n, float* maxima);
  // ids of all x[i] >= threshold, ascending, at most `room` of them; returns how many there are in
  // all.
  int (*collect_at_least)(const float* x, int n, float threshold, std::int32_t* ids, int room);
};

}  // namespace foretoken::kernels
