// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cost_table.h"

#include <gtest/gtest.h>

namespace foretoken::calibrate {
namespace {

PassCost Point(int rows, int context, double us) {
  return {.rows = rows, .context = context, .us = {us, us - 1, us + 1}};
}

// 100 + 10 (rows - 1) + context / 10, but bent at 4 rows: 8 rows cost 200 more than the line.
std::vector<PassCost> Grid() {
  std::vector<PassCost> costs;
  for (const int context : {1000, 0})
    for (const int rows : {8, 1, 4})
      costs.push_back(
          Point(rows, context, 100 + 10 * (rows - 1) + context / 10 + (rows == 8 ? 200 : 0)));
  return costs;
}

TEST(CostTable, GivesMeasuredPointsAsTheyAre) {
  const CostTable table(Grid());
  for (const PassCost& cost : Grid()) {
    const auto found = table.At(cost.rows, cost.context);
    EXPECT_DOUBLE_EQ(found.us, cost.us.median) << cost.rows << " rows, " << cost.context;
    EXPECT_TRUE(found.measured);
  }
}

TEST(CostTable, InterpolatesOnBothAxes) {
  const CostTable table(Grid());
  EXPECT_DOUBLE_EQ(table.At(2, 0).us, 110);
  EXPECT_DOUBLE_EQ(table.At(1, 250).us, 125);
  EXPECT_DOUBLE_EQ(table.At(3, 500).us, 170);
  EXPECT_DOUBLE_EQ(table.At(6, 0).us, (130 + 370) / 2.0);  // on the steeper side of the bend
  EXPECT_TRUE(table.At(3, 500).measured);
}

TEST(CostTable, GoesOnBeyondItsEndsAndSaysSo) {
  const CostTable table(Grid());
  EXPECT_DOUBLE_EQ(table.At(12, 0).us, 370 + 240);
  EXPECT_DOUBLE_EQ(table.At(1, 3000).us, 400);
  EXPECT_FALSE(table.At(12, 0).measured);
  EXPECT_FALSE(table.At(1, 1001).measured);
  EXPECT_FALSE(table.At(0, 0).measured);
  EXPECT_DOUBLE_EQ(table.At(0, 0).us, 100);
  EXPECT_FALSE(table.At(1, -1).measured);
}

// Noise may make the last point cheaper than the one before; costs beyond must not sink with it.
TEST(CostTable, NeverFallsBeyondItsEnd) {
  const std::vector<PassCost> costs = {Point(1, 0, 50), Point(2, 0, 40)};
  const CostTable table(costs);
  EXPECT_DOUBLE_EQ(table.At(100, 0).us, 40);
  EXPECT_FALSE(table.At(100, 0).measured);
}

TEST(CostTable, OnePointIsLevel) {
  const std::vector<PassCost> costs = {Point(2, 100, 70)};
  const CostTable table(costs);
  for (const int rows : {1, 2, 9})
    for (const int context : {0, 100, 900}) {
      EXPECT_DOUBLE_EQ(table.At(rows, context).us, 70);
      EXPECT_EQ(table.At(rows, context).measured, rows == 2 && context == 100);
    }
}

TEST(CostTableDeathTest, RefusesGridsWithHolesAndDoublePoints) {
  std::vector<PassCost> costs = Grid();
  costs.pop_back();
  EXPECT_DEATH(CostTable{costs}, "");
  costs.push_back(costs.front());
  EXPECT_DEATH(CostTable{costs}, "");
  EXPECT_DEATH(CostTable{std::vector<PassCost>()}, "");
}

}  // namespace
}  // namespace foretoken::calibrate
