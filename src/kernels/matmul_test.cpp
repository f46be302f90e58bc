// SPDX-License-Identifier: Apache-2.0
// Tests Repack against a naive reading of the file's rows, matmul against doubles, and the promises
// of kernels.h: every instruction set equals scalar bit for bit, and a row does not depend on the
// other rows of its pass.
#include "kernels/matmul_testing.h"

namespace foretoken::kernels {
namespace {

// ---- Repack -------------------------------------------------------------------------------------

// The parts of block_layout.h for output o at k of a run: its low four bits, its fifth bit, and the
// high two bits of Q6_K.
int Nibble(const std::uint8_t (&q)[4][16][4], int o, int k) {
  const int byte = q[k / 8][o][k % 4];
  return k % 8 < 4 ? byte & 15 : byte >> 4;
}
int Fifth(const std::uint8_t (&qh)[16][4], int o, int k) {
  return (qh[o][k % 4] >> (k / 4) & 1) * 16;
}

float Half(std::uint16_t bits) {
  return tensor::F16ToF32(bits);
}

// x by the formula of the type. Scale and minimum are those of the run.
float TileValue(const tensor::TileQ8_0& t, int o, int, int k) {
  return Half(t.d[o]) * static_cast<float>(t.q[k / 4][o][k % 4] - 128);
}
float TileValue(const tensor::TileQ4_0& t, int o, int, int k) {
  return Half(t.d[o]) * static_cast<float>(Nibble(t.q, o, k) - 8);
}
float TileValue(const tensor::TileQ4_1& t, int o, int, int k) {
  return Half(t.d[o]) * static_cast<float>(Nibble(t.q, o, k)) + Half(t.m[o]);
}
float TileValue(const tensor::TileQ5_0& t, int o, int, int k) {
  return Half(t.d[o]) * static_cast<float>(Nibble(t.q, o, k) + Fifth(t.qh, o, k) - 16);
}
float TileValue(const tensor::TileQ5_1& t, int o, int, int k) {
  return Half(t.d[o]) * static_cast<float>(Nibble(t.q, o, k) + Fifth(t.qh, o, k)) + Half(t.m[o]);
}
float TileValue(const tensor::TileQ4_K& t, int o, int run, int k) {
  const float s = Half(t.d[o]) * t.scale[run][o], m = Half(t.dmin[o]) * t.minimum[run][o];
  return s * static_cast<float>(Nibble(t.runs[run].q, o, k)) - m;
}
float TileValue(const tensor::TileQ5_K& t, int o, int run, int k) {
  const float s = Half(t.d[o]) * t.scale[run][o], m = Half(t.dmin[o]) * t.minimum[run][o];
  return s * static_cast<float>(Nibble(t.runs[run].q, o, k) + Fifth(t.runs[run].qh, o, k)) - m;
}
float TileValue(const tensor::TileQ6_K& t, int o, int run, int k) {
  const int high = t.runs[run].qh[k / 16][o][k % 4] >> (k % 16 / 4 * 2) & 3;
  return Half(t.d[o]) * t.scale[run][k / 16][o] *
         static_cast<float>((Nibble(t.runs[run].q, o, k) | high << 4) - 32);
}

float TileValue(const tensor::TileMXFP4& t, int o, int, int k) {
  return std::ldexp(static_cast<float>(tensor::kMxfp4Values[Nibble(t.q, o, k)]), t.e[o] - 128);
}

float TileValue(const tensor::TileIQ4_NL& t, int o, int, int k) {
  return Half(t.d[o]) * static_cast<float>(tensor::kIq4Values[Nibble(t.q, o, k)]);
}
float TileValue(const tensor::TileIQ4_XS& t, int o, int run, int k) {
  return Half(t.d[o]) * static_cast<float>(t.scale[run][o] - 32) *
         static_cast<float>(tensor::kIq4Values[Nibble(t.runs[run].q, o, k)]);
}
// Where the bits of the eight words of a run lie, the lowest one first: 8 times the plane, plus the bit.
constexpr int kThreeBits[8][3] = {{0, 1, 2}, {8, 9, 10},   {16, 17, 18}, {6, 7, 15},
                                  {3, 4, 5}, {11, 12, 13}, {19, 20, 21}, {22, 23, 14}};
float TileValue(const tensor::TileQ3_K& t, int o, int run, int k) {
  int q = 0;
  for (int bit = 0; bit < 3; ++bit) {
    const int at = kThreeBits[k / 4][bit];
    q |= (t.runs[run].q[at / 8][o][k % 4] >> (at % 8) & 1) << bit;
  }
  return Half(t.d[o]) * t.scale[run][o][k / 16] * static_cast<float>(q - 4);
}
float TileValue(const tensor::TileQ2_K& t, int o, int run, int k) {
  const int scale = t.scale[run][o][k / 16];
  const int q = t.runs[run].q[k / 4 % 2][o][k % 4] >> (k / 8 * 2) & 3;
  return Half(t.d[o]) * static_cast<float>(scale % 16 * q) -
         Half(t.dmin[o]) * static_cast<float>(scale / 16);
}

float TileValue(const tensor::TileWide& t, int o, int run, int k) {
  return t.d[o] * t.scale[run][k / 16][o] *
         static_cast<float>(t.runs[run].q[k / 4][o][k % 4] - 128);
}

// The value of output o at k.
template <typename Tile>
float InStrip(const std::byte* strip, TileType type, int o, int k) {
  const int values = tensor::TileValues(type);
  return TileValue(reinterpret_cast<const Tile*>(strip)[k / values], o, k % values / 32, k % 32);
}
// That value of a type that this file does not know: the scalar product with a row that is 1 at k
// and 0 elsewhere.
[[gnu::noinline]] float ValueByScalar(TileType type, const AlignedBytes& tiles, int inner,
                                      int output, int k) {
  Rows rows(1, inner, 0);
  rows.FillWith(0);
  rows.xq[static_cast<std::size_t>(k)] = 1;
  rows.Sum();
  for (float& d : rows.xd.span()) d = 1;
  const int n_tiles = static_cast<int>(tiles.size_bytes() / StripBytes(type, inner));
  const int tile = output / 16;
  return Multiply(Isa::kScalar, type, tiles, n_tiles, rows, 0, 1, {tile, tile + 1},
                  false)[static_cast<std::size_t>(output)];
}
float TileValue(TileType type, const AlignedBytes& tiles, int inner, int output, int k) {
  const std::byte* strip =
      tiles.data() + static_cast<std::size_t>(output / 16) * StripBytes(type, inner);
  const int o = output % 16;
  const std::size_t at = Rows::At(k, 16) + static_cast<std::size_t>(o);
  switch (type) {
    case TileType::kF32:
      return reinterpret_cast<const float*>(strip)[at];
    case TileType::kF16:
      return tensor::F16ToF32(reinterpret_cast<const std::uint16_t*>(strip)[at]);
    case TileType::kBF16:
      return tensor::BF16ToF32(reinterpret_cast<const std::uint16_t*>(strip)[at]);
    case TileType::kQ8_0:
      return InStrip<tensor::TileQ8_0>(strip, type, o, k);
    case TileType::kQ4_0:
      return InStrip<tensor::TileQ4_0>(strip, type, o, k);
    case TileType::kQ4_1:
      return InStrip<tensor::TileQ4_1>(strip, type, o, k);
    case TileType::kQ5_0:
      return InStrip<tensor::TileQ5_0>(strip, type, o, k);
    case TileType::kQ5_1:
      return InStrip<tensor::TileQ5_1>(strip, type, o, k);
    case TileType::kQ4_K:
      return InStrip<tensor::TileQ4_K>(strip, type, o, k);
    case TileType::kQ5_K:
      return InStrip<tensor::TileQ5_K>(strip, type, o, k);
    case TileType::kQ6_K:
      return InStrip<tensor::TileQ6_K>(strip, type, o, k);
    case TileType::kMXFP4:
      return InStrip<tensor::TileMXFP4>(strip, type, o, k);
    case TileType::kIQ4_NL:
      return InStrip<tensor::TileIQ4_NL>(strip, type, o, k);
    case TileType::kIQ4_XS:
      return InStrip<tensor::TileIQ4_XS>(strip, type, o, k);
    case TileType::kQ3_K:
      return InStrip<tensor::TileQ3_K>(strip, type, o, k);
    case TileType::kQ2_K:
      return InStrip<tensor::TileQ2_K>(strip, type, o, k);
    case TileType::kWide:
      return InStrip<tensor::TileWide>(strip, type, o, k);
    default:
      return ValueByScalar(type, tiles, inner, output, k);
  }
}

TEST(Repack, WidenedTypesKeepEveryValue) {
  std::mt19937 random(20);
  for (const tensor::DTypeInfo& info : tensor::AllDTypes()) {
    if (!info.widened) continue;
    constexpr int kOutputs = 21, kK = 1024;
    const int n_blocks = kOutputs * kK / info.block_values;
    std::vector<std::byte> bytes(Rows::At(n_blocks, info.block_bytes));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 0x70);  // finite halves
    std::vector<float> values(Rows::At(kOutputs, kK));
    tensor::Dequantize(info.type, bytes.data(), kOutputs * kK, values.data());
    AlignedBytes tiles(TiledBytes(info.tile, kOutputs, kK));
    Repack(info.type, bytes.data(), kOutputs, kK, 0, TilesFor(kOutputs), tiles.data());
    for (int o = 0; o < kOutputs; ++o)
      for (int k = 0; k < kK; ++k)
        ASSERT_EQ(TileValue(info.tile, tiles, kK, o, k),
                  values[Rows::At(o, kK) + static_cast<std::size_t>(k)])
            << info.name << " " << o << " " << k;
  }
}

// Bytes as a hostile file may have them: scales that are not finite, codes that no quantiser writes.
std::vector<std::vector<std::byte>> AnyBytes(std::size_t n) {
  std::mt19937 random(24);
  std::vector<std::vector<std::byte>> all;
  for (const unsigned value : {0x00u, 0xFFu, 0x7Fu, 0x7Cu, 0x80u})
    all.emplace_back(n, static_cast<std::byte>(value));
  for (int i = 0; i < 3; ++i) {
    auto& bytes = all.emplace_back(n);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  }
  return all;
}

// Equal numbers, or both none.
bool IsSame(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::memcmp(&a, &b, sizeof a) == 0 || a == b;
}

// The data of a safetensors file begin at any byte.
TEST(Repack, RowsOfFloatsMayLieAnywhere) {
  for (const TileType type : {TileType::kF32, TileType::kF16, TileType::kBF16}) {
    const Matrix matrix(type, 37, 200, 25);
    const AlignedBytes expected = matrix.Tiles();
    for (const std::size_t shift : {1u, 2u, 3u}) {
      std::vector<std::byte> bytes(matrix.bytes.size() + shift);
      std::copy(matrix.bytes.begin(), matrix.bytes.end(),
                bytes.begin() + static_cast<std::ptrdiff_t>(shift));
      AlignedBytes tiles(expected.size_bytes());
      Repack(FileType(type).type, bytes.data() + shift, matrix.n_out, matrix.k, 0,
             TilesFor(matrix.n_out), tiles.data());
      EXPECT_EQ(std::memcmp(tiles.data(), expected.data(), expected.size_bytes()), 0);
    }
  }
}

TEST(Repack, BlocksOfAnyBitsKeepTheirValues) {
  for (const tensor::DTypeInfo& info : tensor::AllDTypes()) {
    constexpr int kOutputs = 17, kK = 512;
    const int n_blocks = kOutputs * kK / info.block_values;
    for (const auto& bytes : AnyBytes(Rows::At(n_blocks, info.block_bytes))) {
      std::vector<float> values(Rows::At(kOutputs, kK));
      tensor::Dequantize(info.type, bytes.data(), kOutputs * kK, values.data());
      AlignedBytes tiles(TiledBytes(info.tile, kOutputs, kK));
      Repack(info.type, bytes.data(), kOutputs, kK, 0, TilesFor(kOutputs), tiles.data());
      for (int o = 0; o < kOutputs; ++o)
        for (int k = 0; k < kK; ++k) {
          const float value = values[Rows::At(o, kK) + static_cast<std::size_t>(k)];
          const float in_tile = TileValue(info.tile, tiles, kK, o, k);
          ASSERT_EQ(std::isfinite(value), std::isfinite(in_tile))
              << info.name << " " << o << " " << k;
          if (std::isfinite(value)) {
            ASSERT_EQ(value, in_tile) << info.name << " " << o << " " << k;
          }
        }
    }
  }
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
  Repack(FileType(GetParam()).type, matrix.bytes.data(), matrix.n_out, matrix.k, 1, 3, part.data());
  for (std::size_t i = 0; i < part.size_bytes(); ++i)
    ASSERT_EQ(part.data()[i], i >= strip && i < 3 * strip ? whole.data()[i] : std::byte{0x5a}) << i;
}

TEST_P(PerType, ScalarIsCloseToTheProductInDoubles) {
  const Matrix matrix(GetParam(), 21, 320, 3);
  const Rows rows(2, matrix.k, 4);
  const std::vector<float> w = matrix.Values();
  const std::vector<float> y =
      Multiply(Isa::kScalar, GetParam(), matrix.Tiles(), 2, rows, 0, 2, {0, 2}, false);
  for (int r = 0; r < 2; ++r)
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

INSTANTIATE_TEST_SUITE_P(Types, PerType, testing::ValuesIn(AllTypes()),
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
  auto EqualsScalar(const AlignedBytes& tiles, int n_tiles, const Rows& rows, Range range,
                    bool accumulate = false) const {
    return IdenticalBits(All(isa(), tiles, n_tiles, rows, range, accumulate),
                         All(Isa::kScalar, tiles, n_tiles, rows, range, accumulate));
  }
};

TEST_P(Matmul, EqualsScalarForEveryNumberOfRowsAndAnyRangeOfTiles) {
  constexpr int kTiles = 19;
  const Matrix matrix(type(), 16 * kTiles - 5, 96, 5);
  const AlignedBytes tiles = matrix.Tiles();
  std::vector<int> numbers = {32, 39, 45};  // for tables that have a product for wide passes
  for (int n_rows = 1; n_rows <= 17; ++n_rows) numbers.push_back(n_rows);
  for (const int n_rows : numbers) {
    const Rows rows(n_rows, matrix.k, static_cast<unsigned>(n_rows));
    for (const Range range :
         {Range{0, kTiles}, Range{3, 4}, Range{2, 2}, Range{1, 18}, Range{16, 19}})
      for (const bool accumulate : {false, true})
        EXPECT_TRUE(EqualsScalar(tiles, kTiles, rows, range, accumulate))
            << n_rows << " rows, tiles " << range.begin << " to " << range.end << ", accumulate "
            << accumulate;
  }
}

TEST_P(Matmul, GivesARowTheSameBitsAloneAsInCompany) {
  constexpr int kTiles = 3, kRows = 40;
  const Matrix matrix(type(), 16 * kTiles, 160, 6);
  const AlignedBytes tiles = matrix.Tiles();
  const Rows rows(kRows, matrix.k, 7);
  for (const int n_rows : {2, 3, 5, 8, 12, 13, 15, 16, 17, 31, 40}) {
    const std::vector<float> together =
        Multiply(isa(), type(), tiles, kTiles, rows, 0, n_rows, {0, kTiles}, false);
    for (int row = 0; row < n_rows; ++row) {
      const std::vector<float> alone =
          Multiply(isa(), type(), tiles, kTiles, rows, row, 1, {0, kTiles}, false);
      const auto begin =
          together.begin() + std::int64_t{row} * static_cast<std::int64_t>(alone.size());
      EXPECT_TRUE(IdenticalBits({begin, begin + static_cast<std::int64_t>(alone.size())}, alone))
          << row << " of " << n_rows;
    }
  }
}

TEST_P(Matmul, ReadsTheRowsThatAListNames) {
  constexpr int kTiles = 3, kRows = 37;
  const Matrix matrix(type(), 16 * kTiles, 160, 20);
  const AlignedBytes tiles = matrix.Tiles();
  const Rows rows(kRows, matrix.k, 21);
  std::vector<std::int32_t> list;
  for (int i = 0; i < 45; ++i) list.push_back((i * i + 5 * i + 3) % kRows);  // some come twice
  const auto matmul = KernelsFor(isa()).matmul[static_cast<int>(type())];
  for (const int n_rows : {1, 2, 3, 5, 9, 16, 17, 33, 45}) {
    const std::vector<float> named = Multiply(matmul, type(), tiles, kTiles, rows, 0, n_rows,
                                              {1, kTiles}, false, kUntouched, list.data());
    for (int i = 0; i < n_rows; ++i) {
      const std::vector<float> alone =
          Multiply(isa(), type(), tiles, kTiles, rows, list[static_cast<std::size_t>(i)], 1,
                   {1, kTiles}, false);
      const auto begin = named.begin() + std::int64_t{i} * static_cast<std::int64_t>(alone.size());
      EXPECT_TRUE(IdenticalBits({begin, begin + static_cast<std::int64_t>(alone.size())}, alone))
          << i << " of " << n_rows;
    }
  }
}

TEST_P(Matmul, EqualsScalarAtExtremeScales) {
  const Matrix matrix(type(), 48, 192, 8, true);
  const AlignedBytes tiles = matrix.Tiles();
  for (const float scale : {0.0f, 1e-42f, 1e-38f, 1e-34f, 1e10f, 1e25f}) {
    const Rows rows(5, matrix.k, 9, scale);
    EXPECT_TRUE(EqualsScalar(tiles, 3, rows, {0, 3})) << scale;
  }
}

TEST_P(Matmul, EqualsScalarForBlocksOfAnyBits) {
  Matrix matrix(type(), 48, 512, 22);
  for (auto& bytes : AnyBytes(matrix.bytes.size())) {
    matrix.bytes = std::move(bytes);
    const AlignedBytes tiles = matrix.Tiles();
    for (const int n_rows : {1, 5, 33}) {
      const Rows rows(n_rows, matrix.k, 23);
      const auto values = All(isa(), tiles, 3, rows, {0, 3}, false),
                 expected = All(Isa::kScalar, tiles, 3, rows, {0, 3}, false);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_TRUE(IsSame(values[i], expected[i])) << values[i] << " " << expected[i];
    }
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
  // Rows that are longer than the part that quantised products pack at a time (1024 blocks).
  const Matrix matrix(type(), 32, 32 * 1027, 12);
  const AlignedBytes tiles = matrix.Tiles();
  const Rows rows(2, matrix.k, 13);
  EXPECT_TRUE(EqualsScalar(tiles, 2, rows, {0, 2}, true));
}

class FloatMatmul : public Matmul {};
class QuantisedMatmul : public Matmul {};

TEST_P(FloatMatmul, EqualsScalarForAnyInnerSize) {
  for (const int k : {1, 2, 3, 5, 31, 37}) {
    const Matrix matrix(type(), 48, k, 14);
    const AlignedBytes tiles = matrix.Tiles();
    const Rows rows(7, k, 15);
    EXPECT_TRUE(EqualsScalar(tiles, 3, rows, {0, 3})) << k;
  }
}

TEST_P(QuantisedMatmul, DoesNotSaturateOnTheLargestIntegers) {
  // All weights at one end of their range meet all activations at one end of theirs.
  for (const int weight : {0x00, 0x7f, 0x80, 0xff, 0x88})
    for (const int activation : {-127, 127}) {
      Matrix matrix(type(), 16, 64, 16);
      matrix.FillWith(static_cast<std::byte>(weight));
      const AlignedBytes tiles = matrix.Tiles();
      Rows rows(4, matrix.k, 17);
      rows.FillWith(static_cast<std::int8_t>(activation));
      EXPECT_TRUE(EqualsScalar(tiles, 1, rows, {0, 1})) << weight << " " << activation;
    }
}

// For Q6_K a scale of -128 and weights of -32 make the largest possible sum, 127 * 2^17.
TEST(MatmulQ6_K, IsExactOnTheLargestSums) {
  for (const Isa isa : AvailableIsas())
    for (const int scale : {-128, 127})
      for (const int low : {0x00, 0xff})
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
          rows.FillWith(static_cast<std::int8_t>(activation));
          for (float& d : rows.xd.span()) d = 1;
          const std::vector<float> y =
              Multiply(isa, TileType::kQ6_K, matrix.Tiles(), 1, rows, 0, 1, {0, 1}, false);
          for (std::size_t o = 0; o < 16; ++o)
            EXPECT_EQ(y[o], static_cast<float>((low == 0 ? -32 : 31) * 256 * scale * activation))
                << Name(isa) << " " << scale << " " << low << " " << activation;
        }
}

std::string CaseName(const testing::TestParamInfo<std::tuple<Isa, TileType>>& of) {
  return std::string(Name(std::get<0>(of.param))) + "_" + TypeName(std::get<1>(of.param));
}
INSTANTIATE_TEST_SUITE_P(All, Matmul,
                         testing::Combine(testing::ValuesIn(AvailableIsas()),
                                          testing::ValuesIn(AllTypes())),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(All, FloatMatmul,
                         testing::Combine(testing::ValuesIn(AvailableIsas()),
                                          testing::ValuesIn(kFloatTypes)),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(All, QuantisedMatmul,
                         testing::Combine(testing::ValuesIn(AvailableIsas()),
                                          testing::ValuesIn(QuantisedTypes())),
                         CaseName);

}  // namespace
}  // namespace foretoken::kernels
