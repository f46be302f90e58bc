// SPDX-License-Identifier: Apache-2.0
#include "tensor/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/normal_testing.h"

namespace foretoken::tensor {
namespace {

const std::vector<DType> kBlockTypes = [] {
  std::vector<DType> types;
  for (const DTypeInfo& info : AllDTypes())
    if (info.block_values > 1 && !info.widened) types.push_back(info.type);
  return types;
}();

std::vector<unsigned char> Blocks(DType type, const std::vector<float>& row,
                                  Scales how = Scales::kAsFiles) {
  const DTypeInfo& info = InfoOf(type);
  std::vector<unsigned char> blocks(row.size() / info.block_values * info.block_bytes);
  Quantize(type, row.data(), static_cast<std::int64_t>(row.size()), blocks.data(), how);
  return blocks;
}

std::vector<float> RoundTrip(DType type, const std::vector<float>& row,
                             Scales how = Scales::kAsFiles) {
  std::vector<float> out(row.size());
  Dequantize(type, Blocks(type, row, how).data(), static_cast<std::int64_t>(row.size()),
             out.data());
  return out;
}

double MeanSquare(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    sum += difference * difference;
  }
  return sum / static_cast<double>(a.size());
}

// The root of the mean squared error, relative to the size of the values.
double RelativeError(DType type, const std::vector<float>& row, Scales how = Scales::kAsFiles) {
  return std::sqrt(MeanSquare(RoundTrip(type, row, how), row) /
                   MeanSquare(row, std::vector<float>(row.size())));
}

std::vector<float> Gaussian(std::size_t n, float mean = 0, float spread = 1) {
  return Normal(n, 7, spread, mean);
}

TEST(Quantize, ErrorOfGaussianValuesIsThatOfEachTypesBits) {
  // The bounds follow from the error of a uniform quantiser, d / sqrt(12), where the 32 values of a
  // block set d (about 2.07 spreads to each side). Types with a search stay below it.
  struct Case {
    DType type;
    double least, most;
  };
  const std::vector<float> row = Gaussian(256 * 400);
  for (const Case& c : {Case{DType::kQ8_0, 0.0040, 0.0060}, Case{DType::kQ4_0, 0.080, 0.095},
                        Case{DType::kQ4_1, 0.070, 0.085}, Case{DType::kQ5_0, 0.038, 0.047},
                        Case{DType::kQ5_1, 0.034, 0.041}, Case{DType::kQ4_K, 0.060, 0.077},
                        Case{DType::kQ5_K, 0.030, 0.039}, Case{DType::kQ6_K, 0.014, 0.021},
                        Case{DType::kMXFP4, 0.10, 0.13}, Case{DType::kIQ4_NL, 0.072, 0.080},
                        Case{DType::kIQ4_XS, 0.072, 0.081}, Case{DType::kQ3_K, 0.14, 0.16},
                        Case{DType::kQ2_K, 0.25, 0.29}}) {
    const double error = RelativeError(c.type, row);
    EXPECT_GT(error, c.least) << InfoOf(c.type).name;
    EXPECT_LT(error, c.most) << InfoOf(c.type).name;
  }
}

TEST(Quantize, FindsTheNumbersThatABlockWasMadeOf) {
  // Rows that some block of the type holds exactly, with every code in use.
  const auto expect_exact = [](DType type, const auto& value_at) {
    std::vector<float> row(256);
    for (int i = 0; i < 256; ++i) row[i] = value_at(i);
    EXPECT_EQ(RoundTrip(type, row), row) << InfoOf(type).name;
  };
  const auto code = [](int i, int codes) { return static_cast<float>(i * 7 % codes); };
  expect_exact(DType::kQ8_0, [](int i) { return 0.5f * static_cast<float>(i % 2 ? i / 2 : -127); });
  expect_exact(DType::kQ4_0, [&](int i) { return 0.25f * (code(i, 16) - 8); });
  expect_exact(DType::kQ5_0, [&](int i) { return 0.25f * (code(i, 32) - 16); });
  expect_exact(DType::kQ4_1, [&](int i) { return 0.25f * code(i, 16) + 3; });
  expect_exact(DType::kQ5_1, [&](int i) { return 0.25f * code(i, 32) - 9; });
  expect_exact(DType::kIQ4_NL,
               [](int i) { return static_cast<float>(kIq4Values[i * 7 % 16]) / 16; });
  // Run r: the scale is a multiple of d = 1/16; that of the largest has the code -32.
  expect_exact(DType::kIQ4_XS, [](int i) {
    return static_cast<float>((-32 + 3 * (i / 32)) * kIq4Values[i * 7 % 16]) / 16;
  });
  // Runs of 16, each with its outermost code, -4.
  expect_exact(DType::kQ3_K, [](int i) {
    return static_cast<float>((-32 + 4 * (i / 16)) * (i % 16 == 3 ? -4 : (i * 3 + 5) % 8 - 4)) / 16;
  });
  // Scales and minima are multiples of 1/16, the largest of them 15.
  expect_exact(DType::kQ2_K, [](int i) {
    return static_cast<float>((15 - i / 32) * (i * 3 % 4) - (15 - i / 16)) / 16;
  });
  expect_exact(DType::kMXFP4, [](int i) {
    return static_cast<float>(kMxfp4Values[i * 7 % 16]) * (i / 32 % 2 ? 0x1p-20f : 4.0f);
  });
  // Run r: scale and minimum are multiples of d = dmin = 1/16, the largest of them 63.
  const auto line = [&](int codes) {
    return [&code, codes](int i) {
      const int run = i / 32;
      return static_cast<float>(63 - 5 * run) / 16 * code(i, codes) -
             static_cast<float>(63 - 8 * run) / 16;
    };
  };
  expect_exact(DType::kQ4_K, line(16));
  expect_exact(DType::kQ5_K, line(32));
  // Runs of 16, each with its outermost value, -32. The run of the largest scale has another sign,
  // because its code is -128.
  expect_exact(DType::kQ6_K, [](int i) {
    const int run = i / 16;
    const auto scale = static_cast<float>(-128 + 5 * run) / 16;
    return scale * static_cast<float>(i % 16 == 3 ? -32 : (i * 11 + run) % 63 - 31);
  });
}

TEST(Quantize, KQuantsSearchBeyondTheEvenDivision) {
  const std::vector<float> row = Gaussian(256 * 100);
  // Without a search these scales would be worse than those of Q4_1 and Q5_1, which are not rounded
  // to six bits.
  EXPECT_LT(RelativeError(DType::kQ4_K, row), 0.93 * RelativeError(DType::kQ4_1, row));
  EXPECT_LT(RelativeError(DType::kQ5_K, row), 0.97 * RelativeError(DType::kQ5_1, row));
}

TEST(Quantize, ClosestScalesLowerTheErrorOfTwoTypesAndLeaveTheOthers) {
  const std::vector<float> row = Gaussian(256 * 100);
  for (const DType type : kBlockTypes) {
    if (type == DType::kQ4_0 || type == DType::kQ5_0 || type == DType::kQ3_K)
      EXPECT_LT(RelativeError(type, row, Scales::kClosest), 0.98 * RelativeError(type, row))
          << InfoOf(type).name;
    else
      EXPECT_EQ(Blocks(type, row, Scales::kClosest), Blocks(type, row)) << InfoOf(type).name;
  }
  const std::vector<float> zeros(256), tiny(256, 1e-30f), one = [] {
    std::vector<float> values(256);
    values[37] = -3;
    return values;
  }();
  for (const DType type : {DType::kQ4_0, DType::kQ5_0, DType::kQ3_K})
    for (const std::vector<float>& values : {zeros, tiny, one}) {
      const std::vector<float> back = RoundTrip(type, values, Scales::kClosest);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(back[i], values[i], 1e-2) << InfoOf(type).name << " " << i;
    }
}

TEST(Quantize, RunsFarFromZeroKeepTheirDigits) {
  const std::vector<float> row = Gaussian(256 * 20, -100, 1);
  // The minimum is rounded to six bits too, and the spread must still be resolved.
  const double spread = std::sqrt(MeanSquare(RoundTrip(DType::kQ4_K, row), row));
  EXPECT_LT(spread, 0.5);
  for (const DType type : {DType::kQ4_1, DType::kQ5_1})
    EXPECT_LT(std::sqrt(MeanSquare(RoundTrip(type, row), row)), 0.1) << InfoOf(type).name;
}

TEST(Quantize, ZerosAndConstantsComeBack) {
  for (const DType type : kBlockTypes) {
    const std::string_view name = InfoOf(type).name;
    for (const float x : RoundTrip(type, std::vector<float>(512, 0.0f))) EXPECT_EQ(x, 0.0f) << name;
    for (const float value : {1.0f, -1.0f})
      for (const float x : RoundTrip(type, std::vector<float>(256, value)))
        EXPECT_NEAR(x, value, 0.002f) << name;
  }
}

TEST(Quantize, ValuesOfAnySizeGiveFiniteNumbersWithinTheTypesRange) {
  // Below about 1e-5 the halves that hold the scales lose digits: the bound is their step times 63
  // codes.
  constexpr float kLeastStep = 0x1p-24f * 63;
  for (const DType type : kBlockTypes)
    for (const float size : {1e-44f, 1e-38f, 1e-20f, 1e-9f, 1e-5f, 1.0f, 6e4f}) {
      std::vector<float> row = Gaussian(256);
      for (float& x : row) x *= size / 4;
      const std::vector<float> back = RoundTrip(type, row);
      for (std::size_t i = 0; i < row.size(); ++i)
        ASSERT_NEAR(back[i], row[i], 1.2 * size + kLeastStep)
            << InfoOf(type).name << " at size " << size;
    }
}

TEST(Quantize, ValuesBeyondAHalfsRangeShowAsInfinities) {
  for (const DType type : kBlockTypes) {
    if (type == DType::kMXFP4) continue;  // its scale reaches as far as a float
    std::vector<float> row(256, 0.0f);
    row[5] = 3e38f;
    row[6] = -3e38f;
    const std::vector<float> back = RoundTrip(type, row);
    EXPECT_FALSE(std::isfinite(back[5])) << InfoOf(type).name;
  }
  EXPECT_TRUE(std::isinf(RoundTrip(DType::kF16, {65520.0f})[0]));
}

TEST(Quantize, ABlockDependsOnItsOwnValuesAlone) {
  for (const DType type : kBlockTypes) {
    const DTypeInfo& info = InfoOf(type);
    const std::vector<float> row = Gaussian(512);
    const std::vector<unsigned char> all = Blocks(type, row);
    std::vector<unsigned char> joined;
    for (std::size_t i = 0; i < row.size(); i += info.block_values) {
      const auto block = Blocks(type, {row.begin() + i, row.begin() + i + info.block_values});
      joined.insert(joined.end(), block.begin(), block.end());
    }
    EXPECT_EQ(all, joined) << info.name;
  }
}

TEST(Quantize, WritesToAnyAddressAndNothingMore) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (info.widened) continue;
    const std::vector<float> row = Gaussian(info.block_values);
    const std::vector<unsigned char> expected = Blocks(info.type, row);
    std::vector<unsigned char> bytes(expected.size() + 2, 0xAB);
    Quantize(info.type, row.data(), info.block_values, bytes.data() + 1);
    EXPECT_EQ(std::memcmp(bytes.data() + 1, expected.data(), expected.size()), 0) << info.name;
    EXPECT_EQ(bytes.front(), 0xAB) << info.name;
    EXPECT_EQ(bytes.back(), 0xAB) << info.name;
  }
}

TEST(Quantize, FloatsAreRoundedToNearestEven) {
  const std::vector<float> row = {1.0f, -0.5f, 1.0f + 0x1p-11f, 1.0f + 0x1.8p-10f, 0x1p-24f};
  EXPECT_EQ(RoundTrip(DType::kF32, row), row);
  EXPECT_EQ(RoundTrip(DType::kF16, row),
            (std::vector<float>{1.0f, -0.5f, 1.0f, 1.0f + 0x1p-9f, 0x1p-24f}));
  EXPECT_EQ(RoundTrip(DType::kBF16, {1.0f + 0x1p-8f, 1.0f + 0x1.8p-7f}),
            (std::vector<float>{1.0f, 1.0f + 0x1p-6f}));
}

}  // namespace
}  // namespace foretoken::tensor
