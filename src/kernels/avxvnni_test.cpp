// SPDX-License-Identifier: Apache-2.0
// The products of avxvnni/ in AVX-512's coding of vpdpbusd, against scalar, bit for bit. Processors
// with AVX-VNNI itself run its own table in matmul_test too.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels_testing.h"

namespace foretoken::kernels {
#if defined(__x86_64__)
extern const Kernels kAvxVnniEvex;

namespace {

using tensor::TileType;

constexpr int kTiles = 5;

bool ProcessorHasAvx512Vnni() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

struct TypeInfo {
  TileType type;
  const char* name;
  int k;  // of a tile
  std::size_t bytes;
  std::size_t d;  // where the tile's 16 scales begin
  int n_halves;   // 16, or 32 with the minima that follow them
  bool six_bits;  // whether scales of runs lie in the 256 bytes before d
};
template <typename Tile>
constexpr TypeInfo Info(TileType type, const char* name, int k, int n_halves, bool six_bits) {
  return {type, name, k, sizeof(Tile), offsetof(Tile, d), n_halves, six_bits};
}
constexpr TypeInfo kTypes[] = {Info<tensor::TileQ8_0>(TileType::kQ8_0, "Q8_0", 32, 16, false),
                               Info<tensor::TileQ4_0>(TileType::kQ4_0, "Q4_0", 32, 16, false),
                               Info<tensor::TileQ4_1>(TileType::kQ4_1, "Q4_1", 32, 32, false),
                               Info<tensor::TileQ5_0>(TileType::kQ5_0, "Q5_0", 32, 16, false),
                               Info<tensor::TileQ5_1>(TileType::kQ5_1, "Q5_1", 32, 32, false),
                               Info<tensor::TileQ4_K>(TileType::kQ4_K, "Q4_K", 256, 32, true),
                               Info<tensor::TileQ5_K>(TileType::kQ5_K, "Q5_K", 256, 32, true),
                               Info<tensor::TileQ6_K>(TileType::kQ6_K, "Q6_K", 256, 16, false)};

// kTiles strips of tiles of random bits, or of bytes all equal to `fill`, with finite halves.
std::vector<std::uint8_t> Strips(const TypeInfo& info, int k, std::mt19937& random, int fill = -1) {
  const std::size_t n = static_cast<std::size_t>(kTiles) * static_cast<std::size_t>(k / info.k);
  std::vector<std::uint8_t> strips(n * info.bytes);
  for (std::uint8_t& byte : strips)
    byte = static_cast<std::uint8_t>(fill >= 0 ? static_cast<unsigned>(fill) : random());
  for (std::size_t tile = 0; tile < n; ++tile) {
    std::uint8_t* d = strips.data() + tile * info.bytes + info.d;
    for (int i = 0; i < info.n_halves; ++i) {
      const auto half = static_cast<std::uint16_t>((random() & 0x83ffu) | (random() % 31 << 10));
      std::memcpy(d + 2 * i, &half, 2);
    }
    if (info.six_bits)
      for (int i = 1; i <= 256; ++i) d[-i] &= 63;
  }
  return strips;
}

struct Rows {
  // Random activations, or all equal to `fill`.
  Rows(int n_rows, int inner, std::mt19937& random, int fill = 0)
      : n(n_rows),
        k(inner),
        xq(static_cast<std::size_t>(n) * static_cast<std::size_t>(k)),
        xd(xq.size() / 32),
        xs(xd.size() * 2) {
    for (std::size_t i = 0; i < xq.size(); ++i) {
      xq[i] = static_cast<std::int8_t>(fill != 0 ? fill : static_cast<int>(random() % 255) - 127);
      if (i % 32 < 16) xs[i / 32 * 2] += xq[i];
      xs[i / 32 * 2 + 1] += xq[i];
    }
    for (float& d : xd) d = static_cast<float>(random() % 1000 + 1) / 977.0f;
  }
  int n, k;
  std::vector<std::int8_t> xq;
  std::vector<float> xd;
  std::vector<std::int32_t> xs;
};

std::vector<float> Multiply(const Kernels& kernels, TileType type,
                            const std::vector<std::uint8_t>& strips, const Rows& rows,
                            bool accumulate) {
  constexpr int kOutputs = kTiles * tensor::kTileOutputs;
  std::vector<float> y(static_cast<std::size_t>(rows.n * kOutputs), 0.75f);
  MatmulArgs args = {};
  args.tiles = strips.data();
  args.k = rows.k;
  args.tile_begin = 1;
  args.tile_end = kTiles;
  args.n_rows = rows.n;
  args.xq = rows.xq.data();
  args.xd = rows.xd.data();
  args.xs = rows.xs.data();
  args.y = y.data();
  args.y_stride = kOutputs;
  args.accumulate = accumulate;
  kernels.matmul[static_cast<int>(type)](args);
  return y;
}

class AvxVnniInAvx512Coding : public testing::TestWithParam<TypeInfo> {
 protected:
  void SetUp() override {
    if (!ProcessorHasAvx512Vnni()) GTEST_SKIP() << "needs AVX-512 VL and VNNI";
  }
  testing::AssertionResult EqualsScalar(const std::vector<std::uint8_t>& strips, const Rows& rows,
                                        bool accumulate = false) const {
    return SameBits(Multiply(kAvxVnniEvex, GetParam().type, strips, rows, accumulate),
                    Multiply(Scalar(), GetParam().type, strips, rows, accumulate));
  }
};

TEST_P(AvxVnniInAvx512Coding, MatmulEqualsScalarForEveryNumberOfRows) {
  std::mt19937 random(1);
  const std::vector<std::uint8_t> strips = Strips(GetParam(), 512, random);
  for (int n_rows = 1; n_rows <= 17; ++n_rows) {
    const Rows rows(n_rows, 512, random);
    for (const bool accumulate : {false, true})
      EXPECT_TRUE(EqualsScalar(strips, rows, accumulate)) << n_rows << " rows, " << accumulate;
  }
}

TEST_P(AvxVnniInAvx512Coding, MatmulEqualsScalarForALongRow) {
  // Longer than the part of a row that is packed at a time (1024 runs).
  std::mt19937 random(2);
  const int k = 32 * 1032;
  const std::vector<std::uint8_t> strips = Strips(GetParam(), k, random);
  EXPECT_TRUE(EqualsScalar(strips, Rows(3, k, random)));
}

TEST_P(AvxVnniInAvx512Coding, MatmulDoesNotSaturateOnTheLargestIntegers) {
  std::mt19937 random(3);
  for (const int weight : {0x00, 0x7f, 0x80, 0xff, 0x88}) {
    const std::vector<std::uint8_t> strips = Strips(GetParam(), 256, random, weight);
    for (const int activation : {-127, 127})
      EXPECT_TRUE(EqualsScalar(strips, Rows(4, 256, random, activation)))
          << weight << " " << activation;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AvxVnniInAvx512Coding, testing::ValuesIn(kTypes),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
#endif
}  // namespace foretoken::kernels
