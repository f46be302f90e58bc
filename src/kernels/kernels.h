// SPDX-License-Identifier: Apache-2.0
// kernels/kernels.h: the arithmetic of foretoken as a table of functions, and the contract of each
// function. There is one table for each instruction set.
//
// CANONICAL ARITHMETIC. Every function here is defined to the bit: its contract states the order of
// each sum, each rounding and each fused multiply-add (written fma below; it rounds once). The
// tables of all instruction sets give exactly those bits. Two promises follow:
//   - The result of a row never depends on how many rows, tiles or threads share the pass.
//     Speculative decoding rests on this promise.
//   - All instruction sets agree bit for bit, so the scalar table is the oracle of the others.
//
// LANES. A sum "by lanes" has 16 partial sums. Element i is added to partial sum i mod 16, in
// increasing order of i. Then the 16 sums are folded 16 -> 8 -> 4 -> 2 -> 1: each step adds the
// upper half to the lower half (lane j += lane j + width / 2). Where the last group has fewer than
// 16 elements, the lanes without an element stay as they are.
//
// EXP. Exp(x) on f32, within 2 ulp on [-87.3, 88.3] (the polynomial of Cephes' expf):
//   x < -87.33654 gives 0 (also -inf);  x > 88.37626 is taken as 88.37626
//   n = fma(x, 1.44269504, 12582912.0) - 12582912.0     (the nearest integer, by a magic constant)
//   r = fma(n, -0.693359375, x);  r = fma(n, 2.12194440e-4, r)
//   y = 1.9875691500e-4
//   y = fma(y, r, c) for c in 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
//                             1.6666665459e-1, 5.0000001201e-1
//   y = fma(y, r * r, r) + 1;  result = y * 2^n         (2^n is built from exponent bits)
//
// ROUGH EXP of x <= 0 on f32, within 1.1e-4 of the value; 1 at 0:
//   x = max(x, -86)
//   t = fma(x, 1.44269504, 12583039.0);  n = t - 12583039.0;  r = fma(x, 1.44269504, -n)
//   y = fma(fma(fma(0.055008866, r, 0.24221097), r, 0.69328296), r, 1);  result = y * 2^n
//
// LOG. Log(x) on f32, within 2 ulp for normal x > 0 (the polynomial of Cephes' logf):
//   e = (bits(x) - bits(0.70710677)) >> 23              (an arithmetic shift)
//   m = x * 2^-e, in [0.707, 1.414);  r = m - 1;  z = r * r
//   y = 7.0376836292e-2
//   y = fma(y, r, c) for c in -1.1514610310e-1,  1.1676998740e-1, -1.2420140846e-1,
//                              1.4249322787e-1, -1.6668057665e-1,  2.0000714765e-1,
//                             -2.4999993993e-1,  3.3333331174e-1
//   y = (y * r) * z;  y = fma(e, -2.12194440e-4, y);  y = fma(z, -0.5, y)
//   result = fma(e, 0.693359375, r + y)
//
// CAP. CAP(x, cap) = cap * (1 - 2 / (Exp(x * f) + 1)) with f = 2 / cap: cap * tanh(x / cap).
//
// RACE. The exponential race draws a token. Each token x with p[x] > 0 gets a score, and the lowest
// score wins; of equal scores, the one with the lowest x. With E_x exponentially distributed with
// rate 1, token x wins with probability p[x] / sum of p.
//   w = word (x / 16) mod 4 of Philox4x32-10({counter[0], counter[1], counter[2], b}, key),
//       b = 16 (x / 64) + x mod 16: so the 64 tokens of 16 blocks need no shuffle
//   v = fma(float(w >> 16), 65536, float(w & 65535) + 0.5) * 2^-32
//   u = the same of ~w, which is 1 - v: v keeps all its bits where w is small, u where w is large
//   E = -ln(1 - v) = -(LOG of u), but for v < 0.29289323 LOG with e = 0 and r = -v
//   score = E / p[x]
// As E >= v >= 2^-33, most tokens can be seen to lose before E is computed, and many before w is.
// The tables other than scalar skip those tokens. The winner is the same.
//
// No function throws or allocates. Buffers do not overlap unless the contract says that they may.
// Pointers need the alignment of their elements and no more. Strides are counted in elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/block_layout.h"

namespace foretoken::kernels {

// y[row, 16 t + o] for tiles t in [tile_begin, tile_end). All 16 lanes of a tile are written, so
// y_stride >= 16 * n_tiles.
//
// Float tiles (F32, F16, BF16) read x:
//   acc = 0; for k ascending: acc = fma(w[k][o], x[row][k], acc)
// Quantised tiles read xq:
//   acc = 0; for runs b of 32 k ascending:
//     isum  the sum of q * xq over the run, exact in int32. q is the integer weight, less the
//           offset of its tile where the tile has one.
//           Q6_K: scale[0][o] * (its first 16 k) + scale[1][o] * (its last 16): below 2^24
//           MXFP4, IQ4_NL, IQ4_XS: q is a number of the type's table, not its index
//           Q3_K, Q2_K and wide tiles as Q6_K, the scale of Q2_K being scale[h][o] % 16
//     s     f32(d[o]) (of wide tiles d is f32 already);  Q4_K and Q5_K: f32(d[o]) * scale[o],
//           which is exact;
//           IQ4_XS: f32(d[o]) * (scale[o] - 32), exact;  MXFP4: 2^(e[o] - 128)
//     acc = fma(float(isum), s * xd[row][b], acc)
//     and then, where the type has minima (Q4_1, Q5_1, Q4_K, Q5_K),
//     acc = fma(m, xd[row][b] * float(xs[row][b][1]), acc), with m = f32(m[o]) or, exact,
//           m = -(f32(dmin[o]) * minimum[o])
//     Q2_K has two minima, m[h] = -(f32(dmin[o]) * (scale[h][o] / 16)), exact:
//     acc = fma(m[0], xd[row][b] * float(xs[row][b][0]), acc), and then
//     acc = fma(m[1], xd[row][b] * float(xs[row][b][1] - xs[row][b][0]), acc)
// Finally y = acc, or y = y + acc where `accumulate` is set.
struct MatmulArgs {
  const void* tiles;  // strips of all n_tiles, contiguous
  int k;              // inner size, a multiple of tensor::TileValues
  int tile_begin, tile_end;
  int n_rows;      // >= 1
  const float* x;  // [n_rows, x_stride]              float tiles only
  std::int64_t x_stride;
  const std::int8_t* xq;  // [n_rows, k]                     quantised tiles only
  const float* xd;        // [n_rows, k / 32] scales
  // [n_rows, k / 32, 2] sums of xq over the first 16 of each block, and over all 32
  const std::int32_t* xs;
  // Where not null, row r reads row x_rows[r] of x, xq, xd and xs, which may then have any number of
  // rows; y is written as without it.
  const std::int32_t* x_rows;
  float* y;  // [n_rows, y_stride]
  std::int64_t y_stride;
  bool accumulate;
};

// One head of keys and values (a "KV head") against the rows of one sequence. Query g of row r lies
// at q + r * q_stride + g * head_dim; its result goes to out + r * out_stride + g * head_dim. Row r
// sees positions [first, row_len[r]), where first is 0, or with a window (window > 0)
// max(0, row_len[r] - window). Where blocks are skipped (skipped_blocks > 0), it sees of these only the
// first block and those from block 1 + skipped_blocks on. Queries may be grouped in any way. Each query
// goes in order over the cache blocks of 32 positions in which it sees one. m starts at -inf, l and acc at 0; where there
// are sinks, m starts at sinks[g] and l at 1:
//   s[j] = scale * dot_j, dot_j: acc = 0; for d ascending: acc = fma(q[d], k[d][j], acc)
//          keys of q8_0: the query is quantised as by `quantize`, to xq and xd;
//          acc = 0; for g = d / 32 ascending: isum = sum over its 32 d of xq[d] * int8, exact;
//          acc = fma(float(isum), (xd[g] * scale) * f32(kscale[g][j]), acc);  s[j] = acc
//          keys of q4_0: the same with 16 q, from -128 to 112, for int8, and scale / 16 for scale
//          where soft_cap > 0, then s[j] = CAP(s[j], soft_cap)
//   b = max of s over the visible j;  m' = max(m, b);  c = Exp(m - m')
//   p[j] = Exp(s[j] - m'), and 0 where j is not visible
//   l = fma(l, c, sum of p), the sum over the 32 elements by lanes
//   acc[d] = acc[d] * c; for visible j ascending: acc[d] = fma(p[j], v[j][d], acc[d])
// Values of q8_0 are weighted in integers, relative to the largest weight of the block:
//   p[j] = ROUGH EXP of (s[j] - b), and 0 where j is not visible;  h = Exp(b - m')
//   l = fma(l, c, h * sum of p), the sum by lanes
//   for each g = d / 32: M = max of f32(vscale[g][j]) over the visible j; i = M > 0 ? 127 / M : 0
//     w[j] = p[j] * (f32(vscale[g][j]) * i), rounded to nearest even: 0 to 127
//     isum[d] = sum over the visible j of w[j] * int8, exact
//     acc[d] = fma(float(isum[d]), h * (M / 127), acc[d] * c)
// Values of q4_0: the same with 16 q for int8, and M / 2032 for M / 127.
// Where a scale, a query or a score is NaN or infinite, xq and w may be anything, and the result
// shows that it is broken.
// Where values_in_keys > 0, the first so many dimensions of a key are the value too, in floats:
// v[j][d] = k[d][j] (q8_0, q4_0: float(q) * f32(kscale[d / 32][j]), rounded). Then results have
// values_in_keys numbers, at out + r * out_stride + g * values_in_keys, v and v_type are not read,
// and window is 0.
// At the end out[d] = acc[d] * (1 / l). A position that is not visible never changes a result,
// whatever it holds. The numbers of blocks in which no row sees a position are not read.
struct AttentionArgs {
  const float* q;
  std::int64_t q_stride;
  float* out;
  std::int64_t out_stride;
  int n_rows, n_group, head_dim;  // head_dim a multiple of 8 (of 32 where a type is q8_0 or q4_0)
  float scale;
  float soft_cap;               // 0: scores are not capped
  const float* sinks;           // [n_group]; null: there are none
  int window;                   // 0: all positions before a row's end are visible
  int skipped_blocks = 0;       // > 0 only if window is 0; each row_len > 32 * (1 + skipped_blocks)
  int values_in_keys = 0;       // 0: values lie apart; else a multiple as head_dim, at most that
  const std::int32_t* row_len;  // [n_rows], each >= 1, ascending
  const std::int32_t* blocks;   // block ids of the sequence, in order of position
  const std::byte* k;           // block id i of this layer and head starts at k + i * k_stride
  std::size_t k_stride;         // bytes
  const std::byte* v;
  std::size_t v_stride;
  tensor::KvType k_type, v_type;
  float* scratch;  // AttentionScratchFloats(head_dim) floats of the calling thread
};
// Queries that one call works on at a time. For each of them the scratch buffer holds an accumulator,
// 32 weights and, where keys or values are integers, the query and the weights in integers.
inline constexpr int kAttentionQueries = 32;
constexpr std::size_t AttentionScratchFloats(int head_dim) {
  return std::size_t{kAttentionQueries} * static_cast<std::size_t>(2 * head_dim + 2 * 32 + 16);
}

// A convolution of each column over the newest positions of a text. For each of n_steps positions t
// and each column i:
//   y = bias[i], or 0;  for j ascending, where x[t + j] is not null: y = y + (weights[j][i] * x[t + j][i])
//   where `activates` is set: y = y / (1 + Exp(-y))
struct ConvolutionArgs {
  const float* const* x;  // [n_taps - 1 + n_steps] inputs; null: the text has no such position
  const float* weights;   // [n_taps] rows, one every weights_stride numbers
  std::int64_t weights_stride;
  const float* bias;  // or null
  int n_taps, n_steps;
  int column, n;  // columns [column, column + n) of x, weights and bias
  bool activates;
  float* y;  // [n_steps] rows of n columns, one every y_stride numbers
  std::int64_t y_stride;
};

// Positions of a recurrent head, whose state is a matrix S [n_in, n_out], n_out a multiple of 16. It lies
// in tiles of 16 columns: S[i][j] is number (j / 16 * n_in + i) * 16 + j % 16.
// For each position in turn and each column j:
//   d = v[j];  where there is a beta (the delta rule):
//     known = 0; for i ascending: known = fma(k[i], S[i][j] * decay, known);  d = (d - known) * beta
//   o = 0; for i ascending: S[i][j] = fma(k[i], d, S[i][j] * decay); o = fma(q[i], S[i][j], o)
//   out[j] = o
// The first n_kept positions change `state`; the others change a copy of it, which `work` holds.
struct StateArgs {
  float* state;
  float* work;  // as large; null is allowed where all positions are kept
  int n_in, n_out;
  int n_steps, n_kept;
  const float *q, *k;  // [n_steps, n_in]
  const float* v;      // [n_steps, n_out]
  const float* decay;  // [n_steps]
  const float* beta;   // [n_steps], or null
  // Results of the positions behind the first n_silent, one every out_stride numbers: [n_out].
  int n_silent;
  float* out;
  std::int64_t out_stride;
};

// The noise of one race: block b is Philox4x32-10 of {counter[0], counter[1], counter[2], b} under
// the key.
struct RaceNoise {
  std::uint32_t counter[3];
  std::uint32_t key[2];
};
// The token that wins a race, and its score; -1 and infinity where none takes part.
struct RaceWinner {
  std::int32_t token = -1;
  float score = __builtin_inff();
};

enum class Finiteness : std::uint32_t { kFinite, kMinusInfinity, kNotANumber };

// What the largest bit patterns of a row say, compared once as signed and once as unsigned numbers:
// +infinity and positive NaN begin at 0x7f800000, -infinity and negative NaN at 0xff800000. The
// function is static, so each instruction set has a copy of its own.
static constexpr Finiteness FinitenessOf(std::int32_t most_signed, std::uint32_t most_unsigned) {
  if (most_signed >= 0x7f800000 || most_unsigned > 0xff800000u) return Finiteness::kNotANumber;
  return most_unsigned == 0xff800000u ? Finiteness::kMinusInfinity : Finiteness::kFinite;
}

struct Kernels {
  const char* isa;  // "scalar", "avx2", "amx", ...: see dispatch.h

  // -- Weights ------------------------------------------------------------------------------------
  void (*matmul[tensor::kTileTypes])(const MatmulArgs&);

  // Quantises rows in blocks of 32: x [n_rows, x_stride] -> xq [n_rows, k], xd [n_rows, k / 32] and
  // xs [n_rows, k / 32, 2]; k is a multiple of 32. Per block:
  //   amax = max |x|, taken as 0 below 2^-100 (so that 127 / amax is finite);  d = amax / 127
  //   id = amax > 0 ? 127 / amax : 0;  q = x * id rounded to nearest even
  //   xs = {sum of the first 16 q, sum of all 32}
  // Where a value of the block is NaN or infinite, d is NaN or infinite too, and q and xs may be
  // anything: whatever is computed from such a row must show that the row is broken.
  void (*quantize)(const float* x, std::int64_t x_stride, int n_rows, int k, std::int8_t* xq,
                   float* xd, std::int32_t* xs);

  // -- Between the matrices -----------------------------------------------------------------------
  // ss = sum of x[i] * x[i] by lanes, each step fma(x, x, lane);
  // y[i] = (x[i] * (1 / sqrt(ss / n + eps))) * weight[i]. y may be x.
  void (*rms_norm)(const float* x, const float* weight, int n, float eps, float* y);

  // Rotates n_heads heads of head_dim in place, their first n_rot dimensions (an even number).
  // c, s: [n_rot / 2]. The pairs (a, b) are (2 i, 2 i + 1) where interleaved, otherwise
  // (i, i + n_rot / 2):
  //   a' = fma(a, c, -(b * s));  b' = fma(a, s, b * c)
  void (*rope)(float* x, int n_heads, int head_dim, int n_rot, bool interleaved, const float* c,
               const float* s);

  // y[i] = (g[i] / (1 + Exp(-g[i]))) * u[i]. y may be g or u.
  void (*silu_mul)(const float* g, const float* u, int n, float* y);
  // GELU in its tanh form, where (1 + tanh(z)) / 2 is written 1 / (1 + Exp(-2 z)):
  //   t = (g[i] * 1.5957691216) * fma(g[i] * g[i], 0.044715, 1)
  //   y[i] = (g[i] / (1 + Exp(-t))) * u[i]. y may be g or u.
  void (*gelu_mul)(const float* g, const float* u, int n, float* y);
  // The gated function of gpt-oss, with limits:
  //   a = min(g[i], 7);  b = max(min(u[i], 7), -7)      (NaN stays NaN)
  //   y[i] = (a / (1 + Exp(a * -1.702))) * (b + 1). y may be g or u.
  void (*limited_swiglu)(const float* g, const float* u, int n, float* y);
  // ln(1 + e^x):  e = Exp(-|x[i]|);  u = 1 + e;  l = u == 1 ? e : Log(u) * (e / (u - 1));
  // y[i] = max(x[i], 0) + l. y may be x.
  void (*softplus)(const float* x, int n, float* y);
  void (*convolve)(const ConvolutionArgs&);
  void (*advance_state)(const StateArgs&);
  // x[i] = CAP(x[i], cap).
  void (*soft_cap)(float* x, int n, float cap);
  // Multiplies each `block` of the n numbers by a Hadamard matrix, whose rows are sums and differences of
  // all: for h = 1, 2, 4 ... block / 2, numbers a and b of which the place in the block differs in bit h
  // alone become a + b and a - b, at the place of a where that bit is 0. Then x = x * factor.
  // block: a power of two, at least 32, that divides n.
  void (*hadamard)(float* x, int n, int block, float factor);

  // -- Cache --------------------------------------------------------------------------------------
  // Writes one position (slot in [0, 32)) of one head into its block. f16 and bf16 round to nearest
  // even. q8_0: the scale d of 32 dimensions is amax / 127 rounded to f16; q = x / f32(d) rounded
  // to nearest even and clamped to +-127 (0 where d is 0). Where a value of x is NaN or infinite, d
  // is too, and q may be anything.
  // q4_0: with P the largest x > 0 and N the largest -x > 0 (0 where there is none), d is
  // max(P / 7.25, N / 8.25) rounded to f16; q = x / f32(d) rounded to nearest even and clamped to
  // [-8, 7] (0 where d is 0).
  void (*store_k[tensor::kKvTypes])(const float* x, int head_dim, int slot, void* block);
  void (*store_v[tensor::kKvTypes])(const float* x, int head_dim, int slot, void* block);
  void (*attention)(const AttentionArgs&);
  // Over the 32 keys of a block: least[d] is the least and most[d] the largest of k[d][j], j = 0 to 31. In
  // q8_0 and q4_0, k[d][j] is float(q) * f32(kscale[d / 32][j]), rounded; the q of q4_0 is from -8 to 7. A
  // result that is zero is +0. Where a key has a NaN, its dimension may have any result.
  void (*bound_keys[tensor::kKvTypes])(const void* block, int head_dim, float* least, float* most);

  // -- Passes over the vocabulary (n of any size) -------------------------------------------------
  // Index of the largest value; of equal ones, the lowest. NaN never wins. 0 if no value is larger
  // than -inf.
  std::int32_t (*argmax)(const float* x, int n);
  // Largest value. NaN is ignored; n = 0 gives -inf; a zero is +0 (in block_max too).
  float (*max)(const float* x, int n);
  // p[i] = Exp((x[i] - max) * inv_temperature). Returns the sum of p by lanes, in double. p may be
  // x.
  double (*exp_sum)(const float* x, int n, float max, float inv_temperature, float* p);
  // x[i] *= factor.
  void (*scale)(float* x, int n, float factor);
  // The worst value in x: kFinite, kMinusInfinity, or kNotANumber for NaN and +infinity.
  Finiteness (*finiteness)(const float* x, int n);
  // The sum by lanes, in double.
  double (*sum)(const float* x, int n);
  // r[i] = max(0, p[i] - q[i]). Returns the sum of r by lanes, in double. r may be p or q.
  double (*residual)(const float* p, const float* q, int n, float* r);
  // Entropy of the distribution p in nats: minus the sum by lanes, in double, of p[i] * Log(p[i]).
  // A p[i] that is not at least 2^-126 (also NaN) adds 0.
  double (*entropy)(const float* p, int n);
  // The first i at which the running sum of p exceeds target (>= 0). The running sum is in double.
  // It first adds whole chunks of 256 elements (each chunk's sum by lanes); in the first chunk that
  // takes it beyond the target, it adds the elements in order instead. If rounding lets no element
  // of that chunk exceed the target, or if no chunk does, the result is the last i up to the end of
  // that chunk (or of p) with p[i] > 0, and -1 if there is none. So p[result] > 0 always.
  std::int32_t (*find_cumulative)(const float* p, int n, double target);
  // The winner of the RACE (above) over n tokens, of which p[0] belongs to token `first`, a multiple
  // of 64; p finite. A p that is not > 0 (also NaN) takes no part. So the winner's p > 0 always.
  RaceWinner (*race)(const float* p, int first, int n, const RaceNoise& noise);
  // maxima[j] = max of x over [64 j, 64 j + 64), NaN ignored, for ceil(n / 64) values of j.
  void (*block_max)(const float* x, int n, float* maxima);
  // Writes the ids of x[i] >= threshold in ascending order, at most `room` of them. Returns how
  // many there are in all.
  int (*collect_at_least)(const float* x, int n, float threshold, std::int32_t* ids, int room);
};

}  // namespace foretoken::kernels
