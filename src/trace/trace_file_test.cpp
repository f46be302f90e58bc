// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/failure_testing.h"
#include "fixtures/tiny_model.h"
#include "kernels/dispatch.h"
#include "trace/traces_testing.h"

namespace foretoken::trace {
namespace {

namespace fs = std::filesystem;

class TraceFile : public testing::Test {
 protected:
  std::string path_ = fixtures::TemporaryFolder() + "/run.jsonl";
};

TEST_F(TraceFile, ComesBackAsItWasRecorded) {
  RunTrace trace = TraceOf({.right = RightWith(0.7, 1), .noise = 0.3, .tokens = 60}, 4, 3);
  trace.header.cpu = "quotes \" and \\ and \n and \xff";
  trace.costs = {{1, 0, 1000.5}, {4, 128, 1300}};
  trace.requests[1].id = trace.requests[1].seed = ~std::uint64_t{0};
  trace.rounds[5].evidence = 2, trace.rounds[5].instant = trace.rounds[5].at_once = true;
  ASSERT_TRUE(Record(trace, path_));
  const auto read = Got(LoadTrace(path_));
  EXPECT_EQ(read.header.cpu, "quotes \" and \\ and \n and \xEF\xBF\xBD");
  EXPECT_EQ(read.header.max_sequences, 1);
  ASSERT_EQ(read.costs.size(), 2u);
  EXPECT_EQ(read.costs[1].context, 128);
  ASSERT_EQ(read.requests.size(), 3u);
  EXPECT_EQ(read.requests[1].seed, ~std::uint64_t{0});
  ASSERT_EQ(read.rounds.size(), trace.rounds.size());
  for (std::size_t i = 0; i < trace.rounds.size(); ++i) {
    const TracedRound &a = read.rounds[i], &b = trace.rounds[i];
    EXPECT_EQ(a.request, b.request);
    EXPECT_EQ(a.pass, static_cast<std::int64_t>(i));
    EXPECT_EQ(a.prefill, b.prefill);
    EXPECT_EQ(a.position, b.position);
    EXPECT_EQ(a.context, b.context);
    EXPECT_EQ(a.rows, b.rows);
    EXPECT_EQ(a.asked, b.asked);
    EXPECT_EQ(a.evidence, b.drafts.empty() ? 0 : b.evidence);
    EXPECT_EQ(a.drafts, b.drafts);
    EXPECT_EQ(a.accepted, b.accepted);
    EXPECT_EQ(a.committed, b.committed);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.end, b.end);
    EXPECT_NEAR(a.verify_us, b.verify_us, 0.051);
  }
}

TEST_F(TraceFile, HoldsDistributionsAtTheDrafts) {
  const auto recorder = *RunRecorder::Create(path_, TraceOf({}, 4, 0).header);
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f),
                                     std::log(0.1f), std::log(0.1f), std::log(0.8f)};
  const std::vector<float> q = {0.25f, 0.5f, 0.25f, 0.6f, 0.3f, 0.1f};
  const std::vector<Token> drafts = {1, 2}, prompt = {0};
  float scratch[16];
  for (const float temperature : {1.0f, 0.0f}) {
    recorder->Begin(0, {.method = "standalone",
                        .num_speculative_tokens = 2,
                        .prompt_tokens = 1,
                        .max_new_tokens = 8});
    sampling::Sampler sampler({.parameters = {.temperature = temperature}}, 3,
                              kernels::KernelsFor(kernels::Isa::kScalar));
    sampler.Begin(prompt, 8);
    const round::Verdict first{.accepted = 0, .next = 0, .kind = round::NextKind::kPlain};
    recorder->ReadDistributions(0, {}, {logits.data(), 3}, sampler, scratch);
    recorder->Add({.prefill = true, .fed = 1, .position = 1, .verdict = &first, .committed = 1});
    recorder->EndPass({.rows = 1});
    const round::Proposal proposal{.tokens = drafts, .q = q.data(), .q_stride = 3};
    const round::Verdict verdict{.accepted = 1, .next = 0, .kind = round::NextKind::kRecovered};
    recorder->ReadDistributions(0, proposal, {logits.data(), 3}, sampler, scratch);
    EXPECT_EQ(sampler.text().size(), 1u);
    recorder->Add({.fed = 1,
                   .position = 2,
                   .context = 1,
                   .asked = 2,
                   .drafter = "standalone",
                   .drafts = drafts,
                   .verdict = &verdict,
                   .committed = 2,
                   .end = "stop"});
    recorder->EndPass({.rows = 3});
  }
  ASSERT_TRUE(recorder->Publish());
  const auto trace = Got(LoadTrace(path_));
  ASSERT_EQ(trace.rounds.size(), 4u);
  const TracedRound &drawn = trace.rounds[1], &greedy = trace.rounds[3];
  EXPECT_NEAR(drawn.p[0], 0.3, 1e-5);
  EXPECT_NEAR(drawn.p[1], 0.8, 1e-5);
  EXPECT_NEAR(drawn.q[0], 0.5, 1e-5);
  EXPECT_NEAR(drawn.q[1], 0.1, 1e-5);
  EXPECT_EQ(greedy.p, (std::vector<float>{0, 1}));
}

TEST_F(TraceFile, AppearsWhenItIsPublishedAndThenGrows) {
  const RunTrace trace = TraceOf({.right = RightWith(1, 1), .tokens = 5}, 2, 1);
  {
    const auto recorder = *RunRecorder::Create(path_, trace.header);
    recorder->Begin(0, trace.requests.front());
    EXPECT_FALSE(fs::exists(path_));
    ASSERT_TRUE(recorder->Publish());
    EXPECT_EQ(LoadTrace(path_)->requests.size(), 1u);
    recorder->Begin(0, trace.requests.front());
  }
  EXPECT_EQ(LoadTrace(path_)->requests.size(), 2u);
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(path_).parent_path()), {}), 1);
  const auto nothing = RunRecorder::Create(path_, trace.header);  // replaces only what it can fill
  EXPECT_TRUE(nothing);
}

TEST_F(TraceFile, LeavesNothingBehindWhereNothingRan) {
  ASSERT_TRUE(RunRecorder::Create(path_, TraceOf({}, 2, 0).header));
  EXPECT_TRUE(fs::is_empty(fs::path(path_).parent_path()));
}

TEST_F(TraceFile, NeverReplacesAnotherKindOfFile) {
  std::ofstream(path_) << "GGUF and so on, long enough to be something";
  EXPECT_TRUE(Fails(RunRecorder::Create(path_, TraceOf({}, 2, 0).header),
                    ErrorCode::kInvalidArgument, "not a trace"));
  EXPECT_TRUE(
      Fails(RunRecorder::Create(fs::path(path_).parent_path().string(), TraceOf({}, 2, 0).header),
            ErrorCode::kIo));
}

TEST_F(TraceFile, AFullDiskIsAnErrorAtTheEnd) {
  if (!fs::exists("/dev/full")) GTEST_SKIP();
  RunTrace trace = TraceOf({.right = RightWith(0.5, 1), .tokens = 50}, 2, 1);
  EXPECT_TRUE(Fails(Record(trace, "/dev/full"), ErrorCode::kIo, "No space left"));
}

class HostileTrace : public TraceFile {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Record(TraceOf({.right = RightWith(0.7, 1), .tokens = 20}, 3, 2), path_));
    good_ = WholeFile(path_);
    ASSERT_TRUE(ParseTrace(good_, "t"));
  }
  // The error of the good trace with the first `from` behind `begin` replaced; "" if there is none.
  std::string WhyNot(const std::string& from, const std::string& to, const char* begin = "") {
    std::string text = good_;
    const std::size_t at = text.find(from, text.find(begin));
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto trace = ParseTrace(text, "t");
    if (trace) return "";
    EXPECT_EQ(trace.error().message.find('\n'), std::string::npos);
    EXPECT_EQ(trace.error().code, ErrorCode::kInvalidFile);
    return trace.error().message;
  }
  std::string good_;
};

TEST_F(HostileTrace, NamesTheLine) {
  EXPECT_NE(WhyNot("\"pass\":0", "\"pass\":-1").find("t: line 4: 'pass' is not a whole number"),
            std::string::npos)
      << WhyNot("\"pass\":0", "\"pass\":-1");
}

TEST_F(HostileTrace, EveryValueIsChecked) {
  const char* const round = "\"pass\":1,";
  EXPECT_NE(WhyNot("\"foretoken_trace\":2", "\"foretoken_trace\":3"), "");
  EXPECT_NE(WhyNot("\"lines\":", "\"lines\":1"), "");
  EXPECT_NE(WhyNot("\"threads\":1", "\"threads\":1.5"), "");
  EXPECT_NE(WhyNot("\"threads\":1", "\"threads\":1e999"), "");
  EXPECT_NE(WhyNot("\"threads\":1", "\"threads\":\"1\""), "");
  EXPECT_NE(WhyNot("\"version\"", "\"virsion\""), "");
  EXPECT_NE(WhyNot("\"request\":1", "\"request\":0"), "");
  EXPECT_NE(WhyNot("\"seed\":0", "\"seed\":-1"), "");
  EXPECT_NE(WhyNot("\"seed\":0", "\"seed\":99999999999999999999"), "");
  EXPECT_NE(WhyNot("\"of\":0", "\"of\":2"), "");
  EXPECT_NE(WhyNot("\"prefill\":true", "\"prefill\":false"), "");
  EXPECT_NE(WhyNot("\"position\":11", "\"position\":12", round), "");
  EXPECT_NE(WhyNot("\"rows\":4", "\"rows\":1", round), "");
  EXPECT_NE(WhyNot("\"asked\":3", "\"asked\":2", round), "");
  EXPECT_NE(WhyNot("\"asked\":3", "\"asked\":64", round), "");
  EXPECT_NE(WhyNot("\"drafts\":[7,7,7]", "\"drafts\":[7,7]", round), "");
  EXPECT_NE(WhyNot("\"drafts\":[7,7,7]", "\"drafts\":[7,7,-1]", round), "");
  EXPECT_NE(WhyNot("\"drafts\":[7,7,7]", "\"drafts\":[7,7,7.5]", round), "");
  EXPECT_NE(WhyNot("\"drafts\":[7,7,7]", "\"drafts\":7", round), "");
  EXPECT_NE(WhyNot("\"q\":[", "\"q\":[1.5,", round), "");
  EXPECT_NE(WhyNot("\"verify_us\":", "\"verify_us\":-", round), "");
  EXPECT_NE(WhyNot("\"verify_us\":", "\"verify_us\":null,\"x\":", round), "");
  EXPECT_NE(WhyNot("\"end\":\"length\"", "\"end\":\"tired\""), "");
  EXPECT_NE(WhyNot("\"max_new_tokens\":20", "\"max_new_tokens\":19"), "");
  EXPECT_NE(WhyNot("}\n", "}"), "");
  EXPECT_NE(WhyNot("}\n", "}\n\n"), "");
  EXPECT_NE(WhyNot("}\n", "}\n[1]\n"), "");
  EXPECT_NE(WhyNot("}\n", "}\n{\"costs\":[[1,2,3]]}\n"), "");
  EXPECT_NE(WhyNot("}\n", "}\n{\"costs\":[{\"rows\":0,\"context\":0,\"us\":1}]}\n"), "");
  EXPECT_NE(WhyNot("}\n", "}\n" + std::string(100'000, '[') + "\n"), "");
}

TEST_F(HostileTrace, EveryCutIsAnError) {
  for (std::size_t size = 0; size < good_.size(); ++size)
    EXPECT_TRUE(Fails(ParseTrace(std::string_view(good_).substr(0, size), "t"),
                      size == 0 ? "empty" : "cut off"))
        << size;
}

TEST_F(HostileTrace, LinesThatAreTakenOutAreMissed) {
  for (std::size_t begin = 0; begin < good_.size(); begin = good_.find('\n', begin) + 1)
    EXPECT_FALSE(
        ParseTrace(good_.substr(0, begin) + good_.substr(good_.find('\n', begin) + 1), "t"))
        << begin;
}

// Those that were written before a trace said where it ends.
TEST_F(HostileTrace, OlderTracesAreRead) {
  std::string old = good_.substr(0, good_.rfind("{\"lines\""));
  old.replace(old.find(":2"), 2, ":1");
  EXPECT_TRUE(ParseTrace(old, "t")) << ParseTrace(old, "t").error().message;
}

TEST_F(HostileTrace, AMissingFileIsNotFound) {
  EXPECT_EQ(LoadTrace(path_ + "x").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace foretoken::trace
