// SPDX-License-Identifier: Apache-2.0
// How the scales of K-quants are found. The values x of a run become s * q + m with integers q of
// few bits. For given q, the best s and m solve a 2 x 2 system of weighted sums. For given s and m,
// the best q is the nearest one. The search tries a series of spacings around the even division of
// the run's range. Each spacing gives codes q, and the codes give the best (s, m). The pair with
// the least error, sum of w (s q + m - x)^2, is kept. The next try counts its codes from the m of
// that pair, which alone lowers the error by half a percent. With S.. = sum of w .. the error is
//   s^2 Sqq + 2 s m Sq + m^2 S1 - 2 s Sqx - 2 m Sx + Sxx
// so each try is one pass over the run. Values are counted from the least value of the run, because
// the difference of sums would lose its digits where a run lies far from zero.
//
// Q4_K, Q5_K: runs of 32, m <= 0 (files store minima with a minus); w = root mean square + |x|.
// Q6_K: runs of 16, m = 0, q in [-32, 31]; w = x^2.
// Then the scales of a super-block are rounded to 6 bits (8 for Q6_K) of a common half, and the
// codes are computed again for the rounded scales.
#include "tensor/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace foretoken::tensor {
namespace {

// ---- Four lanes --------------------------------------------------------------------------------
// The compiler's own vectors. Sums in lanes have the same order on every machine and are fast;
// plain loops over floats could not be both.
using Lanes = float __attribute__((vector_size(16)));
constexpr int kLanes = 4;

Lanes Load(const float* p) {
  Lanes lanes;
  std::memcpy(&lanes, p, sizeof lanes);
  return lanes;
}

void Store(float* p, Lanes lanes) {
  std::memcpy(p, &lanes, sizeof lanes);
}

Lanes All(float x) {
  return Lanes{x, x, x, x};
}

float Sum(Lanes v) {
  return (v[0] + v[1]) + (v[2] + v[3]);
}

// The nearest integer to x within [low, high]; low and high are integers within +-2^22. NaN becomes
// one of the two bounds.
Lanes Nearest(Lanes x, float low, float high) {
  constexpr float kIntegersOnly = 0x1.8p23f;  // floats of this size have no fraction
  x = x < All(high) ? x : All(high);
  x = x > All(low) ? x : All(low);
  return (x + All(kIntegersOnly)) - All(kIntegersOnly);
}

float Nearest(float x, float low, float high) {
  return Nearest(All(x), low, high)[0];
}

// ---- Simple blocks -----------------------------------------------------------------------------

constexpr int kHalf = kBlock / 2;

// The reciprocal of d, and 0 for 0.
float Inverse(float d) {
  return d != 0 ? 1.0f / d : 0.0f;
}

// The value of largest magnitude, with its sign. The first one if there are several.
float Extreme(const float* x, int n) {
  float extreme = 0;
  for (int i = 0; i < n; ++i)
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  return extreme;
}

using Codes = std::array<std::uint8_t, kBlock>;

// floor((x - shift) * inverse + offset) within [0, most]. With an offset of n + 1/2 these are the
// codes of a type whose zero is n.
Codes CodesOf(const float* x, float shift, float inverse, float offset, int most) {
  Codes codes;
  for (int i = 0; i < kBlock; ++i) {
    const float q = (x[i] - shift) * inverse + offset;
    const float bounded = q < static_cast<float>(most) ? q : static_cast<float>(most);
    codes[i] = static_cast<std::uint8_t>(bounded > 0 ? bounded : 0.0f);
  }
  return codes;
}

void PackNibbles(const Codes& codes, std::uint8_t* qs) {
  for (int j = 0; j < kHalf; ++j)
    qs[j] = static_cast<std::uint8_t>((codes[j] & 15) | (codes[j + kHalf] & 15) << 4);
}

void PackFifthBits(const Codes& codes, std::uint8_t* qh) {
  std::memset(qh, 0, 4);
  for (int j = 0; j < kBlock; ++j)
    qh[j / 8] = static_cast<std::uint8_t>(qh[j / 8] | (codes[j] >> 4) << (j % 8));
}

void Fill(const float* x, BlockQ4_0& b) {
  const float d = Extreme(x, kBlock) / -8;
  b.d = F32ToF16(d);
  PackNibbles(CodesOf(x, 0, Inverse(d), 8.5f, 15), b.qs);
}

void Fill(const float* x, BlockQ5_0& b) {
  const float d = Extreme(x, kBlock) / -16;
  b.d = F32ToF16(d);
  const Codes codes = CodesOf(x, 0, Inverse(d), 16.5f, 31);
  PackNibbles(codes, b.qs);
  PackFifthBits(codes, b.qh);
}

void Fill(const float* x, BlockQ8_0& b) {
  const float d = std::fabs(Extreme(x, kBlock)) / 127;
  const float inverse = Inverse(d);
  b.d = F32ToF16(d);
  for (int i = 0; i < kBlock; ++i)
    b.qs[i] = static_cast<std::int8_t>(Nearest(x[i] * inverse, -127, 127));
}

// Codes 0 to `most` run evenly from the least value to the greatest.
template <class Block>
Codes FillEvenly(const float* x, int most, Block& b) {
  const auto [low, high] = std::minmax_element(x, x + kBlock);
  const float d = (*high - *low) / static_cast<float>(most);
  b.d = F32ToF16(d);
  b.m = F32ToF16(*low);
  return CodesOf(x, *low, Inverse(d), 0.5f, most);
}

void Fill(const float* x, BlockQ4_1& b) {
  PackNibbles(FillEvenly(x, 15, b), b.qs);
}

void Fill(const float* x, BlockQ5_1& b) {
  const Codes codes = FillEvenly(x, 31, b);
  PackNibbles(codes, b.qs);
  PackFifthBits(codes, b.qh);
}

// ---- Numbers of a table ------------------------------------------------------------------------

// The code of the number in MXFP4's table that is nearest to x; of two equally near ones, the one of
// smaller magnitude.
std::uint8_t NearestMxfp4(float x) {
  // Half way between the magnitudes 0, 1, 2, 3, 4, 6, 8 and 12.
  constexpr float kBoundaries[] = {0.5f, 1.5f, 2.5f, 3.5f, 5, 7, 10};
  const float magnitude = std::fabs(x);
  int code = 0;
  for (const float boundary : kBoundaries) code += magnitude > boundary;
  return static_cast<std::uint8_t>(x < 0 && code > 0 ? code + 8 : code);
}

// The scale is the power of two with which the largest magnitude lies in [8, 16) of the table.
void Fill(const float* x, BlockMXFP4& b) {
  const float extreme = std::fabs(Extreme(x, kBlock));
  const int exponent = extreme > 0 ? std::ilogb(extreme) + 125 : 0;
  b.e = static_cast<std::uint8_t>(std::clamp(exponent, 0, 254));
  const float scale = Mxfp4Scale(b.e);
  Codes codes;
  for (int i = 0; i < kBlock; ++i) codes[i] = NearestMxfp4(x[i] / scale);
  PackNibbles(codes, b.qs);
}

// ---- Q4_K and Q5_K -----------------------------------------------------------------------------

constexpr int kRuns = kSuperBlock / kBlock;
constexpr int kSixBits = 63;

// x ~ scale * q - minimum, both at least 0.
struct Line {
  float scale = 0, minimum = 0;
};

// Spacings tried: (most + first + i * step) codes over the range of the run, i = 0 .. tries - 1.
struct Search {
  int most;  // the greatest code
  float first, step;
  int tries;
};
constexpr Search kSearch4 = {15, -1.0f, 0.1f, 21};
constexpr Search kSearch5 = {31, -0.5f, 0.1f, 16};

// The run and what does not depend on codes. Values are counted from `low`.
struct Run {
  float x[kBlock], w[kBlock];
  float low, range;  // low <= 0
  float s1, sx, sxx;
};

Run Prepare(const float* values) {
  Run run;
  Lanes square = All(0), low = All(0), high = Load(values);
  for (int i = 0; i < kBlock; i += kLanes) {
    const Lanes v = Load(values + i);
    square += v * v;
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  run.low = std::min(std::min(low[0], low[1]), std::min(low[2], low[3]));
  run.range = std::max(std::max(high[0], high[1]), std::max(high[2], high[3])) - run.low;
  const float size = std::sqrt(Sum(square) / kBlock);
  Lanes s1 = All(0), sx = All(0), sxx = All(0);
  for (int i = 0; i < kBlock; i += kLanes) {
    const Lanes v = Load(values + i), x = v - All(run.low);
    const Lanes w = All(size) + (v < All(0) ? -v : v);
    Store(run.x + i, x);
    Store(run.w + i, w);
    s1 += w;
    sx += w * x;
    sxx += w * x * x;
  }
  run.s1 = Sum(s1);
  run.sx = Sum(sx);
  run.sxx = Sum(sxx);
  return run;
}

// Weighted sums of the codes that one spacing gives.
struct CodeSums {
  float q, qq, qx;
};

// The codes of values that are counted from `offset`, which is code 0.
CodeSums SumsOf(const Run& run, float offset, float inverse, int most) {
  Lanes sq = All(0), sqq = All(0), sqx = All(0);
  for (int i = 0; i < kBlock; i += kLanes) {
    const Lanes x = Load(run.x + i);
    const Lanes q = Nearest((x - All(offset)) * All(inverse), 0, static_cast<float>(most));
    const Lanes wq = Load(run.w + i) * q;
    sq += wq;
    sqq += wq * q;
    sqx += wq * x;
  }
  return {Sum(sq), Sum(sqq), Sum(sqx)};
}

float ErrorOf(const Run& run, const CodeSums& s, float scale, float offset) {
  return scale * scale * s.qq + offset * offset * run.s1 + run.sxx +
         2 * (scale * offset * s.q - scale * s.qx - offset * run.sx);
}

struct Fit {
  float scale, offset;  // of values counted from run.low
};

// The best line for the given codes. Where its minimum would have the wrong sign, it is the best
// line through zero. Returns false if all codes are the same.
bool Solve(const Run& run, const CodeSums& s, Fit* fit) {
  const float determinant = run.s1 * s.qq - s.q * s.q;
  if (!(determinant > 0)) return false;
  fit->scale = (run.s1 * s.qx - run.sx * s.q) / determinant;
  fit->offset = (s.qq * run.sx - s.q * s.qx) / determinant;
  if (run.low + fit->offset > 0) {
    fit->offset = -run.low;
    fit->scale = (s.qx + run.low * s.q) / s.qq;
  }
  return true;
}

Line FitRun(const float* values, const Search& search) {
  const Run run = Prepare(values);
  if (!(run.range > 0)) return {0, -run.low};
  const auto most = static_cast<float>(search.most);
  Fit best = {run.range / most, 0};
  float least = ErrorOf(run, SumsOf(run, 0, most / run.range, search.most), best.scale, 0);
  for (int i = 0; i < search.tries; ++i) {
    const float codes = most + search.first + search.step * static_cast<float>(i);
    const float inverse = codes / (run.range - best.offset);
    const CodeSums sums = SumsOf(run, best.offset, inverse, search.most);
    Fit fit;
    if (!Solve(run, sums, &fit)) continue;
    const float error = ErrorOf(run, sums, fit.scale, fit.offset);
    if (error < least) least = error, best = fit;
  }
  return {best.scale, -(run.low + best.offset)};
}

using Lines = std::array<Line, kRuns>;
struct SixBitLines {
  std::array<std::uint8_t, kRuns> scale, minimum;
};

// x / unit as a code of six bits. The greatest x is 63 units.
std::uint8_t SixBits(float x, float greatest) {
  return static_cast<std::uint8_t>(Nearest(x * (greatest > 0 ? kSixBits / greatest : 0.0f), 0, 63));
}

SixBitLines RoundLines(const Lines& lines, std::uint16_t* d, std::uint16_t* dmin) {
  float scale = 0, minimum = 0;
  for (const Line& line : lines) {
    scale = std::max(scale, line.scale);
    minimum = std::max(minimum, line.minimum);
  }
  *d = F32ToF16(scale / kSixBits);
  *dmin = F32ToF16(minimum / kSixBits);
  SixBitLines rounded;
  for (int run = 0; run < kRuns; ++run) {
    rounded.scale[run] = SixBits(lines[run].scale, scale);
    rounded.minimum[run] = SixBits(lines[run].minimum, minimum);
  }
  return rounded;
}

void PackLines(const SixBitLines& lines, std::uint8_t* s) {
  for (int i = 0; i < 4; ++i) {
    const int scale = lines.scale[i + 4], minimum = lines.minimum[i + 4];
    s[i] = static_cast<std::uint8_t>(lines.scale[i] | scale >> 4 << 6);
    s[i + 4] = static_cast<std::uint8_t>(lines.minimum[i] | minimum >> 4 << 6);
    s[i + 8] = static_cast<std::uint8_t>((scale & 15) | (minimum & 15) << 4);
  }
}

// The codes of the run that are nearest to a line with rounded numbers.
Codes CodesOn(const float* x, float scale, float minimum, int most) {
  alignas(16) float q[kBlock] = {};
  if (scale != 0)
    for (int i = 0; i < kBlock; i += kLanes)
      Store(q + i, Nearest((Load(x + i) + All(minimum)) / All(scale), 0, static_cast<float>(most)));
  Codes codes;
  for (int i = 0; i < kBlock; ++i) codes[i] = static_cast<std::uint8_t>(q[i]);
  return codes;
}

// Scales, and the codes of each run.
template <class Block>
std::array<Codes, kRuns> FillLines(const float* x, const Search& search, Block& b) {
  Lines lines;
  for (int run = 0; run < kRuns; ++run) lines[run] = FitRun(x + run * kBlock, search);
  const SixBitLines rounded = RoundLines(lines, &b.d, &b.dmin);
  PackLines(rounded, b.scales);
  const float d = F16ToF32(b.d), dmin = F16ToF32(b.dmin);
  std::array<Codes, kRuns> codes;
  for (int run = 0; run < kRuns; ++run)
    codes[run] = CodesOn(x + run * kBlock, d * static_cast<float>(rounded.scale[run]),
                         dmin * static_cast<float>(rounded.minimum[run]), search.most);
  return codes;
}

void PackRunPairs(const std::array<Codes, kRuns>& codes, std::uint8_t* qs) {
  for (int run = 0; run < kRuns; run += 2)
    for (int l = 0; l < kBlock; ++l)
      *qs++ = static_cast<std::uint8_t>((codes[run][l] & 15) | (codes[run + 1][l] & 15) << 4);
}

void Fill(const float* x, BlockQ4_K& b) {
  PackRunPairs(FillLines(x, kSearch4, b), b.qs);
}

void Fill(const float* x, BlockQ5_K& b) {
  const auto codes = FillLines(x, kSearch5, b);
  PackRunPairs(codes, b.qs);
  for (int l = 0; l < kBlock; ++l) {
    int high = 0;
    for (int run = 0; run < kRuns; ++run) high |= codes[run][l] >> 4 << run;
    b.qh[l] = static_cast<std::uint8_t>(high);
  }
}

// ---- Q6_K --------------------------------------------------------------------------------------

constexpr int kShortRun = 16;
constexpr int kShortRuns = kSuperBlock / kShortRun;

// The sums over the codes of one spacing, with w = x^2. The best scale for these codes is qx / qq,
// and it lowers the error by gain().
struct ShortFit {
  double qx = 0, qq = 0;

  double scale() const { return qq > 0 ? qx / qq : 0; }
  double gain() const { return qq > 0 ? qx * qx / qq : 0; }
};

ShortFit FitAt(const float* x, float inverse) {
  Lanes sqx = All(0), sqq = All(0);
  for (int i = 0; i < kShortRun; i += kLanes) {
    const Lanes v = Load(x + i);
    const Lanes q = Nearest(v * All(inverse), -32, 31);
    const Lanes wq = v * v * q;
    sqx += wq * v;
    sqq += wq * q;
  }
  return {Sum(sqx), Sum(sqq)};
}

// The scale of a run of 16. Its sign brings the value of largest magnitude near code -32. The scale
// is 0 where values are so small that their squares vanish.
float FitShortRun(const float* x) {
  constexpr float kVanishing = 1e-15f;
  const float extreme = Extreme(x, kShortRun);
  if (std::fabs(extreme) < kVanishing) return 0;
  ShortFit best = FitAt(x, -32 / extreme);
  for (int i = -9; i <= 9; ++i) {
    if (i == 0) continue;
    const ShortFit fit = FitAt(x, -(32 + 0.1f * static_cast<float>(i)) / extreme);
    if (fit.gain() > best.gain()) best = fit;
  }
  // Where the sums overflow, no block can hold the values anyway.
  return std::isfinite(best.scale()) ? static_cast<float>(best.scale()) : extreme / -32;
}

void PackSixBits(const std::array<std::uint8_t, kSuperBlock>& codes, BlockQ6_K& b) {
  for (int half = 0; half < 2; ++half) {
    for (int l = 0; l < kBlock; ++l) {
      const std::uint8_t* q = codes.data() + half * 128 + l;
      std::uint8_t* ql = b.ql + half * 64 + l;
      ql[0] = static_cast<std::uint8_t>((q[0] & 15) | (q[64] & 15) << 4);
      ql[32] = static_cast<std::uint8_t>((q[32] & 15) | (q[96] & 15) << 4);
      b.qh[half * kBlock + l] = static_cast<std::uint8_t>(q[0] >> 4 | q[32] >> 4 << 2 |
                                                          q[64] >> 4 << 4 | q[96] >> 4 << 6);
    }
  }
}

// The codes of one run, plus 32.
void ShortCodes(const float* x, float scale, std::uint8_t* codes) {
  for (int i = 0; i < kShortRun; ++i)
    codes[i] = static_cast<std::uint8_t>(scale != 0 ? Nearest(x[i] / scale, -32, 31) + 32 : 32);
}

void Fill(const float* x, BlockQ6_K& b) {
  std::array<float, kShortRuns> scales;
  for (int run = 0; run < kShortRuns; ++run) scales[run] = FitShortRun(x + run * kShortRun);
  const float extreme = Extreme(scales.data(), kShortRuns);
  b.d = F32ToF16(extreme / -128);
  const float d = F16ToF32(b.d), inverse = extreme != 0 ? -128 / extreme : 0.0f;
  std::array<std::uint8_t, kSuperBlock> codes;
  for (int run = 0; run < kShortRuns; ++run) {
    const float scale = Nearest(scales[run] * inverse, -128, 127);
    b.scales[run] = static_cast<std::int8_t>(scale);
    ShortCodes(x + run * kShortRun, d * scale, codes.data() + run * kShortRun);
  }
  PackSixBits(codes, b);
}

// ---- Rows --------------------------------------------------------------------------------------

// A block is made apart and then copied, because `out` may lie at any address.
template <class Block>
void FillRow(const float* row, std::int64_t n, int block_values, void* out) {
  FORETOKEN_CHECK(n >= 0 && n % block_values == 0);
  auto* bytes = static_cast<unsigned char*>(out);
  for (std::int64_t i = 0; i < n; i += block_values, bytes += sizeof(Block)) {
    Block block;
    Fill(row + i, block);
    std::memcpy(bytes, &block, sizeof block);
  }
}

template <std::uint16_t (*Convert)(float)>
void ConvertRow(const float* row, std::int64_t n, void* out) {
  auto* bytes = static_cast<unsigned char*>(out);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint16_t bits = Convert(row[i]);
    std::memcpy(bytes + 2 * i, &bits, sizeof bits);
  }
}

}  // namespace

void Quantize(DType type, const float* row, std::int64_t n, void* out) {
  if (n == 0) return;
  switch (type) {
    case DType::kF32:
      std::memcpy(out, row, static_cast<std::size_t>(n) * sizeof(float));
      return;
    case DType::kF16:
      return ConvertRow<F32ToF16>(row, n, out);
    case DType::kBF16:
      return ConvertRow<F32ToBF16>(row, n, out);
    case DType::kQ4_0:
      return FillRow<BlockQ4_0>(row, n, kBlock, out);
    case DType::kQ4_1:
      return FillRow<BlockQ4_1>(row, n, kBlock, out);
    case DType::kQ5_0:
      return FillRow<BlockQ5_0>(row, n, kBlock, out);
    case DType::kQ5_1:
      return FillRow<BlockQ5_1>(row, n, kBlock, out);
    case DType::kQ8_0:
      return FillRow<BlockQ8_0>(row, n, kBlock, out);
    case DType::kQ4_K:
      return FillRow<BlockQ4_K>(row, n, kSuperBlock, out);
    case DType::kQ5_K:
      return FillRow<BlockQ5_K>(row, n, kSuperBlock, out);
    case DType::kQ6_K:
      return FillRow<BlockQ6_K>(row, n, kSuperBlock, out);
    case DType::kMXFP4:
      return FillRow<BlockMXFP4>(row, n, kBlock, out);
  }
  FORETOKEN_CHECK(!"a type without a row in the table of types");
}

}  // namespace foretoken::tensor
