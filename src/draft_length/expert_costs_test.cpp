// SPDX-License-Identifier: Apache-2.0
#include "draft_length/expert_costs.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "draft_length/round_costs.h"

namespace foretoken::draft_length {
namespace {

constexpr ExpertShape kShape = {.layers = 10, .n = 64, .used = 8};

TEST(ExpertCosts, CountTheExpertsOfIndependentRows) {
  const ExpertCosts costs(kShape, 1);
  EXPECT_NEAR(costs.Independent(1), 80, 1e-9);
  EXPECT_NEAR(costs.Independent(2), 150, 1e-9);  // 64 (1 - (7/8)^2) = 15
  EXPECT_NEAR(costs.Independent(1000), 640, 1e-3);
}

TEST(ExpertCosts, AreNothingWithoutExperts) {
  ExpertCosts costs;
  costs.Record(4, 100);
  EXPECT_EQ(costs.Independent(4), 0);
  EXPECT_EQ(costs.BeyondUs(4, 100), 0);
  EXPECT_EQ(costs.ExpectedBeyondUs(4), 0);
}

TEST(ExpertCosts, ExpectFewerExpertsWhereRowsAgree) {
  ExpertCosts costs(kShape, 2);
  EXPECT_EQ(costs.ExpectedBeyondUs(2), 0);
  for (int i = 0; i < 100; ++i) costs.Record(2, 80);  // both rows use the same ones
  EXPECT_NEAR(costs.ExpectedBeyondUs(2), -2 * 70, 0.1);
  EXPECT_EQ(costs.ExpectedBeyondUs(1), 0);
  for (int i = 0; i < 100; ++i) costs.Record(2, 150);
  EXPECT_NEAR(costs.ExpectedBeyondUs(2), 0, 0.1);
}

TEST(ExpertCosts, ExpectAtFirstWhatTheStartsPassesRead) {
  ExpertCosts costs(kShape, 2);
  costs.Expect(std::vector<PassCost>{{.rows = 1, .distinct_experts = 80},
                                     {.rows = 2, .distinct_experts = 115},  // half of 80 to 150
                                     {.rows = 3, .distinct_experts = 0}});  // not known
  EXPECT_NEAR(costs.ExpectedBeyondUs(2), -2 * 35, 1e-9);
  costs.Expect({});
  EXPECT_NEAR(costs.ExpectedBeyondUs(2), -2 * 35, 1e-9);
}

// Where some experts are popular, the third row brings fewer new ones than the second.
constexpr std::array kPopular = {0.0, 0.0, 0.2, 0.4, 0.45, 0.5};

std::int64_t Distinct(const ExpertCosts& costs, int rows, double agreement) {
  const double most = costs.Independent(rows), least = costs.Independent(1);
  return std::llround(most + (least - most) * agreement);
}

// In a long run of passes of two rows, three rows are still expected to cost what they did.
TEST(ExpertCosts, KnowHowMuchRowsAgreeByTheirNumber) {
  ExpertCosts costs(kShape, 1);
  std::vector<PassCost> start;
  for (const int rows : {1, 2, 3, 5})
    start.push_back(
        {.rows = rows,
         .distinct_experts = Distinct(costs, rows, kPopular[static_cast<std::size_t>(rows)])});
  costs.Expect(start);
  const auto beyond = [&](int rows) {
    return costs.BeyondUs(rows, Distinct(costs, rows, kPopular[static_cast<std::size_t>(rows)]));
  };
  for (int i = 0; i < 300; ++i) costs.Record(2, Distinct(costs, 2, kPopular[2]));
  for (const int rows : {2, 3, 4, 5}) EXPECT_NEAR(costs.ExpectedBeyondUs(rows), beyond(rows), 1.5);
  EXPECT_EQ(costs.ExpectedBeyondUs(1), 0);
}

// Nothing was measured: what passes of each number of rows tell is learned while they take turns.
TEST(ExpertCosts, LearnHowMuchRowsAgreeByTheirNumber) {
  ExpertCosts costs(kShape, 1);
  for (int i = 0; i < 2000; ++i) {
    const int rows = 2 + i % 2;
    costs.Record(rows, Distinct(costs, rows, kPopular[static_cast<std::size_t>(rows)]));
  }
  for (const int rows : {2, 3})
    EXPECT_NEAR(
        costs.ExpectedBeyondUs(rows),
        costs.BeyondUs(rows, Distinct(costs, rows, kPopular[static_cast<std::size_t>(rows)])), 4)
        << rows;
}

// Passes of two rows show that the rows of a text agree more. Most of that is expected of three rows as well.
TEST(ExpertCosts, BelieveOfOtherRowsMostOfWhatAPassTells) {
  ExpertCosts costs(kShape, 1);
  for (int i = 0; i < 100; ++i) costs.Record(2, Distinct(costs, 2, 0.5));
  const double all = -0.5 * (costs.Independent(3) - costs.Independent(1));
  EXPECT_LT(costs.ExpectedBeyondUs(3), 0.7 * all);
  EXPECT_GT(costs.ExpectedBeyondUs(3), 0.9 * all);
}

TEST(ExpertCosts, LetPassesBePredictedBeforeTheFirst) {
  RoundCosts costs(16, 0);
  const ExpertCosts known(kShape, 1);
  std::vector<PassCost> start;
  for (const int rows : {1, 3, 5}) {
    const auto n = static_cast<std::int64_t>((known.Independent(rows) + known.Independent(1)) / 2);
    start.push_back({.rows = rows, .distinct_experts = n});
    start.back().us.median = 100 + known.Independent(rows);
  }
  costs.StartExperts(kShape, 1, start);
  costs.Start(start);
  EXPECT_NEAR(costs.PassUs(3, 0), 100 + (known.Independent(3) + 80) / 2, 1);
  EXPECT_NEAR(costs.PassUs(1, 0), 180, 1);
}

// Passes whose time is 100 + the experts that they read.
double Pass(std::int64_t distinct) {
  return 100 + static_cast<double>(distinct);
}

TEST(ExpertCosts, LetPassesBePredictedForTextsThatAgreeAndTextsThatDoNot) {
  RoundCosts costs(16, 0);
  const ExpertCosts known(kShape, 1);
  const auto distinct = [&](int rows, double agreement) {
    return static_cast<std::int64_t>(known.Independent(rows) * (1 - agreement) +
                                     known.Independent(1) * agreement);
  };
  costs.StartExperts(kShape, 1);
  std::vector<PassCost> start;
  for (const int rows : {1, 5}) start.push_back({rows, 0, {.median = Pass(distinct(rows, 0))}});
  costs.Start(start);
  for (const double agreement : {0.0, 0.7, 0.2})
    for (int i = 0; i < 300; ++i) {
      const int rows = 1 + i % 5;
      const std::int64_t n = distinct(rows, agreement);
      costs.RecordPass({.rows = rows}, Pass(n), n);
      if (i < 60) continue;  // the change must be seen first
      EXPECT_NEAR(costs.PassUs(3, 0) / Pass(distinct(3, agreement)), 1, 0.05) << agreement;
      EXPECT_NEAR(costs.PassUs(1, 0) / Pass(80), 1, 0.05) << agreement;
    }
}

}  // namespace
}  // namespace foretoken::draft_length
