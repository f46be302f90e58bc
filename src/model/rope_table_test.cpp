// SPDX-License-Identifier: Apache-2.0
#include "model/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretoken::model {
namespace {

RopeConfig Plain() {
  return {.interleaved = true, .n_rot = 8, .freq_base = 10000};
}

double AngleAt(const RopeTable& table, int position, int i) {
  return std::atan2(table.Sin(position)[i], table.Cos(position)[i]);
}

TEST(RopeTable, TurnsEachPairByItsOwnFrequency) {
  RopeTable table(Plain(), 10, {});
  table.Extend(10);
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(table.Cos(0)[i], 1, 1e-7);
    EXPECT_NEAR(table.Cos(3)[i], std::cos(3 * std::pow(10000.0, -i / 4.0)), 1e-6);
    EXPECT_NEAR(table.Sin(3)[i], std::sin(3 * std::pow(10000.0, -i / 4.0)), 1e-6);
  }
}

TEST(RopeTable, LinearScalingStretchesPositions) {
  RopeConfig config = Plain();
  config.freq_scale = 0.25;
  RopeTable scaled(config, 20, {}), plain(Plain(), 20, {});
  scaled.Extend(20), plain.Extend(20);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(scaled.Cos(16)[i], plain.Cos(4)[i], 1e-6);
}

TEST(RopeTable, FrequencyFactorsDivideEachFrequency) {
  const std::vector<float> factors = {1, 2, 4, 8};
  RopeTable scaled(Plain(), 20, factors), plain(Plain(), 20, {});
  scaled.Extend(20), plain.Extend(20);
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(AngleAt(scaled, 1, i),
                AngleAt(plain, 1, i) / static_cast<double>(factors[static_cast<std::size_t>(i)]),
                1e-6);
}

// Peng et al. 2023: the fastest dimensions keep their frequency, the slowest are interpolated by
// the factor, and magnitudes grow with the factor.
TEST(RopeTable, YarnKeepsFastDimensionsAndInterpolatesSlowOnes) {
  RopeConfig config{.interleaved = false,
                    .n_rot = 64,
                    .freq_base = 10000,
                    .freq_scale = 0.25,
                    .yarn = true,
                    .original_context = 2048};
  RopeTable yarn(config, 4, {});
  RopeConfig plain_config = config;
  plain_config.yarn = false;
  plain_config.freq_scale = 1;
  RopeTable plain(plain_config, 4, {});
  yarn.Extend(4), plain.Extend(4);
  EXPECT_NEAR(AngleAt(yarn, 1, 0), AngleAt(plain, 1, 0), 1e-6);
  EXPECT_NEAR(AngleAt(yarn, 1, 31), AngleAt(plain, 1, 31) / 4, 1e-7);
  EXPECT_NEAR(std::hypot(yarn.Cos(1)[5], yarn.Sin(1)[5]), 1 + 0.1 * std::log(4.0), 1e-6);
  double last_ratio = 1;  // the ramp between them only falls
  for (int i = 0; i < 32; ++i) {
    const double ratio = AngleAt(yarn, 1, i) / AngleAt(plain, 1, i);
    EXPECT_LE(ratio, last_ratio + 1e-5);
    last_ratio = ratio;
  }
}

}  // namespace
}  // namespace foretoken::model
