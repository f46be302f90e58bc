// SPDX-License-Identifier: Apache-2.0
#include "engine/step/prompt_rows.h"

#include <gtest/gtest.h>

namespace foretoken::engine {
namespace {

TEST(PromptRows, AreAFixedNumberUntilACostIsKnown) {
  PromptRows rows(256);
  EXPECT_EQ(rows.Most(1000, true), PromptRows::kUnknown);
  rows.Record(64, 5000, 0);  // says nothing: what it would have cost without is not known
  EXPECT_EQ(rows.Most(1000, true), PromptRows::kUnknown);
  EXPECT_EQ(PromptRows(40).Most(0, false), 40);
}

TEST(PromptRows, KeepAPassWithinItsFactorOfAPlainOne) {
  for (const double row_us : {20.0, 50.0, 100.0}) {
    PromptRows rows(512);
    for (int i = 0; i < 40; ++i) {
      const int n = rows.Most(1000, true);
      rows.Record(n, 1000 + n * row_us, 1000);
    }
    const double pass_us = 1000 + rows.Most(1000, true) * row_us;
    EXPECT_LE(pass_us, PromptRows::kFactor * 1000);
    EXPECT_GT(pass_us, 0.9 * PromptRows::kFactor * 1000);
    EXPECT_GT(rows.Most(1000, false), rows.Most(1000, true));
    EXPECT_GT(rows.Most(2000, true), rows.Most(1000, true));  // a wider batch may wait longer
  }
}

TEST(PromptRows, StayBetweenTheLeastAndTheMost) {
  PromptRows dear(256), cheap(256);
  dear.Record(64, 1e6, 1000);
  cheap.Record(64, 1000, 1000);
  EXPECT_EQ(dear.Most(1000, true), PromptRows::kLeast);
  EXPECT_EQ(cheap.Most(1000, true), 256);
}

TEST(PromptRows, AreNotMovedFarByOneSlowPass) {
  PromptRows rows(512);
  for (int i = 0; i < 20; ++i) rows.Record(64, 1000 + 64 * 50, 1000);
  const int before = rows.Most(1000, true);
  rows.Record(64, 1e6, 1000);
  EXPECT_GE(rows.Most(1000, true), before * 3 / 4);
}

}  // namespace
}  // namespace foretoken::engine
