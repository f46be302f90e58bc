// SPDX-License-Identifier: Apache-2.0
#include "foretoken/stats.h"

#include <numeric>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken {
namespace {

constexpr int kContext = 256;

struct CountedFiles {
  std::string target, draft;
};
const CountedFiles& FilesToCount() {
  static const CountedFiles files = [] {
    const std::string folder = fixtures::TemporaryFolder();
    fixtures::TinyModelOptions model{.seed = 33, .context_length = kContext};
    CountedFiles f;
    f.target = fixtures::WriteTinyModel(folder, model);
    model.noise = 0.1;
    f.draft = fixtures::WriteTinyModel(folder, model);
    return f;
  }();
  return files;
}

// Drafts of the model, four in every round.
EngineOptions Fixed(int sequences = 1) {
  return {.model = FilesToCount().target,
          .draft_model = FilesToCount().draft,
          .speculative = {.num_speculative_tokens = 4, .controller = "fixed"},
          .max_sequences = sequences,
          .threads = 1};
}

// Without the draft model.
EngineOptions Instant(const std::string& method, const std::string& controller, int sequences = 1) {
  EngineOptions options = Fixed(sequences);
  options.draft_model.clear();
  options.speculative.method = method;
  options.speculative.controller = controller;
  return options;
}

Request AskEngine(int prompt_tokens, int new_tokens, unsigned seed = 1) {
  std::mt19937 random(seed);
  Request r;
  for (int i = 0; i < prompt_tokens; ++i)
    r.prompt_tokens.push_back(3 + static_cast<int>(random() % 300));
  r.max_new_tokens = new_tokens;
  r.ignore_eos = true;
  r.sampling.temperature = 0;
  return r;
}

std::vector<Completion> Generated(Engine& engine, const std::vector<Request>& requests) {
  auto completions = engine.GenerateBatch(requests);
  EXPECT_TRUE(completions) << completions.error().message;
  return *std::move(completions);
}

SpeculationStats SumOfCounts(const std::vector<Completion>& completions) {
  SpeculationStats sum;
  for (const Completion& completion : completions) sum.Add(completion.speculation);
  return sum;
}

std::int64_t Passes(const EngineCounts& counts) {
  std::int64_t passes = 0;
  for (const auto& band : counts.verify) passes += band.passes;
  return passes;
}
std::int64_t PlainRounds(const EngineCounts& counts) {
  std::int64_t rounds = 0;
  for (const auto& reason : counts.plain) rounds += reason.rounds;
  return rounds;
}

// What holds whatever was served.
void ExpectCountsFit(const EngineCounts& counts, const SpeculationStats& stats) {
  EXPECT_EQ(counts.rounds(), stats.rounds);
  EXPECT_EQ(counts.rows_used, stats.rounds + stats.drafted);
  EXPECT_EQ(PlainRounds(counts), stats.rounds - stats.draft_rounds);
  for (const auto& band : counts.verify) EXPECT_EQ(band.us > 0, band.passes > 0);
  for (const auto& reason : counts.plain) EXPECT_EQ(reason.us > 0, reason.rounds > 0);
  const auto& ratios = counts.cost_model.counts;
  const auto predicted = std::accumulate(ratios.begin(), ratios.end(), std::int64_t{0});
  EXPECT_LE(predicted, Passes(counts) - counts.verify.back().passes);
  EXPECT_EQ(counts.cost_model.sum > 0, predicted > 0);
  EXPECT_GT(counts.overhead.sample_us, 0);
  EXPECT_GT(counts.overhead.rollback_us, 0);
  EXPECT_GT(counts.overhead.control_us, 0);
}

TEST(EngineCounts, AreWhatTheRequestsSaw) {
  const std::pair<const char*, const char*> settings[] = {
      {"standalone", "fixed"}, {"standalone", "cost-model"}, {"ngram", "fixed"},
      {"suffix", "ewma"},      {"portfolio", "cost-model"},  {"none", "cost-model"}};
  for (const auto& [method, controller] : settings)
    for (const int n : {1, 3}) {
      SCOPED_TRACE(testing::Message() << method << " " << controller << " " << n);
      EngineOptions options = Instant(method, controller, n);
      const std::string_view name = method;
      if (name == "standalone" || name == "portfolio") options.draft_model = FilesToCount().draft;
      const auto engine = OpenEngine(options);
      std::vector<Request> requests;
      for (unsigned i = 0; i < 5; ++i)
        requests.push_back(AskEngine(20 + static_cast<int>(i), 60 + 9 * static_cast<int>(i), i));
      const SpeculationStats stats = SumOfCounts(Generated(*engine, requests));
      ExpectCountsFit(engine->counts(), stats);
      if (n == 1) {
        EXPECT_EQ(Passes(engine->counts()), stats.target_forwards);
      }
    }
}

TEST(EngineCounts, HavePassesByTheirRows) {
  const auto engine = OpenEngine(Fixed());
  const Completion completion = Generated(*engine, AskEngine(40, 90));
  const std::vector<std::int64_t>& k = completion.speculation.k_histogram;  // a pass has K + 1 rows
  ASSERT_EQ(k.size(), 5U);
  const EngineCounts& counts = engine->counts();
  const std::int64_t expected[] = {k[0], k[1], k[2] + k[3], k[4], 0, 0, 1};
  for (std::size_t band = 0; band < counts.verify.size(); ++band)
    EXPECT_EQ(counts.verify[band].passes, expected[band]) << kRowBandNames[band];
  EXPECT_GT(k[4], 5) << "nothing was tested";
  EXPECT_GE(counts.rows_budget, 5);
}

TEST(EngineCounts, OfWidePassesStandInTheWideBands) {
  for (const auto& [n, band] : {std::pair{3, 4}, {6, 5}}) {
    EngineOptions options = Fixed(n);
    const auto engine = OpenEngine(options);
    std::vector<Request> requests;
    for (int i = 0; i < n; ++i) requests.push_back(AskEngine(10, 40, static_cast<unsigned>(i)));
    Generated(*engine, requests);
    const auto& verify = engine->counts().verify;
    EXPECT_GT(verify[static_cast<std::size_t>(band)].passes, 3) << kRowBandNames[band];
  }
}

TEST(EngineCounts, HaveTheChosenNumbers) {
  const auto engine = OpenEngine(Fixed());
  const Completion completion = Generated(*engine, AskEngine(40, 90));
  const std::vector<std::int64_t>& drafted = completion.speculation.k_histogram;
  for (std::size_t k = 0; k < engine->counts().chosen.size(); ++k)
    EXPECT_EQ(engine->counts().chosen[k], k < drafted.size() ? drafted[k] : 0) << k;
}

TEST(EngineCounts, ALookUpThatFindsNothingWasNotPlainByChoice) {
  const auto engine = OpenEngine(Instant("prediction", "fixed"));
  Request request = AskEngine(40, 21);
  request.prediction = "zzzz";
  const Completion completion = Generated(*engine, request);
  ASSERT_EQ(completion.speculation.draft_rounds, 0);
  const EngineCounts& counts = engine->counts();
  EXPECT_EQ(counts.Plain(PlainReason::kNoDraft).rounds, 19);
  EXPECT_EQ(counts.Plain(PlainReason::kNoRoom).rounds, 1);  // the last one
  EXPECT_EQ(counts.chosen[4], 16);
  EXPECT_EQ(counts.chosen[0], 1);
}

TEST(EngineCounts, RequestsThatDraftNotAtAllAreDisabled) {
  const auto engine = OpenEngine(Fixed());
  Request request = AskEngine(40, 21);
  request.speculative.enabled = false;
  Generated(*engine, {request});
  EXPECT_EQ(engine->counts().Plain(PlainReason::kDisabled).rounds, 20);
  EXPECT_EQ(PlainRounds(engine->counts()), 20);
  EXPECT_EQ(engine->counts().chosen[0], 20);
}

TEST(EngineCounts, WhereTheTableSaysNoneThatIsForTheCost) {
  EngineOptions options = Fixed(2);
  options.speculative.controller = "batch-size";
  options.speculative.num_speculative_tokens_per_batch_size = {{1, 1, 4}, {2, 2, 0}};
  const auto engine = OpenEngine(options);
  const SpeculationStats stats =
      SumOfCounts(Generated(*engine, {AskEngine(40, 20, 1), AskEngine(40, 60, 2)}));
  // While both decoded, but for the last token of the shorter text.
  EXPECT_EQ(engine->counts().Plain(PlainReason::kCost).rounds, 2 * 19 - 1);
  EXPECT_GT(stats.draft_rounds, 5);
  ExpectCountsFit(engine->counts(), stats);
}

TEST(EngineCounts, OfMoreRequestsThanMeasuredRowsFit) {
  EngineOptions options = Fixed(40);  // passes of up to 33 rows are measured
  options.speculative.controller = "cost-model";
  options.speculative.num_speculative_tokens = 1;
  const auto engine = OpenEngine(options);
  std::vector<Request> requests;
  for (unsigned i = 0; i < 40; ++i) requests.push_back(AskEngine(10, 30, i));
  ExpectCountsFit(engine->counts(), SumOfCounts(Generated(*engine, requests)));
}

TEST(EngineCounts, WhereBlocksRunOutDraftsGoFirst) {
  EngineOptions options = Fixed(2);
  options.cache_tokens = 128;  // four blocks; each text needs more than two in the end
  const auto engine = OpenEngine(options);
  SpeculationStats stats;
  for (unsigned seed = 0; seed < 8; ++seed)
    stats.Add(
        SumOfCounts(Generated(*engine, {AskEngine(20, 80, seed),
                                        AskEngine(21 + static_cast<int>(seed), 80, seed + 50)})));
  ExpectCountsFit(engine->counts(), stats);
  EXPECT_GT(engine->load().preemptions, 0);
  EXPECT_GT(engine->counts().Plain(PlainReason::kMemory).rounds, 0);
}

TEST(EngineCounts, TheFirstRoundOfAnEngineThatKnowsNoCostsMeasuresPlainDecoding) {
  const auto engine = OpenEngine(Instant("none", "cost-model"));
  EXPECT_TRUE(engine->PassCosts().empty());
  Request request = AskEngine(40, 30);
  request.speculative.method = "suffix";
  Generated(*engine, {request});
  const auto& probes = engine->counts().probes;
  EXPECT_EQ(probes[static_cast<std::size_t>(ProbeKind::kBaseline)], 1);
  EXPECT_FALSE(engine->PassCosts().empty());
}

TEST(EngineCounts, EveryPassOfAnEngineThatKnowsItsCostsIsPredicted) {
  EngineOptions options = Fixed();
  options.speculative.controller = "cost-model";
  const auto engine = OpenEngine(options);
  Generated(*engine, {AskEngine(40, 90)});
  const EngineCounts& counts = engine->counts();
  const auto& ratios = counts.cost_model.counts;
  const auto predicted = std::accumulate(ratios.begin(), ratios.end(), std::int64_t{0});
  EXPECT_EQ(predicted, Passes(counts) - 1);
}

TEST(EngineCounts, RatiosFallIntoTheirClasses) {
  EngineCounts::Ratios ratios;
  for (const double ratio : {0.1, 0.25, 0.26, 1.0, 1.01, 4.0, 4.1}) ratios.Add(ratio);
  const std::array<std::int64_t, 15> expected = {2, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1};
  EXPECT_EQ(ratios.counts, expected);
  EXPECT_NEAR(ratios.sum, 10.72, 1e-9);
}

TEST(EngineCounts, PassCostsRiseWithTheRows) {
  const auto engine = OpenEngine(Fixed(2));
  Request plain = AskEngine(40, 20);
  plain.speculative.enabled = false;
  Generated(*engine, {plain});
  Generated(*engine, {AskEngine(40, 60, 1), AskEngine(40, 60, 2)});
  const std::vector<RowCost> costs = engine->PassCosts();
  ASSERT_GE(costs.size(), 3U);
  EXPECT_EQ(costs.front().rows, 1);
  for (std::size_t i = 1; i < costs.size(); ++i) {
    EXPECT_GT(costs[i].rows, costs[i - 1].rows);
    EXPECT_GE(costs[i].us, costs[i - 1].us);
  }
}

TEST(EngineCounts, PrefixMissesAreThePromptTokensThatHadToBeRead) {
  for (const bool prefix_cache : {true, false}) {
    EngineOptions options = Fixed();
    options.prefix_cache = prefix_cache;
    const auto engine = OpenEngine(options);
    Generated(*engine, {AskEngine(100, 4), AskEngine(100, 4), AskEngine(70, 4, 2)});
    const std::int64_t cached = engine->load().cached_prompt_tokens;
    EXPECT_EQ(cached, prefix_cache ? 96 : 0);
    EXPECT_EQ(engine->counts().prefix_misses, prefix_cache ? 270 - 96 : 0);
  }
}

}  // namespace
}  // namespace foretoken
