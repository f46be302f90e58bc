// SPDX-License-Identifier: Apache-2.0
#include "tensor/few_bits.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tensor/dtype.h"
#include "tensor/line_fit.h"

namespace foretoken::tensor {
namespace {

// The code of the number in MXFP4's table that is nearest to x; of two equally near ones, the one
// of smaller magnitude.
std::uint8_t NearestMxfp4(float x) {
  // Half way between the magnitudes 0, 1, 2, 3, 4, 6, 8 and 12.
  constexpr float kBoundaries[] = {0.5f, 1.5f, 2.5f, 3.5f, 5, 7, 10};
  const float magnitude = std::fabs(x);
  int code = 0;
  for (const float boundary : kBoundaries) code += magnitude > boundary;
  return static_cast<std::uint8_t>(x < 0 && code > 0 ? code + 8 : code);
}

// The codes of IQ4's table that are nearest to numbers in steps of one half, from -128 on. All
// boundaries between neighbours of the table lie on such steps.
constexpr int kHalfSteps = 512;
constexpr auto kNearestIq4 = [] {
  std::array<std::uint8_t, kHalfSteps> codes = {};
  int code = 0;
  for (int step = 0; step < kHalfSteps; ++step) {
    // The step covers [step / 2 - 128, step / 2 - 127.5).
    while (code < kTableCodes - 1 && step - 256 >= kIq4Values[code] + kIq4Values[code + 1]) ++code;
    codes[static_cast<std::size_t>(step)] = static_cast<std::uint8_t>(code);
  }
  return codes;
}();

std::uint8_t NearestIq4(float x) {
  const float step = x * 2 + 256;
  const float bounded = step > 0 ? std::min(step, static_cast<float>(kHalfSteps - 1)) : 0.0f;
  return kNearestIq4[static_cast<std::size_t>(bounded)];
}

// The sums over the codes of one spacing, with w = x^2, as for Q6_K.
ShortFit FitTableAt(const float* x, float inverse) {
  ShortFit fit;
  for (int i = 0; i < kBlock; ++i) {
    const double q = kIq4Values[NearestIq4(x[i] * inverse)], wq = double{x[i]} * x[i] * q;
    fit.qx += wq * x[i];
    fit.qq += wq * q;
  }
  return fit;
}

// The scale with which the numbers of the table come nearest to 32 values. Tries bring the value of
// largest magnitude near the first number of the table.
float FitTable(const float* x) {
  constexpr float kVanishing = 1e-15f;
  constexpr int kTries = 7;
  const float extreme = Extreme(x, kBlock);
  if (std::fabs(extreme) < kVanishing) return 0;
  ShortFit best;
  for (int i = -kTries; i <= kTries; ++i) {
    const ShortFit fit = FitTableAt(x, static_cast<float>(kIq4Values[0] + i) / extreme);
    if (fit.gain() > best.gain()) best = fit;
  }
  return std::isfinite(best.scale()) ? static_cast<float>(best.scale()) : extreme / kIq4Values[0];
}

void PackTableCodes(const float* x, float scale, std::uint8_t* qs) {
  const float inverse = Inverse(scale);
  Codes codes;
  for (int i = 0; i < kBlock; ++i) codes[static_cast<std::size_t>(i)] = NearestIq4(x[i] * inverse);
  PackNibbles(codes, qs);
}

// Two bits of the code of each value: four runs of 32 share 32 bytes.
void PackTwoBits(const std::array<std::uint8_t, kSuperBlock>& codes, std::uint8_t* qs) {
  for (std::size_t half = 0; half < 2; ++half)
    for (std::size_t l = 0; l < kBlock; ++l) {
      int byte = 0;
      for (std::size_t run = 0; run < 4; ++run)
        byte |= (codes[half * 128 + run * kBlock + l] & 3) << (2 * run);
      qs[half * kBlock + l] = static_cast<std::uint8_t>(byte);
    }
}

constexpr ScaleSearch kSearch3 = {-4, 3, 0.05f, 20};
constexpr Search kSearch2 = {3, -0.5f, 0.1f, 16};

}  // namespace

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

void Fill(const float* x, BlockIQ4_NL& b) {
  const float d = FitTable(x);
  b.d = F32ToF16(d);
  PackTableCodes(x, d, b.qs);
}

void Fill(const float* x, BlockIQ4_XS& b) {
  std::array<float, kSuperBlock / kBlock> scales;
  for (int run = 0; run < 8; ++run) scales[run] = FitTable(x + run * kBlock);
  const float extreme = Extreme(scales.data(), 8);
  b.d = F32ToF16(extreme / -32);
  const float d = F16ToF32(b.d), inverse = extreme != 0 ? -32 / extreme : 0.0f;
  int high = 0, low[4] = {};
  for (int run = 0; run < 8; ++run) {
    const auto scale = static_cast<int>(Nearest(scales[run] * inverse, -32, 31));
    high |= (scale + 32) >> 4 << (2 * run);
    low[run / 2] |= ((scale + 32) & 15) << (run % 2 * 4);
    PackTableCodes(x + run * kBlock, d * static_cast<float>(scale), b.qs + run * kHalf);
  }
  b.scales_h = static_cast<std::uint16_t>(high);
  for (int i = 0; i < 4; ++i) b.scales_l[i] = static_cast<std::uint8_t>(low[i]);
}

void Fill(const float* x, Scales how, BlockQ3_K& b) {
  std::array<float, kShortRuns> scales;
  for (int run = 0; run < kShortRuns; ++run) {
    const float* const values = x + run * kShortRun;
    scales[run] = FitScale<kShortRun>(
        values,
        how == Scales::kAsFiles ? SquareWeights<kShortRun>(values) : LineWeights<kShortRun>(values),
        kSearch3);
  }
  const float extreme = Extreme(scales.data(), kShortRuns);
  b.d = F32ToF16(extreme / -32);
  const float d = F16ToF32(b.d), inverse = extreme != 0 ? -32 / extreme : 0.0f;
  std::array<std::uint8_t, kSuperBlock> codes;
  std::fill_n(b.scales, 12, std::uint8_t{0});
  for (int run = 0; run < kShortRuns; ++run) {
    const auto scale = static_cast<int>(Nearest(scales[run] * inverse, -32, 31));
    std::uint8_t& low = b.scales[run % 8];
    std::uint8_t& high = b.scales[8 + run % 4];
    low = static_cast<std::uint8_t>(low | ((scale + 32) & 15) << (run / 8 * 4));
    high = static_cast<std::uint8_t>(high | (scale + 32) >> 4 << (run / 4 * 2));
    ShortCodes(x + run * kShortRun, d * static_cast<float>(scale), kSearch3,
               codes.data() + run * kShortRun);
  }
  PackTwoBits(codes, b.qs);
  for (int l = 0; l < kBlock; ++l) {
    int bits = 0;
    for (int run = 0; run < 8; ++run) bits |= codes[run * kBlock + l] >> 2 << run;
    b.hmask[l] = static_cast<std::uint8_t>(bits);
  }
}

void Fill(const float* x, BlockQ2_K& b) {
  std::array<Line, kShortRuns> lines;
  float scale = 0, minimum = 0;
  for (int run = 0; run < kShortRuns; ++run) {
    lines[run] = FitRun<kShortRun>(x + run * kShortRun, kSearch2);
    scale = std::max(scale, lines[run].scale);
    minimum = std::max(minimum, lines[run].minimum);
  }
  b.d = F32ToF16(scale / 15);
  b.dmin = F32ToF16(minimum / 15);
  const float d = F16ToF32(b.d), dmin = F16ToF32(b.dmin);
  const auto four_bits = [](float v, float greatest) {
    return static_cast<int>(Nearest(greatest > 0 ? v * (15 / greatest) : 0.0f, 0, 15));
  };
  std::array<std::uint8_t, kSuperBlock> codes;
  for (int run = 0; run < kShortRuns; ++run) {
    const int s = four_bits(lines[run].scale, scale), m = four_bits(lines[run].minimum, minimum);
    b.scales[run] = static_cast<std::uint8_t>(s | m << 4);
    const auto short_codes = CodesOn<kShortRun>(x + run * kShortRun, d * static_cast<float>(s),
                                                dmin * static_cast<float>(m), kSearch2.most);
    std::copy(short_codes.begin(), short_codes.end(), codes.begin() + run * kShortRun);
  }
  PackTwoBits(codes, b.qs);
}

}  // namespace foretoken::tensor
