// SPDX-License-Identifier: Apache-2.0
// Tests the products for instruction sets that few processors have. Stand-ins that every processor
// with AVX-512 VNNI can run take their place: AVX-VNNI in AVX-512's coding of the same instruction,
// and the code around AMX's tile registers on an emulated unit. Each must equal scalar bit for bit.
// (A processor that has the real instructions also runs them in matmul_test.)

#include <tuple>

#include "kernels/matmul_testing.h"
#include "kernels/parts.h"

namespace foretoken::kernels {

namespace {

class StandIn : public testing::TestWithParam<std::tuple<const Kernels*, TileType>> {
 protected:
  void SetUp() override {
    const std::vector<Isa> isas = AvailableIsas();
    if (std::find(isas.begin(), isas.end(), Isa::kAvx512) == isas.end())
      GTEST_SKIP() << "no AVX-512 VNNI here";
  }
  TileType type() const { return std::get<1>(GetParam()); }
  auto function() const { return std::get<0>(GetParam())->matmul[static_cast<int>(type())]; }
  // Checks that the stand-in and scalar agree on all rows.
  testing::AssertionResult EqualsScalar(const AlignedBytes& tiles, int n_tiles, const Rows& rows,
                                        Range range, bool accumulate) const {
    return IdenticalBits(
        Multiply(function(), type(), tiles, n_tiles, rows, 0, rows.n, range, accumulate),
        Multiply(Isa::kScalar, type(), tiles, n_tiles, rows, 0, rows.n, range, accumulate));
  }
};

TEST_P(StandIn, EqualsScalarForEveryNumberOfRowsAndAnyRangeOfTiles) {
  constexpr int kTiles = 5;
  const Matrix matrix(type(), 16 * kTiles - 5, 224, 21);  // seven runs: the last group is not whole
  const AlignedBytes tiles = matrix.Tiles();
  for (int n_rows = 1; n_rows <= 33; ++n_rows) {
    const Rows rows(n_rows, matrix.k, static_cast<unsigned>(n_rows));
    for (const Range range : {Range{0, kTiles}, Range{2, 4}})
      for (const bool accumulate : {false, true})
        EXPECT_TRUE(EqualsScalar(tiles, kTiles, rows, range, accumulate))
            << n_rows << " rows, tiles " << range.begin << " to " << range.end << ", accumulate "
            << accumulate;
  }
}

TEST_P(StandIn, EqualsScalarForALongRow) {
  const Matrix matrix(type(), 16, 32 * 1027, 22);
  EXPECT_TRUE(EqualsScalar(matrix.Tiles(), 1, Rows(3, matrix.k, 23), {0, 1}, false));
}

TEST_P(StandIn, EqualsScalarAtExtremeScales) {
  const Matrix matrix(type(), 32, 192, 24, true);
  const AlignedBytes tiles = matrix.Tiles();
  for (const float scale : {0.0f, 1e-42f, 1e-34f, 1e25f})
    EXPECT_TRUE(EqualsScalar(tiles, 2, Rows(9, matrix.k, 25, scale), {0, 2}, false)) << scale;
}

TEST_P(StandIn, DoesNotSaturateOnTheLargestIntegers) {
  for (const int weight : {0x00, 0x7f, 0x80, 0xff, 0x88})
    for (const int activation : {-127, 127}) {
      Matrix matrix(type(), 16, 64, 26);
      matrix.FillWith(static_cast<std::byte>(weight));
      Rows rows(4, matrix.k, 27);
      rows.FillWith(static_cast<std::int8_t>(activation));
      EXPECT_TRUE(EqualsScalar(matrix.Tiles(), 1, rows, {0, 1}, false))
          << weight << " " << activation;
    }
}

std::string NameOf(const testing::TestParamInfo<StandIn::ParamType>& of) {
  return (std::get<0>(of.param) == &amx::kEmulatedMatmul ? "amx_" : "avxvnni_") +
         TypeName(std::get<1>(of.param));
}
INSTANTIATE_TEST_SUITE_P(AvxVnni, StandIn,
                         testing::Combine(testing::Values(&avxvnni::kEvexMatmul),
                                          testing::ValuesIn(TypesOf(avxvnni::kEvexMatmul))),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Amx, StandIn,
                         testing::Combine(testing::Values(&amx::kEmulatedMatmul),
                                          testing::ValuesIn(TypesOf(amx::kEmulatedMatmul))),
                         NameOf);

}  // namespace
}  // namespace foretoken::kernels
