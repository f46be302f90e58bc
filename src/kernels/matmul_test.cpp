// SPDX-License-Identifier: Apache-2.0
// Repack against a naive reading of the file's rows, matmul against doubles, and the promises of
// kernels.h: every instruction set equals scalar bit for bit, and a row does not know which rows
// share its pass.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/dispatch.h"
#include "kernels/repack.h"
#include "tensor/dtype.h"

namespace foretoken::kernels {
namespace {

using tensor::DType;
using tensor::IsQuantised;
using tensor::TileType;

constexpr TileType kTypes[] = {TileType::kF32,  TileType::kF16,  TileType::kBF16,
                               TileType::kQ8_0, TileType::kQ4_0, TileType::kQ6_K};

std::string TypeName(TileType type) {
  constexpr const char* kNames[] = {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q6_K"};
  return kNames[static_cast<int>(type)];
}

DType FileType(TileType type) {
  constexpr DType kFileTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16,
                                  DType::kQ8_0, DType::kQ4_0, DType::kQ6_K};
  return kFileTypes[static_cast<int>(type)];
}

// The least inner size from k on that the type allows.
int InnerSize(TileType type, int k) {
  const int block = type == TileType::kQ6_K ? 256 : 1;
  return (k + block - 1) / block * block;
}

// A matrix in file layout. `wild` draws scales over the whole range of finite halves, else all
// values are about 1.
struct Matrix {
  Matrix(TileType tile_type, int outputs, int inner, unsigned seed, bool wild = false)
      : type(tile_type), n_out(outputs), k(InnerSize(tile_type, inner)) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    const std::size_t n = static_cast<std::size_t>(n_out) * static_cast<std::size_t>(k);
    if (!IsQuantised(type)) {
      const auto value = [&] {
        return uniform(random) * (wild ? std::exp2(uniform(random) * 14) : 1.0f);
      };
      for (std::size_t i = 0; i < n; ++i) Append(value());
      return;
    }
    const auto& info = tensor::InfoOf(FileType(type));
    const float largest_d = type == TileType::kQ6_K ? 1.0f / 4096 : 1.0f / 64;
    bytes.resize(n / static_cast<std::size_t>(info.block_values) * BlockBytes());
    for (std::byte& q : bytes) q = static_cast<std::byte>(random());
    for (std::size_t at = 0; at < bytes.size(); at += BlockBytes()) {
      const std::uint16_t d =
          wild ? static_cast<std::uint16_t>((random() & 0x83ffu) | (random() % 31 << 10))
               : tensor::F32ToF16(uniform(random) * largest_d);
      std::memcpy(&bytes[at + ScaleAt()], &d, 2);
    }
  }

  void Append(float v) {
    const std::uint16_t half = type == TileType::kF16 ? tensor::F32ToF16(v) : tensor::F32ToBF16(v);
    type == TileType::kF32 ? AppendBytes(&v, 4) : AppendBytes(&half, 2);
  }
  void AppendBytes(const void* p, std::size_t n) {
    bytes.insert(bytes.end(), static_cast<const std::byte*>(p),
                 static_cast<const std::byte*>(p) + n);
  }

  // Of quantised types: a block's size, and where its d lies.
  std::size_t BlockBytes() const {
    return static_cast<std::size_t>(tensor::InfoOf(FileType(type)).block_bytes);
  }
  std::size_t ScaleAt() const {
    return type == TileType::kQ6_K ? offsetof(tensor::BlockQ6_K, d) : 0;
  }

  std::vector<float> Values() const {
    std::vector<float> values(static_cast<std::size_t>(n_out) * static_cast<std::size_t>(k));
    tensor::Dequantize(FileType(type), bytes.data(), static_cast<std::int64_t>(values.size()),
                       values.data());
    return values;
  }

  AlignedBytes Tiles() const {
    AlignedBytes tiles(TiledBytes(type, n_out, k));
    Repack(type, bytes.data(), n_out, k, 0, TilesFor(n_out), tiles.data());
    return tiles;
  }

  TileType type;
  int n_out, k;
  std::vector<std::byte> bytes;
};

// Rows of activations, as floats and as quantised blocks (a free choice of int8 and scales, not the
// image of the floats).
struct Rows {
  Rows(int rows, int inner, unsigned seed, float scale = 1.0f)
      : n(rows),
        k(inner),
        x_stride(inner + 16),
        x(At(rows, inner + 16)),
        xq(At(rows, inner)),
        xd(At(rows, inner / 32)),
        xs(At(rows, inner / 32 * 2)) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& v : x.span()) v = scale * uniform(random);
    for (float& v : xd.span()) v = scale * std::fabs(uniform(random));
    for (std::int8_t& v : xq.span())
      v = static_cast<std::int8_t>(static_cast<int>(random() % 255) - 127);
    Sum();
  }
  static std::size_t At(int a, int b) {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
  }
  void Sum() {
    for (std::size_t i = 0; i < xs.size(); ++i) {
      xs[i] = 0;
      for (std::size_t j = 0; j < (i % 2 == 0 ? 16 : 32); ++j) xs[i] += xq[i / 2 * 32 + j];
    }
  }

  int n, k;
  std::int64_t x_stride;
  AlignedBuffer<float> x;
  AlignedBuffer<std::int8_t> xq;
  AlignedBuffer<float> xd;
  AlignedBuffer<std::int32_t> xs;
};

struct Range {
  int begin, end;
};

constexpr float kUntouched = -12345.5f;

// y of rows [row, row + n_rows) over a buffer that held `before`.
std::vector<float> Multiply(Isa isa, TileType type, const AlignedBytes& tiles, int n_tiles,
                            const Rows& rows, int row, int n_rows, Range range, bool accumulate,
                            float before = kUntouched) {
  const std::int64_t y_stride = 16 * n_tiles + 16;
  AlignedBuffer<float> y(Rows::At(n_rows, 16 * n_tiles + 16));
  for (float& v : y.span()) v = before;
  MatmulArgs args = {};
  args.tiles = tiles.data();
  args.k = rows.k;
  args.tile_begin = range.begin;
  args.tile_end = range.end;
  args.n_rows = n_rows;
  if (IsQuantised(type)) {
    args.xq = rows.xq.data() + std::int64_t{row} * rows.k;
    args.xd = rows.xd.data() + std::int64_t{row} * (rows.k / 32);
    args.xs = rows.xs.data() + std::int64_t{row} * (rows.k / 32 * 2);
  } else {
    args.x = rows.x.data() + row * rows.x_stride;
    args.x_stride = rows.x_stride;
  }
  args.y = y.data();
  args.y_stride = y_stride;
  args.accumulate = accumulate;
  KernelsFor(isa).matmul[static_cast<int>(type)](args);
  return {y.data(), y.data() + y.size()};
}

testing::AssertionResult SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size())
    return testing::AssertionFailure() << "sizes " << a.size() << " and " << b.size();
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0)
      return testing::AssertionFailure() << "at " << i << ": " << a[i] << " and " << b[i];
  return testing::AssertionSuccess();
}

// ---- Repack -------------------------------------------------------------------------------------

// The value of output o at k, read from tiles by the words of block_layout.h.
float TileValue(TileType type, const AlignedBytes& tiles, int inner, int output, int k) {
  const std::byte* strip =
      tiles.data() + static_cast<std::size_t>(output / 16) * StripBytes(type, inner);
  const int o = output % 16, in = k % 32;
  const std::size_t at = Rows::At(k, 16) + static_cast<std::size_t>(o);
  switch (type) {
    case TileType::kF32:
      return reinterpret_cast<const float*>(strip)[at];
    case TileType::kF16:
      return tensor::F16ToF32(reinterpret_cast<const std::uint16_t*>(strip)[at]);
    case TileType::kBF16:
      return tensor::BF16ToF32(reinterpret_cast<const std::uint16_t*>(strip)[at]);
    case TileType::kQ8_0: {
      const auto& tile = reinterpret_cast<const tensor::TileQ8_0*>(strip)[k / 32];
      return tensor::F16ToF32(tile.d[o]) * static_cast<float>(tile.q[in / 4][o][in % 4] - 128);
    }
    case TileType::kQ4_0: {
      const auto& tile = reinterpret_cast<const tensor::TileQ4_0*>(strip)[k / 32];
      const int byte = tile.q[in / 8][o][in % 4];
      return tensor::F16ToF32(tile.d[o]) *
             static_cast<float>((in % 8 < 4 ? byte & 15 : byte >> 4) - 8);
    }
    case TileType::kQ6_K: {
      const auto& tile = reinterpret_cast<const tensor::TileQ6_K*>(strip)[k / 32];
      const int byte = tile.ql[in / 8][o][in % 4], low = in % 8 < 4 ? byte & 15 : byte >> 4;
      const int half = in / 16, high = tile.qh[half][o][in % 4] >> (in % 16 / 4 * 2) & 3;
      return tensor::F16ToF32(tile.d[o]) * tile.scale[half][o] *
             static_cast<float>((low | high << 4) - 32);
    }
  }
  return NAN;
}

class PerType : public testing::TestWithParam<TileType> {};

TEST_P(PerType, RepackKeepsEveryValueAndFillsUpWithZeros) {
  const Matrix matrix(GetParam(), 37, 96, 1, true);
  const AlignedBytes tiles = matrix.Tiles();
  const std::vector<float> values = matrix.Values();
  for (int o = 0; o < 48; ++o)
    for (int k = 0; k < matrix.k; ++k)
      ASSERT_EQ(TileValue(GetParam(), tiles, matrix.k, o, k),
                o < 37 ? values[Rows::At(o, matrix.k) + static_cast<std::size_t>(k)] : 0.0f)
          << o << " " << k;
}

TEST_P(PerType, RepackOfARangeWritesItsStripsAndNoOther) {
  const Matrix matrix(GetParam(), 16 * 4 + 3, 64, 2);
  const AlignedBytes whole = matrix.Tiles();
  const std::size_t strip = StripBytes(GetParam(), matrix.k);
  AlignedBytes part(5 * strip);
  std::memset(part.data(), 0x5a, part.size_bytes());
  Repack(GetParam(), matrix.bytes.data(), matrix.n_out, matrix.k, 1, 3, part.data());
  for (std::size_t i = 0; i < part.size_bytes(); ++i)
    ASSERT_EQ(part.data()[i], i >= strip && i < 3 * strip ? whole.data()[i] : std::byte{0x5a}) << i;
}

TEST_P(PerType, ScalarIsCloseToTheProductInDoubles) {
  const Matrix matrix(GetParam(), 21, 320, 3);
  const Rows rows(2, matrix.k, 4);
  const std::vector<float> w = matrix.Values();
  const std::vector<float> y =
      Multiply(Isa::kScalar, GetParam(), matrix.Tiles(), 2, rows, 0, 2, {0, 2}, false);
  for (int r = 0; r < 2; ++r) {
    for (int o = 0; o < 32; ++o) {
      double sum = 0, size = 0;
      for (int k = 0; k < matrix.k && o < 21; ++k) {
        const std::size_t at = Rows::At(r, matrix.k) + static_cast<std::size_t>(k);
        const double x = IsQuantised(GetParam()) ? double{rows.xd[at / 32]} * rows.xq[at]
                                                 : rows.x[r * rows.x_stride + k];
        const double term = x * w[Rows::At(o, matrix.k) + static_cast<std::size_t>(k)];
        sum += term;
        size += std::fabs(term);
      }
      EXPECT_NEAR(y[Rows::At(r, 48) + static_cast<std::size_t>(o)], sum, 1e-5 * size)
          << r << " " << o;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PerType, testing::ValuesIn(kTypes),
                         [](const auto& of) { return TypeName(of.param); });

// ---- Bits ---------------------------------------------------------------------------------------

class Matmul : public testing::TestWithParam<std::tuple<Isa, TileType>> {
 protected:
  Isa isa() const { return std::get<0>(GetParam()); }
  TileType type() const { return std::get<1>(GetParam()); }
  std::vector<float> All(Isa isa, const AlignedBytes& tiles, int n_tiles, const Rows& rows,
                         Range range, bool accumulate, float before = kUntouched) const {
    return Multiply(isa, type(), tiles, n_tiles, rows, 0, rows.n, range, accumulate, before);
  }
};

TEST_P(Matmul, EqualsScalarForEveryNumberOfRowsAndAnyRangeOfTiles) {
  constexpr int kTiles = 19;
  const Matrix matrix(type(), 16 * kTiles - 5, 96, 5);
  const AlignedBytes tiles = matrix.Tiles();
  for (int n_rows = 1; n_rows <= 17; ++n_rows) {
    const Rows rows(n_rows, matrix.k, static_cast<unsigned>(n_rows));
    for (const Range range :
         {Range{0, kTiles}, Range{3, 4}, Range{2, 2}, Range{1, 18}, Range{16, 19}}) {
      for (const bool accumulate : {false, true}) {
        EXPECT_TRUE(SameBits(All(isa(), tiles, kTiles, rows, range, accumulate),
                             All(Isa::kScalar, tiles, kTiles, rows, range, accumulate)))
            << n_rows << " rows, tiles " << range.begin << " to " << range.end << ", accumulate "
            << accumulate;
      }
    }
  }
}

TEST_P(Matmul, GivesARowTheSameBitsAloneAsInCompany) {
  constexpr int kTiles = 3, kRows = 40;
  const Matrix matrix(type(), 16 * kTiles, 160, 6);
  const AlignedBytes tiles = matrix.Tiles();
  const Rows rows(kRows, matrix.k, 7);
  for (const int n_rows : {2, 3, 5, 8, 12, 13, 16, 17, 31, 40}) {
    const std::vector<float> together =
        Multiply(isa(), type(), tiles, kTiles, rows, 0, n_rows, {0, kTiles}, false);
    for (int row = 0; row < n_rows; ++row) {
      const std::vector<float> alone =
          Multiply(isa(), type(), tiles, kTiles, rows, row, 1, {0, kTiles}, false);
      const auto begin =
          together.begin() + std::int64_t{row} * static_cast<std::int64_t>(alone.size());
      EXPECT_TRUE(SameBits({begin, begin + static_cast<std::int64_t>(alone.size())}, alone))
          << row << " of " << n_rows;
    }
  }
}

TEST_P(Matmul, EqualsScalarAtExtremeScales) {
  const Matrix matrix(type(), 48, 192, 8, true);
  const AlignedBytes tiles = matrix.Tiles();
  for (const float scale : {0.0f, 1e-42f, 1e-38f, 1e-34f, 1e10f, 1e25f}) {
    const Rows rows(5, matrix.k, 9, scale);
    EXPECT_TRUE(SameBits(All(isa(), tiles, 3, rows, {0, 3}, false),
                         All(Isa::kScalar, tiles, 3, rows, {0, 3}, false)))
        << scale;
  }
}

TEST_P(Matmul, AddsTheWholeSumToWhatWasThere) {
  const Matrix matrix(type(), 32, 64, 10);
  const AlignedBytes tiles = matrix.Tiles();
  const Rows rows(3, matrix.k, 11);
  const std::vector<float> fresh = All(isa(), tiles, 2, rows, {0, 2}, false, 0.0f);
  const std::vector<float> added = All(isa(), tiles, 2, rows, {0, 2}, true, 3.25f);
  for (std::size_t i = 0; i < fresh.size(); ++i) EXPECT_EQ(added[i], 3.25f + fresh[i]) << i;
}

TEST_P(Matmul, EqualsScalarForALongRow) {
  // Longer than the part of a row that the quantised kernels pack at a time (1024 blocks).
  const Matrix matrix(type(), 32, 32 * 1027, 12);
  const AlignedBytes tiles = matrix.Tiles();
  const Rows rows(2, matrix.k, 13);
  EXPECT_TRUE(SameBits(All(isa(), tiles, 2, rows, {0, 2}, true),
                       All(Isa::kScalar, tiles, 2, rows, {0, 2}, true)));
}

class FloatMatmul : public Matmul {};
class QuantisedMatmul : public Matmul {};

TEST_P(FloatMatmul, EqualsScalarForAnyInnerSize) {
  for (const int k : {1, 2, 3, 5, 31, 37}) {
    const Matrix matrix(type(), 48, k, 14);
    const AlignedBytes tiles = matrix.Tiles();
    const Rows rows(7, k, 15);
    EXPECT_TRUE(SameBits(All(isa(), tiles, 3, rows, {0, 3}, false),
                         All(Isa::kScalar, tiles, 3, rows, {0, 3}, false)))
        << k;
  }
}

TEST_P(QuantisedMatmul, DoesNotSaturateOnTheLargestIntegers) {
  // All weights at an end of their range against all activations at an end of theirs.
  for (const int weight : {0x00, 0x7f, 0x80, 0xff, 0x88}) {
    for (const int activation : {-127, 127}) {
      Matrix matrix(type(), 16, 64, 16);
      for (std::size_t i = 0; i < matrix.bytes.size(); ++i) {
        const std::size_t at = i % matrix.BlockBytes() - matrix.ScaleAt();
        if (at != 0 && at != 1) matrix.bytes[i] = static_cast<std::byte>(weight);
      }
      const AlignedBytes tiles = matrix.Tiles();
      Rows rows(4, matrix.k, 17);
      for (std::int8_t& q : rows.xq.span()) q = static_cast<std::int8_t>(activation);
      rows.Sum();
      EXPECT_TRUE(SameBits(All(isa(), tiles, 1, rows, {0, 1}, false),
                           All(Isa::kScalar, tiles, 1, rows, {0, 1}, false)))
          << weight << " " << activation;
    }
  }
}

// Of Q6_K: a scale of -128 and weights of -32 make the largest sum there is, 127 * 2^17.
TEST(MatmulQ6_K, IsExactOnTheLargestSums) {
  for (const Isa isa : AvailableIsas()) {
    for (const int scale : {-128, 127}) {
      for (const int low : {0x00, 0xff}) {
        for (const int activation : {-127, 127}) {
          Matrix matrix(TileType::kQ6_K, 16, 256, 18);
          tensor::BlockQ6_K block = {};
          std::memset(block.ql, low, sizeof block.ql);
          std::memset(block.qh, low, sizeof block.qh);
          std::memset(block.scales, scale, sizeof block.scales);
          block.d = 0x3c00;  // 1
          for (std::size_t b = 0; b < 16; ++b)
            std::memcpy(&matrix.bytes[b * sizeof block], &block, sizeof block);
          Rows rows(1, matrix.k, 19);
          for (std::int8_t& q : rows.xq.span()) q = static_cast<std::int8_t>(activation);
          for (float& d : rows.xd.span()) d = 1;
          rows.Sum();
          const std::vector<float> y =
              Multiply(isa, TileType::kQ6_K, matrix.Tiles(), 1, rows, 0, 1, {0, 1}, false);
          for (std::size_t o = 0; o < 16; ++o)
            EXPECT_EQ(y[o], static_cast<float>((low == 0 ? -32 : 31) * 256 * scale * activation))
                << Name(isa) << " " << scale << " " << low << " " << activation;
        }
      }
    }
  }
}

std::string CaseName(const testing::TestParamInfo<std::tuple<Isa, TileType>>& of) {
  return std::string(Name(std::get<0>(of.param))) + "_" + TypeName(std::get<1>(of.param));
}
INSTANTIATE_TEST_SUITE_P(All, Matmul,
                         testing::Combine(testing::ValuesIn(AvailableIsas()),
                                          testing::ValuesIn(kTypes)),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(All, FloatMatmul,
                         testing::Combine(testing::ValuesIn(AvailableIsas()),
                                          testing::Values(TileType::kF32, TileType::kF16,
                                                          TileType::kBF16)),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(All, QuantisedMatmul,
                         testing::Combine(testing::ValuesIn(AvailableIsas()),
                                          testing::Values(TileType::kQ8_0, TileType::kQ4_0,
                                                          TileType::kQ6_K)),
                         CaseName);

}  // namespace
}  // namespace foretoken::kernels
