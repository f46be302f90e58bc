// SPDX-License-Identifier: Apache-2.0
// Records of real engines with tiny models, and their replays.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/failure_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/engine.h"
#include "foretoken/tools/replay.h"

namespace foretoken {
namespace {

class Record : public testing::TestWithParam<const char*> {
 protected:
  static EngineOptions Options(int k) {
    const std::string folder = fixtures::TemporaryFolder(), method = GetParam();
    fixtures::TinyModelOptions model{.seed = 71, .context_length = 512};
    EngineOptions options{.threads = 1};
    options.speculative.method = method;
    options.speculative.controller = "fixed";
    options.speculative.num_speculative_tokens = k;
    options.model = fixtures::WriteTinyModel(folder, model);
    model.noise = 0.1;
    if (method == "standalone") options.draft_model = fixtures::WriteTinyModel(folder, model);
    options.record = folder + "/run.jsonl";
    return options;
  }
  static std::vector<Request> Requests(float temperature = 0) {
    std::vector<Request> requests;
    for (const char* prompt : {"once upon a time", "the end the end the end", "a"}) {
      Request& request = requests.emplace_back();
      request.prompt = prompt;
      request.max_new_tokens = 120;
      request.sampling.temperature = temperature;
    }
    return requests;
  }
  static std::vector<Completion> Complete(EngineOptions options,
                                          const std::vector<Request>& requests) {
    auto engine = Got(Engine::Open(std::move(options)));
    auto completions = Got(engine->GenerateBatch(requests));
    EXPECT_TRUE(engine->RecordStatus());
    return completions;
  }
};

SpeculationStats SumOfRecord(const std::vector<Completion>& completions) {
  SpeculationStats sum;
  for (const Completion& completion : completions) sum.Add(completion.speculation);
  return sum;
}

TEST_P(Record, HoldsWhatTheStatisticsCount) {
  for (const float temperature : {0.0f, 0.8f})
    for (const int sequences : {1, 3}) {
      EngineOptions options = Options(4);
      options.max_sequences = sequences;
      const auto completions = Complete(options, Requests(temperature));
      const auto trace = Got(LoadTrace(options.record));
      EXPECT_EQ(trace.header.method, GetParam());
      EXPECT_FALSE(trace.costs.empty());
      ASSERT_EQ(trace.requests.size(), completions.size());
      SpeculationStats seen;
      std::vector<std::size_t> tokens(completions.size());
      for (const TracedRound& round : trace.rounds) {
        tokens[static_cast<std::size_t>(round.request)] +=
            static_cast<std::size_t>(round.committed);
        if (round.prefill) continue;
        ++seen.rounds;
        seen.drafted += static_cast<std::int64_t>(round.drafts.size());
        seen.accepted += std::min(round.accepted, round.committed);
        if (temperature > 0) continue;
        // The greedy distribution is certain, and so is the verdict.
        for (int i = 0; i < round.accepted; ++i) EXPECT_EQ(round.p[static_cast<std::size_t>(i)], 1);
        if (round.kind == "recovered") {
          EXPECT_EQ(round.p[static_cast<std::size_t>(round.accepted)], 0);
        }
      }
      const SpeculationStats sum = SumOfRecord(completions);
      EXPECT_EQ(seen.rounds, sum.rounds);
      EXPECT_EQ(seen.drafted, sum.drafted);
      EXPECT_EQ(seen.accepted, sum.accepted);
      for (std::size_t i = 0; i < tokens.size(); ++i)
        EXPECT_EQ(tokens[i], completions[i].token_ids.size());
    }
}

TEST_P(Record, ChangesNoText) {
  EngineOptions options = Options(4);
  const auto recorded = Complete(options, Requests(0.8f));
  options.record.clear();
  const auto plain = Complete(options, Requests(0.8f));
  for (std::size_t i = 0; i < plain.size(); ++i)
    EXPECT_EQ(recorded[i].token_ids, plain[i].token_ids);
}

TEST_P(Record, ReplaysWithTheSameCountsAndTimes) {
  const EngineOptions options = Options(4);
  const auto completions = Complete(options, Requests());
  const auto trace = LoadTrace(options.record);
  ASSERT_TRUE(trace);
  const auto replayed = Replay(*trace, {.num_speculative_tokens = 4});
  ASSERT_TRUE(replayed) << replayed.error().message;
  const SpeculationStats sum = SumOfRecord(completions);
  EXPECT_EQ(replayed->tally.rounds, sum.rounds);
  EXPECT_EQ(replayed->tally.drafted, sum.drafted);
  EXPECT_EQ(replayed->tally.accepted, sum.accepted);
  ASSERT_TRUE(replayed->measured);
  double ms = 0;
  for (const Completion& completion : completions) ms += completion.timings.decode_ms;
  EXPECT_NEAR(replayed->measured->us / 1000, ms, 0.01 * ms);
  EXPECT_NEAR(replayed->tally.us, replayed->measured->us, 1e-6 * replayed->tally.us);
}

// Counts of other draft lengths, against engines that really use them.
TEST_P(Record, ReplaysAnotherDraftLengthWithNearlyTheSameCounts) {
  const EngineOptions options = Options(4);
  Complete(options, Requests());
  const auto trace = LoadTrace(options.record);
  ASSERT_TRUE(trace);
  for (const int k : {1, 2, 6}) {
    const SpeculationStats real = SumOfRecord(Complete(Options(k), Requests()));
    const auto replayed = Replay(*trace, {.num_speculative_tokens = k});
    ASSERT_TRUE(replayed);
    const auto rounds = static_cast<double>(real.rounds);
    EXPECT_NEAR(static_cast<double>(replayed->tally.rounds), rounds, 0.08 * rounds) << "K " << k;
  }
}

TEST_P(Record, AFullDiskIsANoticeAndHarmsNoText) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  EngineOptions options = Options(2);
  options.record = "/dev/full";
  const auto engine = Got(Engine::Open(options));
  const auto completion = engine->Generate(Requests().front());
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->token_ids.size(), 120u);
  ASSERT_FALSE(engine->RecordStatus());
  EXPECT_EQ(engine->RecordStatus().error().code, ErrorCode::kIo);
  EXPECT_EQ(engine->summary().notices.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Methods, Record, testing::Values("standalone", "ngram"),
                         [](const auto& of) { return std::string(of.param); });

}  // namespace
}  // namespace foretoken
