// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/choices.h"

#include <gtest/gtest.h>

#include "base/normal_testing.h"
#include "comm/thread_ranks_testing.h"
#include "kernels/choice_testing.h"
#include "kernels/dispatch.h"
#include "model/network.h"

namespace foretoken::model {
namespace {

using kernels::Choice;
using kernels::ChoiceRule;

constexpr float kInf = std::numeric_limits<float>::infinity(),
                kNan = std::numeric_limits<float>::quiet_NaN();

const kernels::Kernels& Kernels() {
  return kernels::KernelsFor(kernels::AvailableIsas().back());
}

// Rows of logits, and what is wanted of each.
struct ChoiceRows {
  int vocabulary;
  std::vector<std::vector<float>> logits;
  std::vector<Choice> choices;
  std::vector<int> numbers;

  explicit ChoiceRows(int n) : vocabulary(n) {}
  std::vector<float>& Add(const Choice& choice, float deviation = 3) {
    choices.push_back(choice);
    numbers.push_back(static_cast<int>(numbers.size()));
    return logits.emplace_back(
        Normal(vocabulary, static_cast<std::uint32_t>(logits.size()) + 1, deviation));
  }
  Choice Make(ChoiceRule rule) const {
    return {.rule = rule,
            .n_tokens = vocabulary - 5,
            .inverse_temperature = 1.25f,
            .noise = {{static_cast<std::uint32_t>(logits.size()), 1, 2}, {3, 4}}};
  }
  Pass View() const { return {.logit_rows = numbers, .choices = choices}; }
};

struct Outcome {
  std::vector<Token> chosen;
  std::vector<bool> finite;
  RankTraffic traffic;
};

// What rank 0 has after one pass. Each rank begins with its own columns alone.
Outcome RunOn(const ChoiceRows& rows, const std::vector<int>& speeds, int n_threads) {
  Outcome outcome;
  comm::RunAsRanks(static_cast<int>(speeds.size()), [&](comm::Ranks& ranks) {
    ModelConfig config;
    config.dim = 32, config.vocabulary = rows.vocabulary;
    const int n = static_cast<int>(rows.logits.size());
    ThreadPool pool(n_threads);
    Scratch scratch(config, n, n, n_threads, ranks.size());
    auto cache = CacheMemory::Create({}, {});
    StateMemory states({}, {});
    const Division division(ranks.rank(), speeds);
    const Workspace space{Kernels(), pool, scratch, *cache, states, ranks, division};
    const Activation logits = scratch.logits.View(rows.vocabulary);
    const auto columns = ColumnsByRank(division, rows.vocabulary);
    const Gather gather(space, logits, GatheredForm::kFloat, columns);
    const Choices choices(space, logits, gather, columns);
    const auto rank = static_cast<std::size_t>(ranks.rank());
    for (int i = 0; i < n; ++i) {
      const std::vector<float>& row = rows.logits[static_cast<std::size_t>(i)];
      float* const own = logits.Row(i);
      std::fill_n(own, row.size(), 12345.5f);
      std::copy(row.begin() + columns[rank], row.begin() + columns[rank + 1], own + columns[rank]);
      scratch.NotFinite(0)[i] =
          Kernels().finiteness(own + columns[rank], columns[rank + 1] - columns[rank]) !=
          kernels::Finiteness::kFinite;
    }
    std::vector<Phase> phases;
    choices.AddPhases(phases);
    const Pass pass = rows.View();
    pool.Run([&](int thread) { Walk(phases, pass, thread, [&pool] { pool.Barrier(); }); });
    if (!ranks.leads()) return;
    const auto chosen = choices.Chosen(rows.View());
    outcome.chosen.assign(chosen.begin(), chosen.end());
    for (int i = 0; i < n; ++i) outcome.finite.push_back(scratch.NotFinite(0)[i] == 0);
    outcome.traffic = ranks.traffic();
  });
  return outcome;
}

void ExpectWhole(const ChoiceRows& rows) {
  for (const auto& speeds : {std::vector<int>{1, 1}, {1, 3}, {1, 1, 1}, {5, 1, 1, 1}})
    for (const int n_threads : {1, 2}) {
      const Outcome outcome = RunOn(rows, speeds, n_threads);
      ASSERT_EQ(outcome.chosen.size(), rows.logits.size());
      for (std::size_t i = 0; i < rows.logits.size(); ++i) {
        const std::string which =
            std::to_string(speeds.size()) + " ranks, row " + std::to_string(i);
        EXPECT_EQ(outcome.chosen[i],
                  kernels::ChoiceOfWhole(Kernels(), rows.choices[i], rows.logits[i]))
            << which;
        if (rows.choices[i].rule == ChoiceRule::kNone) continue;
        EXPECT_EQ(outcome.finite[i], Kernels().finiteness(rows.logits[i].data(), rows.vocabulary) ==
                                         kernels::Finiteness::kFinite)
            << which;
      }
    }
}

TEST(Choices, OfRanksAreThoseOfOneProcess) {
  for (const int vocabulary : {50, 320, 1003}) {
    ChoiceRows rows(vocabulary);
    for (int i = 0; i < 4; ++i)
      for (const ChoiceRule rule : {ChoiceRule::kBest, ChoiceRule::kRace, ChoiceRule::kNone})
        rows.Add(rows.Make(rule), i == 3 ? 0.001f : 3);
    ExpectWhole(rows);
  }
}

TEST(Choices, GiveTiesToTheLowestToken) {
  ChoiceRows rows(320);
  for (const ChoiceRule rule : {ChoiceRule::kBest, ChoiceRule::kRace})
    for (const std::vector<int>& equal : {std::vector<int>{60, 200, 310}, {0, 319}, {161, 162}}) {
      auto& row = rows.Add(rows.Make(rule));
      for (const int column : equal) row[static_cast<std::size_t>(column)] = 20;
    }
  auto& zeros = rows.Add(rows.Make(ChoiceRule::kBest));
  std::fill(zeros.begin(), zeros.end(), -1.0f);
  zeros[40] = -0.0f, zeros[250] = 0.0f;
  auto& flat = rows.Add(rows.Make(ChoiceRule::kRace));
  std::fill(flat.begin(), flat.end(), 1.0f);
  ExpectWhole(rows);
}

TEST(Choices, KnowRowsThatAreNotFinite) {
  ChoiceRows rows(320);
  for (const ChoiceRule rule : {ChoiceRule::kBest, ChoiceRule::kRace})
    for (const float value : {kNan, kInf, -kInf}) {
      for (const std::size_t column : {0U, 170U, 319U}) rows.Add(rows.Make(rule))[column] = value;
      auto& all = rows.Add(rows.Make(rule));
      std::fill(all.begin(), all.end(), value);
    }
  auto& mixed = rows.Add(rows.Make(ChoiceRule::kRace));
  mixed[3] = kNan, mixed[200] = -kInf, mixed[250] = kInf;
  ExpectWhole(rows);
}

TEST(Choices, SendAFewBytesOfEachRow) {
  ChoiceRows rows(320);
  for (int i = 0; i < 5; ++i) rows.Add(rows.Make(ChoiceRule::kBest));
  Outcome outcome = RunOn(rows, {1, 1, 1}, 1);
  EXPECT_EQ(outcome.traffic.gathers, 1);
  EXPECT_EQ(outcome.traffic.gathered_bytes, 2 * 5 * 12);
  for (Choice& choice : rows.choices) choice.rule = ChoiceRule::kRace;
  outcome = RunOn(rows, {1, 1, 1}, 1);
  EXPECT_EQ(outcome.traffic.gathers, 3);
  EXPECT_EQ(outcome.traffic.gathered_bytes, 2 * 5 * (12 + 8 + 8));
}

// Sums next to a place where the scale changes are rare: this finds one. kKnown is near it, so that the
// search is short.
TEST(Choices, ARaceWhoseScaleIsLeftOpenIsRunByRankZero) {
  constexpr int kKnown = 89'700, kMost = 4'000'000;
  ChoiceRows rows(101);
  const Choice choice = rows.Make(ChoiceRule::kRace);
  std::vector<float>& row = rows.Add(choice);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = -0.25f * static_cast<float>(i * 7 % 16);
  std::vector<float> p(row.size());
  const auto is_open = [&] {
    const double sum =
        Kernels().exp_sum(row.data(), choice.n_tokens, 0.0f, choice.inverse_temperature, p.data());
    return !kernels::ScaleOf(choice, sum);
  };
  int tries = kKnown;
  do row[50] = -1e-6f * static_cast<float>(tries);
  while (!is_open() && ++tries < kMost);
  ASSERT_LT(tries, kMost);
  ExpectWhole(rows);
  EXPECT_EQ(RunOn(rows, {1, 1, 1}, 1).traffic.gathers, 4);  // and one of the row's weights
}

}  // namespace
}  // namespace foretoken::model
