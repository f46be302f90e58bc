// SPDX-License-Identifier: Apache-2.0
// The code around AMX's tile registers on an emulated unit, against scalar: so it is tested
// wherever there is AVX-512. (Where there is AMX, matmul_test runs the real one.)
#include "kernels/amx/tables.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/matmul_testing.h"

namespace foretoken::kernels {
namespace {

class EmulatedAmx : public testing::TestWithParam<TileType> {
 protected:
  void SetUp() override {
    const std::vector<Isa> isas = AvailableIsas();
    if (std::find(isas.begin(), isas.end(), Isa::kAvx512) == isas.end())
      GTEST_SKIP() << "no AVX-512 here";
  }
  TileType type() const { return GetParam(); }
  auto function() const { return kEmulatedAmx.matmul[static_cast<int>(type())]; }
};

TEST_P(EmulatedAmx, EqualsScalarForEveryNumberOfRowsAndAnyRangeOfTiles) {
  constexpr int kTiles = 5;
  const Matrix matrix(type(), 16 * kTiles - 5, 224, 21);  // seven runs: no whole groups
  const AlignedBytes tiles = matrix.Tiles();
  for (int n_rows = 1; n_rows <= 33; ++n_rows) {
    const Rows rows(n_rows, matrix.k, static_cast<unsigned>(n_rows));
    for (const Range range : {Range{0, kTiles}, Range{2, 4}}) {
      for (const bool accumulate : {false, true}) {
        EXPECT_TRUE(SameBits(
            Multiply(function(), type(), tiles, kTiles, rows, 0, n_rows, range, accumulate),
            Multiply(Isa::kScalar, type(), tiles, kTiles, rows, 0, n_rows, range, accumulate)))
            << n_rows << " rows, tiles " << range.begin << " to " << range.end << ", accumulate "
            << accumulate;
      }
    }
  }
}

TEST_P(EmulatedAmx, EqualsScalarForALongRow) {
  const Matrix matrix(type(), 16, 32 * 1027, 22);
  const AlignedBytes tiles = matrix.Tiles();
  const Rows rows(3, matrix.k, 23);
  EXPECT_TRUE(SameBits(Multiply(function(), type(), tiles, 1, rows, 0, 3, {0, 1}, false),
                       Multiply(Isa::kScalar, type(), tiles, 1, rows, 0, 3, {0, 1}, false)));
}

TEST_P(EmulatedAmx, EqualsScalarAtExtremeScales) {
  const Matrix matrix(type(), 32, 192, 24, true);
  const AlignedBytes tiles = matrix.Tiles();
  for (const float scale : {0.0f, 1e-42f, 1e-34f, 1e25f}) {
    const Rows rows(9, matrix.k, 25, scale);
    EXPECT_TRUE(SameBits(Multiply(function(), type(), tiles, 2, rows, 0, 9, {0, 2}, false),
                         Multiply(Isa::kScalar, type(), tiles, 2, rows, 0, 9, {0, 2}, false)))
        << scale;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EmulatedAmx, testing::ValuesIn(kQuantisedTypes),
                         [](const auto& of) { return TypeName(of.param); });

}  // namespace
}  // namespace foretoken::kernels
