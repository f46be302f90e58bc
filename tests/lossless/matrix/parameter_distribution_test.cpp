// SPDX-License-Identifier: Apache-2.0
// The statistical half of the parameter matrix: with every parameter and every drafter, strategies
// whose text depends on drafts commit tokens with plain decoding's distribution.
//
// In many short requests that differ only by their noise, the tokens at positions 1 to 4 (the
// prefill gives the one at 0) and two pairs of neighbours are counted. A two-sample chi-square
// compares them with plain texts of other noise. Its bound is what chance exceeds in any cell of
// the whole matrix with a probability of 1e-5. For each parameter a negative control without the
// residual must exceed the same bound.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "foretoken/catalogue.h"
#include "lossless/distribution_testing.h"
#include "lossless/matrix/matrix_testing.h"

namespace foretoken {
namespace {

constexpr int kStatistics = 6;
// For all tests below; a few are skipped where a distribution has a single bin.
constexpr double kComparisons = 40 * 23 * kStatistics;

double Deviation() {
  static const double z = NormalQuantile(1e-5 / kComparisons);
  return z;
}

TextSample DrawSetting(Engine& engine, const MatrixSetting& setting, std::uint64_t first_id,
                       int n) {
  return TextSample(GeneratedTogether(engine, MatrixRequests(setting, 7, first_id, n)));
}

// "48/31/103": chi-square, degrees of freedom, bound.
std::string Text(const TwoSamples& c) {
  return fmt::format(" {:.0f}/{}/{:.0f}", c.chi_square, c.freedom,
                     c.freedom > 0 ? ChiSquareBound(c.freedom, Deviation()) : 0);
}

// docs/speculation.md has their figures.
bool IsInTheDocs(const std::string& setting) {
  return setting == "temperature 1" || setting == "top_p" || setting == "edits together";
}

struct Size {
  int plain, drafted;
};
constexpr Size kQuick = {4000, 1500}, kLarge = {16000, 8000};

// Settings with randomness.
std::vector<const MatrixSetting*> RandomSettings() {
  std::vector<const MatrixSetting*> settings;
  for (const MatrixSetting& setting : MatrixSettings())
    if (setting.name != "temperature 0") settings.push_back(&setting);
  return settings;
}

// Each sample has its own noise. Column 0 is plain decoding.
std::uint64_t FirstId(std::size_t setting, std::size_t column) {
  return setting * 1'000'000 + column * 50'000;
}

std::vector<TextSample> PlainSamples(int n) {
  const auto engine = OpenMatrix({});
  std::vector<TextSample> samples;
  for (const MatrixSetting* setting : RandomSettings())
    samples.push_back(DrawSetting(*engine, *setting, FirstId(samples.size(), 0), n));
  return samples;
}

struct Column {
  std::string drafter;
  VerifyStrategy strategy;
  std::string controller = "fixed";
};
std::vector<Column> Columns(VerifyStrategy strategy) {
  std::vector<Column> columns;
  for (const MatrixDrafter& drafter : MatrixDrafters())
    if (drafter.distributions || !ReadsDistributions(strategy))
      columns.push_back({drafter.name, strategy});
  // A portfolio with a model is verified by `residual` if no strategy is named.
  if (strategy == VerifyStrategy::kResidual) columns.push_back({"all", VerifyStrategy::kAuto});
  // Lengths that depend on what was accepted before.
  const bool reads = ReadsDistributions(strategy);
  columns.push_back({reads ? "standalone" : "ngram", strategy,
                     strategy == VerifyStrategy::kResidual ? "ewma"
                     : reads                               ? "heuristic"
                                                           : "by-text"});
  return columns;
}

// The lossless strategies whose text depends on the drafts above temperature 0.
std::vector<VerifyStrategy> Randomised() {
  std::vector<VerifyStrategy> strategies;
  for (const VerifyStrategy strategy : LosslessStrategies()) {
    const StrategyInfo* const row = FindStrategy(Name(strategy));
    if (row != nullptr && !row->same_text && strategy != VerifyStrategy::kGreedy)
      strategies.push_back(strategy);
  }
  return strategies;
}

// Whether the quick tests have the cell of this setting and column. Of three strategies, each has every
// third setting of a drafter, and none has the settings of another. So every setting meets every
// strategy, every drafter meets every strategy, and every setting meets every drafter that reports its
// distributions. The program's own drafters have every setting: with them the negative control shows
// that the cell of a setting sees its fault. The slow tests have all cells, but for those of controllers, and
// parameter_matrix_test.cpp has every setting with every drafter under sample-match.
bool IsQuick(std::size_t setting, std::size_t column, const Column& of) {
  const auto strategies = Randomised();
  const auto strategy = static_cast<std::size_t>(
      std::find(strategies.begin(), strategies.end(), of.strategy) - strategies.begin());
  return of.drafter.starts_with("own") || (setting + column + strategy) % 3 == 0;
}

void ExpectPlainDistributions(const std::vector<Column>& columns, Size size, bool all) {
  const auto settings = RandomSettings();
  const auto plain = PlainSamples(size.plain);
  std::size_t n_columns = 0;
  for (const Column& column : columns) {
    ++n_columns;
    const auto engine = OpenMatrix(
        {.drafter = column.drafter, .strategy = column.strategy, .controller = column.controller});
    std::int64_t drafted = 0, accepted = 0;
    Worst worst;
    std::string worst_setting, shown;
    for (std::size_t i = 0; i < settings.size(); ++i) {
      if (!all && !IsQuick(i, n_columns, column)) continue;
      const TextSample sample =
          DrawSetting(*engine, *settings[i], FirstId(i, n_columns), size.drafted);
      const Worst found = CompareAll(plain[i], sample, Deviation());
      EXPECT_LT(found.share, 1) << settings[i]->name << ", " << column.drafter << ", "
                                << Name(column.strategy) << ": chi-square "
                                << found.comparison.chi_square << ", " << found.comparison.freedom
                                << " degrees of freedom";
      EXPECT_GT(sample.drafted, size.drafted / 20) << settings[i]->name << ", " << column.drafter;
      drafted += sample.drafted, accepted += sample.accepted;
      if (found.share > worst.share) worst = found, worst_setting = settings[i]->name;
      if (IsInTheDocs(settings[i]->name)) shown += Text(found.comparison);
    }
    std::printf("  %-18s %-12s accepted %.2f of %7lld;%s; worst %s (%s)\n", Name(column.strategy),
                column.drafter.c_str(),
                static_cast<double>(accepted) / static_cast<double>(drafted),
                static_cast<long long>(drafted), shown.c_str(), Text(worst.comparison).c_str(),
                worst_setting.c_str());
  }
}

class ParameterDistribution : public testing::TestWithParam<VerifyStrategy> {};

TEST_P(ParameterDistribution, IsThatOfPlainDecodingWithEveryDrafter) {
  ExpectPlainDistributions(Columns(GetParam()), kQuick, false);
}

INSTANTIATE_TEST_SUITE_P(Strategies, ParameterDistribution, testing::ValuesIn(Randomised()),
                         [](const auto& of) { return Underscored(Name(of.param)); });

// The columns of larger samples.
std::vector<Column> AllColumns() {
  std::vector<Column> all;
  for (const VerifyStrategy strategy : Randomised())
    for (const Column& column : Columns(strategy)) all.push_back(column);
  return all;
}
class SlowParameterDistribution : public testing::TestWithParam<Column> {};
TEST_P(SlowParameterDistribution, IsThatOfPlainDecoding) {
  ExpectPlainDistributions({GetParam()}, kLarge, true);
}
INSTANTIATE_TEST_SUITE_P(Columns, SlowParameterDistribution, testing::ValuesIn(AllColumns()),
                         [](const auto& of) {
                           const Column& column = of.param;
                           const bool fixed = column.controller == "fixed";
                           return Underscored(std::string(Name(column.strategy)) + "_" +
                                              column.drafter +
                                              (fixed ? "" : "_" + column.controller));
                         });

// The negative control: without the residual, recovered tokens come from all of p, and drafts that
// favour some tokens too much make these too frequent. Every parameter's test must detect it.
TEST(ParameterDistributionControl, EveryParametersTestSeesRecoveryFromTheFullDistribution) {
  const auto settings = RandomSettings();
  const auto plain = PlainSamples(kQuick.plain);
  const auto engine =
      OpenMatrix({.drafter = "own", .strategy = VerifyStrategy::kResidual, .adjusts = false});
  EXPECT_FALSE(engine->summary().lossless);
  Worst least;
  least.share = 1e9;
  std::string least_setting;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const Worst found = CompareAll(
        plain[i], DrawSetting(*engine, *settings[i], FirstId(i, 1), kQuick.drafted), Deviation());
    EXPECT_GT(found.share, 1) << settings[i]->name << ": chi-square " << found.comparison.chi_square
                              << ", " << found.comparison.freedom << " degrees of freedom";
    if (found.share < least.share) least = found, least_setting = settings[i]->name;
  }
  std::printf("  least:%s (%s)\n", Text(least.comparison).c_str(), least_setting.c_str());
}

}  // namespace
}  // namespace foretoken
