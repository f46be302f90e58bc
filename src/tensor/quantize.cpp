// SPDX-License-Identifier: Apache-2.0
// Q4_K, Q5_K: a line for each run of 32 (see line_fit.h). Q6_K: runs of 16, m = 0, q in [-32, 31];
// w = x^2. Then the scales of a super-block are rounded to 6 bits (8 for Q6_K) of a common half, and
// the codes are computed again for the rounded scales.
#include "tensor/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "tensor/few_bits.h"
#include "tensor/line_fit.h"

namespace foretoken::tensor {
namespace {

// ---- Simple blocks -----------------------------------------------------------------------------

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

void PackFifthBits(const Codes& codes, std::uint8_t* qh) {
  std::memset(qh, 0, 4);
  for (int j = 0; j < kBlock; ++j)
    qh[j / 8] = static_cast<std::uint8_t>(qh[j / 8] | (codes[j] >> 4) << (j % 8));
}

constexpr ScaleSearch kSearch4_0 = {-8, 7, 0.1f, 9}, kSearch5_0 = {-16, 15, 0.1f, 9};

float ScaleOf(const float* x, Scales how, const ScaleSearch& search) {
  return how == Scales::kAsFiles ? Extreme(x, kBlock) / search.least
                                 : FitScale<kBlock>(x, LineWeights<kBlock>(x), search);
}

void Fill(const float* x, Scales how, BlockQ4_0& b) {
  const float d = ScaleOf(x, how, kSearch4_0);
  b.d = F32ToF16(d);
  PackNibbles(CodesOf(x, 0, Inverse(d), 8.5f, 15), b.qs);
}

void Fill(const float* x, Scales how, BlockQ5_0& b) {
  const float d = ScaleOf(x, how, kSearch5_0);
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

// ---- Q4_K and Q5_K -----------------------------------------------------------------------------

constexpr int kSixBits = 63;

constexpr Search kSearch4 = {15, -1.0f, 0.1f, 21};
constexpr Search kSearch5 = {31, -0.5f, 0.1f, 16};

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

// Scales, and the codes of each run.
template <class Block>
std::array<Codes, kRuns> FillLines(const float* x, const Search& search, Block& b) {
  Lines lines;
  for (int run = 0; run < kRuns; ++run) lines[run] = FitRun<kBlock>(x + run * kBlock, search);
  const SixBitLines rounded = RoundLines(lines, &b.d, &b.dmin);
  PackLines(rounded, b.scales);
  const float d = F16ToF32(b.d), dmin = F16ToF32(b.dmin);
  std::array<Codes, kRuns> codes;
  for (int run = 0; run < kRuns; ++run)
    codes[run] = CodesOn<kBlock>(x + run * kBlock, d * static_cast<float>(rounded.scale[run]),
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

constexpr ScaleSearch kSearch6 = {-32, 31, 0.1f, 9};

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

void Fill(const float* x, BlockQ6_K& b) {
  std::array<float, kShortRuns> scales;
  for (int run = 0; run < kShortRuns; ++run) {
    const float* const values = x + run * kShortRun;
    scales[run] = FitScale<kShortRun>(values, SquareWeights<kShortRun>(values), kSearch6);
  }
  const float extreme = Extreme(scales.data(), kShortRuns);
  b.d = F32ToF16(extreme / -128);
  const float d = F16ToF32(b.d), inverse = extreme != 0 ? -128 / extreme : 0.0f;
  std::array<std::uint8_t, kSuperBlock> codes;
  for (int run = 0; run < kShortRuns; ++run) {
    const float scale = Nearest(scales[run] * inverse, -128, 127);
    b.scales[run] = static_cast<std::int8_t>(scale);
    ShortCodes(x + run * kShortRun, d * scale, kSearch6, codes.data() + run * kShortRun);
  }
  PackSixBits(codes, b);
}

// ---- Rows --------------------------------------------------------------------------------------

// A block is made apart and then copied, because `out` may lie at any address.
template <class Block>
void FillRow(const float* row, std::int64_t n, int block_values, Scales how, void* out) {
  FORETOKEN_CHECK(n >= 0 && n % block_values == 0);
  auto* bytes = static_cast<unsigned char*>(out);
  for (std::int64_t i = 0; i < n; i += block_values, bytes += sizeof(Block)) {
    Block block;
    if constexpr (requires { Fill(row, how, block); })
      Fill(row + i, how, block);
    else
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

void Quantize(DType type, const float* row, std::int64_t n, void* out, Scales how) {
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
      return FillRow<BlockQ4_0>(row, n, kBlock, how, out);
    case DType::kQ4_1:
      return FillRow<BlockQ4_1>(row, n, kBlock, how, out);
    case DType::kQ5_0:
      return FillRow<BlockQ5_0>(row, n, kBlock, how, out);
    case DType::kQ5_1:
      return FillRow<BlockQ5_1>(row, n, kBlock, how, out);
    case DType::kQ8_0:
      return FillRow<BlockQ8_0>(row, n, kBlock, how, out);
    case DType::kQ4_K:
      return FillRow<BlockQ4_K>(row, n, kSuperBlock, how, out);
    case DType::kQ5_K:
      return FillRow<BlockQ5_K>(row, n, kSuperBlock, how, out);
    case DType::kQ6_K:
      return FillRow<BlockQ6_K>(row, n, kSuperBlock, how, out);
    case DType::kMXFP4:
      return FillRow<BlockMXFP4>(row, n, kBlock, how, out);
    case DType::kIQ4_NL:
      return FillRow<BlockIQ4_NL>(row, n, kBlock, how, out);
    case DType::kIQ4_XS:
      return FillRow<BlockIQ4_XS>(row, n, kSuperBlock, how, out);
    case DType::kQ3_K:
      return FillRow<BlockQ3_K>(row, n, kSuperBlock, how, out);
    case DType::kQ2_K:
      return FillRow<BlockQ2_K>(row, n, kSuperBlock, how, out);
    default:
      FORETOKEN_CHECK(!"a type that is read and not written");
  }
}

}  // namespace foretoken::tensor
