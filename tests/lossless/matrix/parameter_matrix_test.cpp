// SPDX-License-Identifier: Apache-2.0
// The exact half of the parameter matrix: every parameter with every drafter gives, at temperature
// 0 and under sample-match, exactly the text and log-probabilities of plain decoding; no parameter
// is ignored; impossible combinations are refused by name. parameter_distribution_test.cpp is the other
// half.
#include <gtest/gtest.h>

#include <cstring>

#include "foretoken/catalogue.h"
#include "lossless/matrix/matrix_testing.h"

namespace foretoken {
namespace {

constexpr int kTokens = 20, kRequests = 6;

bool Equal(const Completion& a, const Completion& b) {
  if (a.text != b.text || a.token_ids != b.token_ids || a.finish_reason != b.finish_reason ||
      a.logprobs.size() != b.logprobs.size())
    return false;
  for (std::size_t i = 0; i < a.logprobs.size(); ++i)
    if (std::memcmp(&a.logprobs[i].logprob, &b.logprobs[i].logprob, sizeof(float)) != 0 ||
        a.logprobs[i].top != b.logprobs[i].top)
      return false;
  return true;
}

std::vector<Request> RequestsOf(const MatrixSetting& setting, bool greedy) {
  auto requests = MatrixRequests(setting, kTokens, 0, kRequests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i % 2 == 0) requests[i].logprobs = 3;
    if (greedy) requests[i].sampling.temperature = 0;
  }
  return requests;
}

// By setting: the plain texts.
std::vector<std::vector<Completion>> PlainTexts(bool greedy) {
  const auto engine = OpenMatrix({});
  std::vector<std::vector<Completion>> texts;
  for (const MatrixSetting& setting : MatrixSettings())
    texts.push_back(GeneratedTogether(*engine, RequestsOf(setting, greedy)));
  return texts;
}

struct Counts {
  std::int64_t cells = 0, drafted = 0, accepted = 0;
};

void ExpectPlainTexts(const MatrixEngine& of, bool greedy,
                      const std::vector<std::vector<Completion>>& plain, Counts& counts) {
  const auto engine = OpenMatrix(of);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const MatrixSetting& setting = MatrixSettings()[i];
    const auto texts = GeneratedTogether(*engine, RequestsOf(setting, greedy));
    for (std::size_t j = 0; j < texts.size(); ++j) {
      EXPECT_TRUE(Equal(texts[j], plain[i][j]))
          << setting.name << ", " << of.drafter << ", " << Name(of.strategy) << ", "
          << of.controller << ", request " << j << ": " << texts[j].text
          << "\nplain: " << plain[i][j].text;
      counts.drafted += texts[j].speculation.drafted;
      counts.accepted += texts[j].speculation.accepted;
    }
    ++counts.cells;
  }
}

// A drafter of the registry that the matrix cannot open, or that no request of it makes draft, is
// a hole in the proof.
TEST(ParameterMatrix, HasACaseForEveryDrafterOfTheRegistry) {
  for (const DrafterInfo* const row : AllDrafters()) {
    if (row->drafts_from == "a grammar") continue;  // forced_tokens_test.cpp
    const auto engine = TryOpenMatrix({.drafter = std::string(row->name)});
    ASSERT_TRUE(engine) << row->name << ": the matrix opens no engine with it; give its file in "
                        << "matrix_testing.cpp: " << engine.error().message;
    const auto text = GeneratedTogether(**engine, {MatrixRequest(kTokens)});
    EXPECT_GT(text[0].speculation.drafted, 0)
        << row->name << ": no request of the matrix makes it draft";
  }
}

void Report(const std::string& what, const Counts& counts) {
  std::printf("  %-36s %4lld cells, drafted %7lld, accepted %6lld\n", what.c_str(),
              static_cast<long long>(counts.cells), static_cast<long long>(counts.drafted),
              static_cast<long long>(counts.accepted));
}

TEST(ParameterMatrix, AtTemperatureZeroEveryDrafterGivesPlainTextUnderEveryLosslessStrategy) {
  const auto plain = PlainTexts(true);
  for (const MatrixDrafter& drafter : MatrixDrafters()) {
    Counts counts;
    for (const VerifyStrategy strategy : LosslessStrategies())
      if (!ReadsDistributions(strategy) || drafter.distributions)
        ExpectPlainTexts({.drafter = drafter.name, .strategy = strategy}, true, plain, counts);
    Report(drafter.name, counts);
    EXPECT_GT(counts.accepted, 200) << drafter.name;
    EXPECT_LT(counts.accepted, counts.drafted) << drafter.name << ": no draft was ever wrong";
  }
}

TEST(ParameterMatrix, UnderSampleMatchEveryDrafterGivesPlainText) {
  const auto plain = PlainTexts(false);
  for (const MatrixDrafter& drafter : MatrixDrafters()) {
    Counts counts;
    ExpectPlainTexts({.drafter = drafter.name, .strategy = VerifyStrategy::kSampleMatch}, false,
                     plain, counts);
    Report(drafter.name, counts);
    EXPECT_GT(counts.accepted, 50) << drafter.name;
    EXPECT_LT(counts.accepted, counts.drafted) << drafter.name << ": no draft was ever wrong";
  }
}

// The cost model's drafts depend on the speed of the machine; the text does not.
TEST(ParameterMatrix, UnderTheDefaultsEveryDrafterGivesPlainText) {
  for (const bool greedy : {true, false}) {
    const auto plain = PlainTexts(greedy);
    for (const MatrixDrafter& drafter : MatrixDrafters()) {
      Counts counts;
      ExpectPlainTexts({.drafter = drafter.name, .controller = "cost-model"}, greedy, plain,
                       counts);
      Report(drafter.name + (greedy ? ", temperature 0" : ""), counts);
    }
  }
}

// The negative control of the tests above: a strategy that is not exact changes the texts of nearly
// every setting.
TEST(ParameterMatrix, TextsOfAnotherDistributionAreToldFromPlainOnes) {
  const auto plain = PlainTexts(false);
  const auto engine =
      OpenMatrix({.drafter = "own", .strategy = VerifyStrategy::kTypicalAcceptance});
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (MatrixSettings()[i].name == "temperature 0") continue;
    const auto texts = GeneratedTogether(*engine, RequestsOf(MatrixSettings()[i], false));
    bool all_equal = true;
    for (std::size_t j = 0; j < texts.size(); ++j) all_equal &= Equal(texts[j], plain[i][j]);
    EXPECT_FALSE(all_equal) << MatrixSettings()[i].name;
  }
}

TEST(ParameterMatrix, NoParameterIsIgnored) {
  using Shows = MatrixSetting::Shows;
  const auto plain = OpenMatrix({});
  const auto drafting = OpenMatrix({.drafter = "standalone"});
  for (const MatrixSetting& setting : MatrixSettings()) {
    const MatrixSetting without{setting.name, setting.given, [](Request&) {}};
    Engine& engine = setting.shows == Shows::kDrafts ? *drafting : *plain;
    const auto with = GeneratedTogether(engine, MatrixRequests(setting, kTokens, 0, 20));
    const auto base = GeneratedTogether(engine, MatrixRequests(without, kTokens, 0, 20));
    int texts = 0, logprobs = 0, drafts = 0;
    for (std::size_t i = 0; i < with.size(); ++i) {
      texts += with[i].text != base[i].text || with[i].finish_reason != base[i].finish_reason;
      logprobs += with[i].logprobs.size() != base[i].logprobs.size();
      drafts += with[i].speculation.k_histogram != base[i].speculation.k_histogram ||
                with[i].speculation.accepted != base[i].speculation.accepted;
    }
    const int differ = setting.shows == Shows::kText       ? texts
                       : setting.shows == Shows::kLogprobs ? logprobs
                                                           : drafts;
    EXPECT_GT(differ, 0) << setting.name;
    // A setting for log-probabilities or drafts alone leaves plain text unchanged.
    if (setting.shows != Shows::kText) {
      const auto changed = GeneratedTogether(*plain, MatrixRequests(setting, kTokens, 0, 20));
      const auto unchanged = GeneratedTogether(*plain, MatrixRequests(without, kTokens, 0, 20));
      for (std::size_t i = 0; i < changed.size(); ++i)
        EXPECT_EQ(changed[i].text, unchanged[i].text) << setting.name;
    }
  }
}

// ---- Impossible combinations --------------------------------------------------------------------

std::string WhyNot(const MatrixEngine& of, const Request& request) {
  const auto engine = TryOpenMatrix(of);
  return engine ? MessageOf((*engine)->Generate(request)) : engine.error().message;
}

TEST(ParameterMatrix, StrategiesThatReadDistributionsAreRefusedWhereADrafterReportsNone) {
  for (const MatrixDrafter& drafter : MatrixDrafters())
    for (const VerifyStrategy strategy : LosslessStrategies()) {
      if (strategy == VerifyStrategy::kGreedy) continue;
      const std::string why =
          WhyNot({.drafter = drafter.name, .strategy = strategy}, MatrixRequest(8));
      if (!ReadsDistributions(strategy) || drafter.distributions) {
        EXPECT_EQ(why, "") << drafter.name;
        continue;
      }
      EXPECT_TRUE(Says(why, std::string(": '") + Name(strategy) +
                                "' needs a drafter that reports its distributions, and "))
          << drafter.name;
      EXPECT_TRUE(why.ends_with("reports none; use sample-match")) << why;
    }
}

TEST(ParameterMatrix, GreedyByNameIsRefusedWithATemperature) {
  for (const MatrixDrafter& drafter : MatrixDrafters()) {
    const MatrixEngine greedy{.drafter = drafter.name, .strategy = VerifyStrategy::kGreedy};
    EXPECT_EQ(WhyNot(greedy, MatrixRequest(8)),
              "verify: 'greedy' with temperature 0.7 would give greedy text; use temperature 0, or "
              "residual or sample-match");
    Request cold = MatrixRequest(8);
    cold.sampling.temperature = 0;
    EXPECT_EQ(WhyNot(greedy, cold), "");
  }
}

}  // namespace
}  // namespace foretoken
