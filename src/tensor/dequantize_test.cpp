// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "tensor/dtype.h"

namespace foretoken::tensor {
namespace {

constexpr std::uint16_t kHalfOne = 0x3c00, kHalfTwo = 0x4000, kHalfQuarter = 0x3400;

template <class Block>
std::vector<float> Values(DType type, const Block& block) {
  std::vector<float> out(static_cast<std::size_t>(InfoOf(type).block_values));
  Dequantize(type, &block, InfoOf(type).block_values, out.data());
  return out;
}

TEST(Dequantize, ReadsPlainFloats) {
  const std::vector<float> x = {1.5f, -2.25f, 0.0f, 1e-30f};
  std::vector<float> out(4);
  Dequantize(DType::kF32, x.data(), 4, out.data());
  EXPECT_EQ(out, x);
  const std::uint16_t half[] = {kHalfOne, 0xc000, 0x0001};
  Dequantize(DType::kF16, half, 3, out.data());
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 3),
            (std::vector<float>{1, -2, 0x1p-24f}));
  const std::uint16_t bfloat[] = {0x3f80, 0xc000};
  Dequantize(DType::kBF16, bfloat, 2, out.data());
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 2), (std::vector<float>{1, -2}));
}

TEST(Dequantize, ReadsQ4_0AndQ4_1WithTheLowNibblesFirst) {
  BlockQ4_0 a{};
  BlockQ4_1 b{};
  a.d = kHalfTwo;
  b.d = kHalfTwo;
  b.m = kHalfQuarter;
  for (int j = 0; j < 16; ++j) a.qs[j] = b.qs[j] = static_cast<std::uint8_t>(j | (15 - j) << 4);
  const auto x = Values(DType::kQ4_0, a), y = Values(DType::kQ4_1, b);
  for (int j = 0; j < 16; ++j) {
    EXPECT_EQ(x[j], 2.0f * static_cast<float>(j - 8));
    EXPECT_EQ(x[j + 16], 2.0f * static_cast<float>(15 - j - 8));
    EXPECT_EQ(y[j], 2.0f * static_cast<float>(j) + 0.25f);
    EXPECT_EQ(y[j + 16], 2.0f * static_cast<float>(15 - j) + 0.25f);
  }
}

TEST(Dequantize, TakesTheFifthBitOfQ5FromItsOwnWord) {
  for (int set = 0; set < 32; ++set) {
    BlockQ5_0 a{};
    BlockQ5_1 b{};
    a.d = kHalfOne;
    b.d = kHalfOne;
    b.m = kHalfTwo;
    a.qh[set / 8] = b.qh[set / 8] = static_cast<std::uint8_t>(1 << (set % 8));
    a.qs[set % 16] = b.qs[set % 16] = static_cast<std::uint8_t>(set < 16 ? 0x05 : 0x50);
    const auto x = Values(DType::kQ5_0, a), y = Values(DType::kQ5_1, b);
    for (int i = 0; i < 32; ++i) {
      EXPECT_EQ(x[i], i == set ? 5.0f : -16.0f);
      EXPECT_EQ(y[i], i == set ? 23.0f : 2.0f);
    }
  }
}

TEST(Dequantize, ReadsQ8_0) {
  BlockQ8_0 b{};
  b.d = kHalfQuarter;
  for (int i = 0; i < 32; ++i) b.qs[i] = static_cast<std::int8_t>(8 * i - 128);
  const auto x = Values(DType::kQ8_0, b);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(x[i], 0.25f * static_cast<float>(8 * i - 128));
}

TEST(Dequantize, ReadsEveryCodeAndExponentOfMXFP4) {
  for (int e = 0; e < 256; ++e) {
    BlockMXFP4 b{};
    b.e = static_cast<std::uint8_t>(e);
    for (int j = 0; j < 16; ++j) b.qs[j] = static_cast<std::uint8_t>(j | (15 - j) << 4);
    const auto x = Values(DType::kMXFP4, b);
    for (int j = 0; j < 16; ++j) {
      const double magnitudes[] = {0, 1, 2, 3, 4, 6, 8, 12};
      const double low = magnitudes[j % 8] * (j < 8 ? 1 : -1);
      const auto value = static_cast<float>(std::ldexp(low, e - 128));
      EXPECT_EQ(x[j], value) << e << " " << j;
      EXPECT_EQ(x[31 - j], value) << e << " " << j;
    }
  }
}

// Packs 8 scales and 8 minima of 6 bits into 12 bytes. The first four lie in bytes of their own.
// The last four have their top bits in the spare bits of the first four.
void PackScales(const int* scale, const int* minimum, std::uint8_t* packed) {
  for (int i = 0; i < 4; ++i) {
    packed[i] = static_cast<std::uint8_t>(scale[i] | (scale[i + 4] >> 4) << 6);
    packed[i + 4] = static_cast<std::uint8_t>(minimum[i] | (minimum[i + 4] >> 4) << 6);
    packed[i + 8] = static_cast<std::uint8_t>((scale[i + 4] & 15) | (minimum[i + 4] & 15) << 4);
  }
}

TEST(Dequantize, ReadsScalesAndNibblesOfQ4_KAndQ5_K) {
  const int scale[8] = {1, 63, 17, 32, 63, 5, 48, 22}, minimum[8] = {0, 3, 63, 40, 33, 63, 16, 9};
  BlockQ4_K a{};
  BlockQ5_K b{};
  a.d = b.d = kHalfTwo;
  a.dmin = b.dmin = kHalfQuarter;
  PackScales(scale, minimum, a.scales);
  PackScales(scale, minimum, b.scales);
  const auto value = [](int i) { return (i * 7 + i / 32) % 32; };
  for (int i = 0; i < 256; ++i) {
    const int at = i / 64 * 32 + i % 32, shift = i / 32 % 2 * 4;
    a.qs[at] = static_cast<std::uint8_t>(a.qs[at] | (value(i) & 15) << shift);
    b.qs[at] = a.qs[at];
    b.qh[i % 32] = static_cast<std::uint8_t>(b.qh[i % 32] | (value(i) >> 4) << (i / 32));
  }
  const auto x = Values(DType::kQ4_K, a), y = Values(DType::kQ5_K, b);
  for (int i = 0; i < 256; ++i) {
    const float d = 2.0f * static_cast<float>(scale[i / 32]);
    const float m = 0.25f * static_cast<float>(minimum[i / 32]);
    EXPECT_EQ(x[i], d * static_cast<float>(value(i) & 15) - m) << i;
    EXPECT_EQ(y[i], d * static_cast<float>(value(i)) - m) << i;
  }
}

TEST(Dequantize, ReadsQ6_K) {
  BlockQ6_K b{};
  b.d = kHalfQuarter;
  for (int i = 0; i < 16; ++i) b.scales[i] = static_cast<std::int8_t>(i * 16 - 128);
  const auto value = [](int i) { return (i * 11 + i / 32) % 64; };
  // Within a half, ql[l] holds values l and l + 64, ql[32 + l] holds l + 32 and l + 96, and qh[l]
  // holds two bits of each.
  for (int half = 0; half < 2; ++half)
    for (int l = 0; l < 32; ++l) {
      const int v0 = value(half * 128 + l), v1 = value(half * 128 + 32 + l);
      const int v2 = value(half * 128 + 64 + l), v3 = value(half * 128 + 96 + l);
      b.ql[half * 64 + l] = static_cast<std::uint8_t>((v0 & 15) | (v2 & 15) << 4);
      b.ql[half * 64 + 32 + l] = static_cast<std::uint8_t>((v1 & 15) | (v3 & 15) << 4);
      b.qh[half * 32 + l] =
          static_cast<std::uint8_t>(v0 >> 4 | (v1 >> 4) << 2 | (v2 >> 4) << 4 | (v3 >> 4) << 6);
    }
  const auto x = Values(DType::kQ6_K, b);
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(x[i],
              0.25f * static_cast<float>(i / 16 * 16 - 128) * static_cast<float>(value(i) - 32))
        << i;
}

// Bytes of a linear congruential generator. The checksums of the values (FNV-1a of their bits, NaN
// and zero each as one number) are those of ggml's conversion of the same bytes, as of llama.cpp
// 0.7.0.
TEST(Dequantize, GivesTheNumbersOfGgml) {
  struct Case {
    DType type;
    std::uint64_t checksum;
  };
  constexpr int kBlocks = 2000;
  for (const Case& c :
       {Case{DType::kQ4_0, 0x3865283bb0974f25u}, Case{DType::kQ6_K, 0xd50bf9d8f2d6533bu},
        Case{DType::kMXFP4, 0x6db0336e292cab25u}, Case{DType::kIQ4_NL, 0x283aca367d4d23a5u},
        Case{DType::kIQ4_XS, 0xa6f22acc5ec49281u}, Case{DType::kQ3_K, 0x9a3aed2662147de5u},
        Case{DType::kQ2_K, 0x2c603825a8eb7fe0u}, Case{DType::kIQ3_S, 0x1fe900d4496290f5u},
        Case{DType::kIQ3_XXS, 0x9728e82b928dcc05u}, Case{DType::kIQ2_S, 0x195a2e9d7bc17771u},
        Case{DType::kIQ2_XS, 0x992bd9e1ff35c7c9u}, Case{DType::kIQ2_XXS, 0x668956962396f9ddu},
        Case{DType::kIQ1_M, 0x9b24fea05184dc45u}, Case{DType::kIQ1_S, 0xe7839c22342a3545u},
        Case{DType::kTQ2_0, 0xbf7df1cdba61a325u}, Case{DType::kTQ1_0, 0xabe3bc4a73ad8325u}}) {
    const DTypeInfo& info = InfoOf(c.type);
    std::vector<unsigned char> bytes(static_cast<std::size_t>(info.block_bytes) * kBlocks);
    std::uint64_t state = 1;
    for (unsigned char& byte : bytes) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      byte = static_cast<unsigned char>(state >> 56);
    }
    std::vector<float> values(static_cast<std::size_t>(info.block_values) * kBlocks);
    Dequantize(c.type, bytes.data(), static_cast<std::int64_t>(values.size()), values.data());
    std::uint64_t checksum = 14695981039346656037u;
    for (const float x : values) {
      const std::uint32_t bits = std::isnan(x) ? 0x7fc00000u
                                 : x == 0      ? 0
                                               : std::bit_cast<std::uint32_t>(x);
      checksum = (checksum ^ bits) * 1099511628211u;
    }
    EXPECT_EQ(checksum, c.checksum) << info.name;
  }
}

TEST(Dequantize, WalksRowsOfManyBlocksAtAnyAddress) {
  for (const DTypeInfo& info : AllDTypes()) {
    const std::size_t bytes = static_cast<std::size_t>(info.block_bytes) * 3;
    std::vector<unsigned char> row(bytes + 1);
    // Exponents below 0x70 in every byte keep the numbers finite, whatever the type.
    for (std::size_t i = 0; i < bytes; ++i) row[i + 1] = static_cast<unsigned char>(i * 29 % 0x70);
    const int n = info.block_values;
    std::vector<float> whole(static_cast<std::size_t>(n) * 3), part(static_cast<std::size_t>(n));
    Dequantize(info.type, row.data() + 1, n * 3, whole.data());
    for (int b = 0; b < 3; ++b) {
      Dequantize(info.type, row.data() + 1 + b * info.block_bytes, n, part.data());
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + b * n, part.size() * sizeof(float)), 0)
          << info.name;
    }
    EXPECT_NE(whole.front(), whole.back()) << info.name;
  }
}

}  // namespace
}  // namespace foretoken::tensor
