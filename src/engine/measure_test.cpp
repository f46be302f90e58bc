// SPDX-License-Identifier: Apache-2.0
#include "foretoken/tools/measure.h"

#include "base/failure_testing.h"
#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken {
namespace {

constexpr int kContextSize = 96;

struct MeasuredFiles {
  std::string target, draft, mtp, eagle;
};
const MeasuredFiles& FilesToMeasure() {
  static const MeasuredFiles files = [] {
    const std::string folder = fixtures::TemporaryFolder();
    fixtures::TinyModelOptions target{.seed = 7, .context_length = kContextSize};
    fixtures::TinyHeadOptions head{.target = target};
    MeasuredFiles f;
    f.target = fixtures::WriteTinyModel(folder, target);
    target.noise = 0.1;
    target.context_length = 48;  // shorter than the target's
    f.draft = fixtures::WriteTinyModel(folder, target);
    f.mtp = fixtures::WriteTinyHead(folder, head);
    head.eagle = true;
    f.eagle = fixtures::WriteTinyHead(folder, head);
    return f;
  }();
  return files;
}

std::unique_ptr<Engine> OpenMeasured(const std::string& method, int sequences = 1) {
  const MeasuredFiles& files = FilesToMeasure();
  EngineOptions options{
      .model = files.target,
      .speculative = {.method = method, .num_speculative_tokens = 3, .controller = "fixed"},
      .max_sequences = sequences,
      .threads = 2};
  if (method == "standalone") options.draft_model = files.draft;
  if (method == "mtp") options.draft_model = files.mtp;
  if (method == "eagle") options.draft_model = files.eagle;
  return OpenEngine(options);
}

Measurements MeasureOn(Engine& engine, const MeasureOptions& options) {
  auto measured = engine.Measure(options);
  EXPECT_TRUE(measured) << measured.error().message;
  return *measured;
}

void ExpectSpread(const Spread& s) {
  EXPECT_GT(s.least, 0);
  EXPECT_LE(s.least, s.median);
  EXPECT_LE(s.median, s.most);
}

TEST(Measure, FillsTheWholeTableInOrder) {
  const auto engine = OpenMeasured("standalone");
  const Measurements m =
      MeasureOn(*engine, {.rows = {4, 1, 2}, .contexts = {64, 0, 33, 33}, .repeats = 3});
  ASSERT_EQ(m.target.size(), 9U);
  std::size_t i = 0;
  for (const int context : {0, 33, 64})
    for (const int rows : {1, 2, 4}) {
      EXPECT_EQ(m.target[i].context, context);
      EXPECT_EQ(m.target[i].rows, rows);
      EXPECT_EQ(m.TargetCost(rows, context), &m.target[i]);
      ExpectSpread(m.target[i++].us);
    }
  EXPECT_EQ(m.TargetCost(3, 0), nullptr);
  ExpectSpread(m.memory_gb_per_s);
  EXPECT_EQ(m.prompt_rows, kContextSize);
  ExpectSpread(m.prompt_tokens_per_second);
}

TEST(Measure, DraftsAsFarAsTheDrafterReaches) {
  for (const char* method : {"standalone", "mtp", "eagle"}) {
    const auto engine = OpenMeasured(method);
    const Measurements m = MeasureOn(*engine, {.rows = {1}, .contexts = {0, 20, 90}, .repeats = 2});
    for (const int context : {0, 20}) {
      const PassCost* cost = m.DraftCost(1, context);
      ASSERT_NE(cost, nullptr) << method << " after " << context;
      ExpectSpread(cost->us);
    }
    // The draft model's context is 48, that of heads the target's; 96 holds 90 positions, a few
    // rounds, and 3 drafts, so at most the first ones are whole.
    if (std::string(method) == "standalone") {
      EXPECT_EQ(m.DraftCost(1, 90), nullptr);
    }
  }
}

TEST(Measure, LookupIsMeasuredWhereItKnowsTheText) {
  const Measurements m =
      MeasureOn(*OpenMeasured("ngram"), {.rows = {1}, .contexts = {20}, .repeats = 2});
  ASSERT_NE(m.DraftCost(1, 20), nullptr);
  EXPECT_EQ(m.overhead.draft_barriers, 0);
  EXPECT_TRUE(MeasureOn(*OpenMeasured("none"), {.rows = {1}, .repeats = 1}).draft.empty());
}

TEST(Measure, SequencesThatDraftTogetherAreRowsOfTheDrafter) {
  const Measurements m = MeasureOn(*OpenMeasured("standalone", 4),
                                   {.rows = {1, 2, 4, 8}, .contexts = {10}, .repeats = 2});
  EXPECT_EQ(m.draft.size(), 3U);
  for (const int rows : {1, 2, 4}) ASSERT_NE(m.DraftCost(rows, 10), nullptr) << rows;
  EXPECT_NE(m.TargetCost(8, 10), nullptr);
}

TEST(Measure, CountsWhatSurroundsThePasses) {
  for (const float temperature : {0.0F, 0.8F}) {
    const StepOverhead o =
        MeasureOn(*OpenMeasured("standalone"),
                  {.rows = {1}, .repeats = 2, .sampling = {.temperature = temperature}})
            .overhead;
    // 7 for each of 2 layers, one before the output head, one at the end; none in passes that run
    // on one thread.
    for (const int barriers : {o.target_barriers, o.draft_barriers}) {
      EXPECT_GE(barriers, 0);
      EXPECT_LE(barriers, 16);
    }
    EXPECT_EQ(o.verified_rows, 4);
    for (const double us : {o.dispatch_us, o.barrier_us, o.verify_us, o.draw_us}) EXPECT_GT(us, 0);
    EXPECT_GE(o.target_us(), o.verify_us + o.target_barriers * o.barrier_us);
  }
}

// Measuring uses the engine's own caches: nothing of it may be left for the requests that follow.
TEST(Measure, LeavesNoTraceInTheTextsThatFollow) {
  Request request;
  request.prompt = "once upon a time";
  request.max_new_tokens = 40;
  request.ignore_eos = true;
  request.sampling.temperature = 0;
  for (const char* method : {"none", "standalone", "mtp", "eagle", "ngram"}) {
    const auto engine = OpenMeasured(method);
    const auto before = engine->Generate(request);
    MeasureOn(*engine, {.rows = {1, 8}, .contexts = {0, 64}, .repeats = 2});
    const auto after = engine->Generate(request);
    ASSERT_TRUE(before && after);
    EXPECT_EQ(before->token_ids, after->token_ids) << method;
    EXPECT_EQ(before->speculation.accepted, after->speculation.accepted) << method;
  }
}

TEST(Measure, ReportsProgressToTheEnd) {
  double last = 0;
  const auto on_progress = [&last](double fraction) {
    EXPECT_GT(fraction, last);
    last = fraction;
  };
  // 60 is farther than the draft model reaches.
  MeasureOn(*OpenMeasured("standalone"),
            {.rows = {1, 2}, .contexts = {0, 30, 60}, .repeats = 3, .on_progress = on_progress});
  EXPECT_DOUBLE_EQ(last, 1);
}

TEST(Measure, RefusesWhatNoPassCanBe) {
  const auto engine = OpenMeasured("none");
  const auto refused = [&](const MeasureOptions& options, ErrorCode code, const char* words) {
    EXPECT_TRUE(Fails(engine->Measure(options), code, words));
  };
  refused({.rows = {1, 0}}, ErrorCode::kInvalidArgument, "rows: 0");
  refused({.rows = {66}}, ErrorCode::kInvalidArgument, "rows: 66 is out of range; use 1 to 65");
  refused({.rows = {}}, ErrorCode::kInvalidArgument, "rows");
  refused({.contexts = {}}, ErrorCode::kInvalidArgument, "contexts");
  refused({.contexts = {-1}}, ErrorCode::kInvalidArgument, "contexts: -1");
  refused({.rows = {8}, .contexts = {89}}, ErrorCode::kTooLarge, "EngineOptions::context_size");
  refused({.repeats = 0}, ErrorCode::kInvalidArgument, "repeats: 0");
  refused({.sampling = {.temperature = 3}}, ErrorCode::kInvalidArgument, "temperature");
  MeasureOn(*engine, {.rows = {8}, .contexts = {88}, .repeats = 1});
}

}  // namespace
}  // namespace foretoken
