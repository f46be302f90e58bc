// SPDX-License-Identifier: Apache-2.0
#include "tensor/wide_block.h"

#include <bit>
#include <cstring>

#include "tensor/codebooks.h"
#include "tensor/dtype.h"

namespace foretoken::tensor {
namespace {

// The scale that a code s of a few bits stands for.
std::int8_t OddScale(unsigned s) {
  return static_cast<std::int8_t>(2 * s + 1);
}

// The scales of both halves of a run.
void SetScales(int run, unsigned first, unsigned second, BlockWide& to) {
  to.scale[2 * run] = OddScale(first & 15);
  to.scale[2 * run + 1] = OddScale(second & 15);
}

// The signs of eight values, of which seven are stored: the number of minus signs is even.
unsigned EightSigns(unsigned seven) {
  return seven | (static_cast<unsigned>(std::popcount(seven)) & 1) << 7;
}

std::int8_t Signed(int magnitude, unsigned signs, int i) {
  return static_cast<std::int8_t>((signs >> i & 1) != 0 ? -magnitude : magnitude);
}

// Eight values of the IQ2 types.
void PutEight(std::uint16_t entry, unsigned signs, std::int8_t* q) {
  constexpr int kMagnitudes[4] = {8, 25, 43, 0};
  for (int i = 0; i < 8; ++i) q[i] = Signed(kMagnitudes[entry >> (2 * i) & 3], signs, i);
}

// Four values of the IQ3 types.
void PutFour(std::uint16_t entry, const std::int8_t (&magnitudes)[8], unsigned signs,
             std::int8_t* q) {
  for (int i = 0; i < 4; ++i) q[i] = Signed(magnitudes[entry >> (4 * i) & 7], signs, i);
}

// Eight values of the IQ1 types, times 8.
void PutTernary(std::uint16_t entry, bool minus, std::int8_t* q) {
  for (int i = 0; i < 8; ++i)
    q[i] = static_cast<std::int8_t>(8 * ((entry >> (2 * i) & 3) - 1) + (minus ? -1 : 1));
}

std::uint32_t WordAt(const void* bytes) {
  std::uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Digit n of the base-3 fraction that a byte of TQ1_0 holds.
int TernaryDigit(std::uint8_t byte, int n) {
  constexpr int kPowers[5] = {1, 3, 9, 27, 81};
  return (byte * kPowers[n] & 255) * 3 >> 8;
}

// Two bits of value i of a block of Q2_K.
void PutTwoBits(int i, int code, BlockQ2_K& to) {
  std::uint8_t& byte = to.qs[i / 128 * kBlock + i % kBlock];
  byte = static_cast<std::uint8_t>(byte | code << (i % 128 / kBlock * 2));
}

// x = d * q - d, of codes that are still 0.
BlockQ2_K TernaryBlock(std::uint16_t d) {
  BlockQ2_K to = {};
  std::memset(to.scales, 0x11, sizeof to.scales);
  to.d = to.dmin = d;
  return to;
}

}  // namespace

BlockWide Widen(const BlockIQ2_XXS& b) {
  BlockWide to;
  to.d = F16ToF32(b.d) * 0.125f;
  for (int run = 0; run < kRuns; ++run) {
    const std::uint32_t codes = WordAt(b.qs + 4 * run), signs = WordAt(b.qs + 4 * run + 2);
    SetScales(run, signs >> 28, signs >> 28, to);
    for (int l = 0; l < 4; ++l)
      PutEight(kIq2XxsGrid[codes >> (8 * l) & 255], EightSigns(signs >> (7 * l) & 127),
               to.q + run * kBlock + 8 * l);
  }
  return to;
}

BlockWide Widen(const BlockIQ2_XS& b) {
  BlockWide to;
  to.d = F16ToF32(b.d) * 0.125f;
  for (int run = 0; run < kRuns; ++run) {
    SetScales(run, b.scales[run], b.scales[run] >> 4, to);
    for (int l = 0; l < 4; ++l) {
      const unsigned code = b.qs[4 * run + l];
      PutEight(kIq2XsGrid[code & 511], EightSigns(code >> 9), to.q + run * kBlock + 8 * l);
    }
  }
  return to;
}

BlockWide Widen(const BlockIQ2_S& b) {
  BlockWide to;
  to.d = F16ToF32(b.d) * 0.125f;
  for (int run = 0; run < kRuns; ++run) {
    SetScales(run, b.scales[run], b.scales[run] >> 4, to);
    for (int l = 0; l < 4; ++l) {
      const int at = 4 * run + l, code = b.qs[at] | (b.qh[run] >> (2 * l) & 3) << 8;
      PutEight(kIq2SGrid[code], b.qs[32 + at], to.q + run * kBlock + 8 * l);
    }
  }
  return to;
}

BlockWide Widen(const BlockIQ3_XXS& b) {
  constexpr std::int8_t kMagnitudes[8] = {4, 12, 20, 28, 36, 44, 52, 62};
  BlockWide to;
  to.d = F16ToF32(b.d) * 0.25f;
  for (int run = 0; run < kRuns; ++run) {
    const std::uint32_t word = WordAt(b.qs + 64 + 4 * run);
    SetScales(run, word >> 28, word >> 28, to);
    for (int l = 0; l < 4; ++l) {
      const unsigned signs = EightSigns(word >> (7 * l) & 127);
      const std::uint8_t* codes = b.qs + 8 * run + 2 * l;
      std::int8_t* q = to.q + run * kBlock + 8 * l;
      PutFour(kIq3XxsGrid[codes[0]], kMagnitudes, signs, q);
      PutFour(kIq3XxsGrid[codes[1]], kMagnitudes, signs >> 4, q + 4);
    }
  }
  return to;
}

BlockWide Widen(const BlockIQ3_S& b) {
  constexpr std::int8_t kMagnitudes[8] = {1, 3, 5, 7, 9, 11, 13, 15};
  BlockWide to;
  to.d = F16ToF32(b.d);
  for (int run = 0; run < kRuns; ++run) {
    const unsigned scale = static_cast<unsigned>(b.scales[run / 2]) >> (run % 2 * 4);
    SetScales(run, scale, scale, to);
    for (int group = 0; group < 8; ++group) {
      const int code = b.qs[8 * run + group] | (b.qh[run] >> group & 1) << 8;
      const unsigned signs = static_cast<unsigned>(b.signs[4 * run + group / 2]) >> (group % 2 * 4);
      PutFour(kIq3SGrid[code], kMagnitudes, signs, to.q + run * kBlock + 4 * group);
    }
  }
  return to;
}

BlockWide Widen(const BlockIQ1_S& b) {
  BlockWide to;
  to.d = F16ToF32(b.d) * 0.125f;
  for (int run = 0; run < kRuns; ++run) {
    const unsigned high = b.qh[run];
    SetScales(run, high >> 12 & 7, high >> 12 & 7, to);
    for (int l = 0; l < 4; ++l) {
      const unsigned code = b.qs[4 * run + l] | (high >> (3 * l) & 7) << 8;
      PutTernary(kIq1Grid[code], high >> 15 != 0, to.q + run * kBlock + 8 * l);
    }
  }
  return to;
}

BlockWide Widen(const BlockIQ1_M& b) {
  std::uint16_t words[4];
  std::memcpy(words, b.scales, sizeof words);
  unsigned half = 0;
  for (int i = 0; i < 4; ++i) half |= static_cast<unsigned>(words[i] >> 12) << (4 * i);
  BlockWide to;
  to.d = F16ToF32(static_cast<std::uint16_t>(half)) * 0.125f;
  for (int run = 0; run < kRuns; ++run) {
    const unsigned scales = static_cast<unsigned>(words[run / 2]) >> (run % 2 * 6);
    SetScales(run, scales & 7, scales >> 3 & 7, to);
    for (int l = 0; l < 4; ++l) {
      const unsigned high = static_cast<unsigned>(b.qh[2 * run + l / 2]) >> (l % 2 * 4);
      const unsigned code = b.qs[4 * run + l] | (high & 7) << 8;
      PutTernary(kIq1Grid[code], (high & 8) != 0, to.q + run * kBlock + 8 * l);
    }
  }
  return to;
}

// Value i of the first 160 is digit i / 32 of byte i % 32; the next 80 likewise with 16 bytes, the
// last 16 with the 4 of qh.
BlockQ2_K Widen(const BlockTQ1_0& b) {
  BlockQ2_K to = TernaryBlock(b.d);
  for (int i = 0; i < 160; ++i) PutTwoBits(i, TernaryDigit(b.qs[i % 32], i / 32), to);
  for (int i = 0; i < 80; ++i) PutTwoBits(160 + i, TernaryDigit(b.qs[32 + i % 16], i / 16), to);
  for (int i = 0; i < 16; ++i) PutTwoBits(240 + i, TernaryDigit(b.qh[i % 4], i / 4), to);
  return to;
}

BlockQ2_K Widen(const BlockTQ2_0& b) {
  BlockQ2_K to = TernaryBlock(b.d);
  std::memcpy(to.qs, b.qs, sizeof to.qs);
  return to;
}

}  // namespace foretoken::tensor
