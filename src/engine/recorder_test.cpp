// SPDX-License-Identifier: Apache-2.0
// What the recorder writes of passes around a fake runner. record_test.cpp compares traces with
// whole engines.
#include "engine/recorder.h"

#include "base/files/folder_testing.h"
#include "engine/step/fake_engine_testing.h"
#include "foretoken/tools/replay.h"

namespace foretoken::engine {
namespace {

class RecorderTest : public FolderTest {
 protected:
  RunTrace Published(FakeEngine& engine) const {
    EXPECT_TRUE(engine.recorder->Publish());
    auto trace = LoadTrace(path_);
    EXPECT_TRUE(trace) << trace.error().message;
    return std::move(trace).value_or(RunTrace());
  }

  const std::string path_ = At("run.jsonl");
};

TEST_F(RecorderTest, WithoutAPathDoesNothing) {
  FakeEngine engine;
  EXPECT_FALSE(engine.recorder->records());
  engine.Run(Ask(10, 5));
  EXPECT_TRUE(engine.recorder->Publish());
  EXPECT_TRUE(engine.recorder->status());
}

TEST_F(RecorderTest, WritesEachRequestWithItsSettings) {
  FakeEngine engine({.drafts = 3, .record = path_});
  ASSERT_TRUE(engine.record_status);
  EXPECT_TRUE(engine.recorder->records());
  Request drafts = Ask(10, 5), plain = Ask(12, 6);
  drafts.id = 8, drafts.seed = 9;
  plain.speculative.enabled = false;
  engine.Run(drafts), engine.Run(plain);
  const RunTrace trace = Published(engine);
  ASSERT_EQ(trace.requests.size(), 2U);
  EXPECT_EQ(trace.requests[0].id, 8U);
  EXPECT_EQ(trace.requests[0].seed, 9U);
  EXPECT_EQ(trace.requests[0].method, "fake");
  EXPECT_EQ(trace.requests[0].strategy, "greedy");
  EXPECT_EQ(trace.requests[0].controller, "fixed");
  EXPECT_EQ(trace.requests[0].num_speculative_tokens, 3);
  EXPECT_EQ(trace.requests[0].prompt_tokens, 10);
  EXPECT_EQ(trace.requests[0].max_new_tokens, 5);
  EXPECT_EQ(trace.requests[1].method, "none");
  EXPECT_EQ(trace.requests[1].num_speculative_tokens, 0);
}

TEST_F(RecorderTest, WritesEachRoundWithItsVerdict) {
  FakeEngine engine({.drafts = 4, .record = path_});
  engine.drafter->wrong_every = 3;
  const Completion completion = engine.Run(Ask(10, 12));
  const RunTrace trace = Published(engine);
  ASSERT_GT(trace.rounds.size(), 2U);
  const TracedRound& prompt = trace.rounds[0];
  EXPECT_TRUE(prompt.prefill);
  EXPECT_EQ(prompt.fed, 10);
  EXPECT_EQ(prompt.asked, 0);
  const TracedRound& round = trace.rounds[1];
  EXPECT_FALSE(round.prefill);
  EXPECT_EQ(round.context, 10);
  EXPECT_EQ(round.rows, 5);
  EXPECT_EQ(round.asked, 4);
  EXPECT_EQ(round.drafter, "fake");
  EXPECT_EQ(round.drafts.size(), 4U);
  EXPECT_EQ(round.accepted, 2);  // the third draft is wrong
  EXPECT_EQ(round.kind, "recovered");
  EXPECT_EQ(round.committed, 3);
  EXPECT_EQ(round.next, completion.token_ids[3]);
  EXPECT_EQ(round.p, (std::vector<float>{1, 1, 0, 1}));
  EXPECT_EQ(trace.rounds.back().end, "length");
}

// Times are those of the whole pass, so the rounds of one pass share them.
TEST_F(RecorderTest, RoundsOfOnePassShareItsNumberAndTimes) {
  FakeEngine engine({.record = path_});
  engine.times.draft_ms = 2, engine.times.verify_ms = 5;
  engine.Begin(Ask(10, 4, 1)), engine.Begin(Ask(10, 4, 2));
  while (engine.Step()) continue;
  const RunTrace trace = Published(engine);
  ASSERT_GE(trace.rounds.size(), 4U);
  for (std::size_t i = 0; i < 4; i += 2) {
    EXPECT_EQ(trace.rounds[i].pass, trace.rounds[i + 1].pass);
    EXPECT_NE(trace.rounds[i].request, trace.rounds[i + 1].request);
    EXPECT_EQ(trace.rounds[i].verify_us, 5000);
    EXPECT_EQ(trace.rounds[i + 1].draft_us, 2000);
  }
  EXPECT_NE(trace.rounds[0].pass, trace.rounds[2].pass);
}

TEST_F(RecorderTest, MarksDraftsThatWereMadeBeforeTheirLengthWasChosen) {
  FakeEngine engine({.instant = true, .record = path_});
  engine.drafter->evidence = 2;
  engine.Run(Ask(10, 8));
  const RunTrace trace = Published(engine);
  ASSERT_GT(trace.rounds.size(), 1U);
  EXPECT_TRUE(trace.rounds[1].instant);
  EXPECT_EQ(trace.rounds[1].evidence, 2);
}

TEST_F(RecorderTest, MarksDraftsOfOnePass) {
  for (const bool at_once : {false, true}) {
    FakeEngine engine({.record = path_});
    engine.drafter->at_once = at_once;
    engine.Run(Ask(10, 8));
    const RunTrace trace = Published(engine);
    ASSERT_GT(trace.rounds.size(), 1U);
    EXPECT_EQ(trace.rounds[1].at_once, at_once);
  }
}

TEST_F(RecorderTest, WritesTheCostsOfPasses) {
  FakeEngine engine({.record = path_});
  const PassCost cost{.rows = 3, .context = 7, .us = {1.5, 1.5, 1.5}};
  engine.recorder->AddCosts({&cost, 1});
  engine.Run(Ask(10, 2));
  const RunTrace trace = Published(engine);
  ASSERT_EQ(trace.costs.size(), 1U);
  EXPECT_EQ(trace.costs[0].rows, 3);
  EXPECT_EQ(trace.costs[0].context, 7);
  EXPECT_EQ(trace.costs[0].us, 1.5);
}

// A preempted text is read a second time. A trace tells of one reading.
TEST_F(RecorderTest, LeavesOutTextThatIsReadAgain) {
  FakeEngine engine({.runner = {.max_rows = 160, .max_logit_rows = 160, .n_blocks = 3},
                     .prefix_cache = false,
                     .record = path_});
  const Ticket first = engine.Begin(Ask(20, 40, 1)), second = engine.Begin(Ask(20, 40, 2));
  while (engine.Step()) continue;
  const Completion a = *engine.admission->Take(first), b = *engine.admission->Take(second);
  EXPECT_GT(b.timings.preemptions, 0);
  const RunTrace trace = Published(engine);  // LoadTrace checks that rounds join without gaps
  std::vector<int> committed(2);
  for (const TracedRound& round : trace.rounds)
    committed[static_cast<std::size_t>(round.request)] += round.committed;
  EXPECT_EQ(committed, (std::vector<int>{40, 40}));
}

TEST_F(RecorderTest, AFileThatIsNoTraceIsNotReplaced) {
  std::filesystem::create_directory(path_);
  const FakeEngine engine({.record = path_});
  EXPECT_FALSE(engine.record_status);
  EXPECT_FALSE(engine.recorder->records());
}

}  // namespace
}  // namespace foretoken::engine
