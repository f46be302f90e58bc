// SPDX-License-Identifier: Apache-2.0
// Heads, and copies of the target, with a reduced output beside the whole one: the text stays, whichever
// output drafts, and each output drafts as it would alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lossless/same_bits_testing.h"

namespace foretoken {
namespace {

std::vector<TargetAndHead> Cases() {
  const auto recurrent =
      fixtures::TinyOptions("qwen35 seed=83 n_layers=4 head_dim=32 rope_dimensions=8");
  fixtures::TinyModelOptions hybrid = recurrent;
  hybrid.n_next = 1;
  return {
      HeadOf("mtp", "mtp", {.seed = 81}, {}),
      HeadOf("mtp_in_the_target", "mtp", hybrid, {}),
      HeadOf("eagle", "eagle", {.seed = 82, .weight_type = tensor::DType::kQ8_0}, {.eagle = true}),
      HeadOf("eagle_own_output", "eagle", {.seed = 84},
             {.eagle = true, .own_output = true, .own_embedding = true}),
      HeadOf("dflash", "dflash", {.seed = 85}, {.block = true}),
      HeadOf("assistant", "mtp", {.arch = "gemma4", .seed = 86, .n_layers = 3, .window = 12},
             {.assistant = true, .n_blocks = 2, .dim = 32}),
      HeadOf("self", "self", {.seed = 88}, {}),
      HeadOf("self_tied", "self", {.seed = 89, .tied = true}, {}),
      HeadOf("self_recurrent", "self", recurrent, {})};
}

class ReducedHeads : public testing::TestWithParam<TargetAndHead> {
 protected:
  // n: draft_vocabulary.
  std::unique_ptr<Engine> Open(std::optional<int> n, const std::string& controller = "fixed",
                               int sequences = 1) {
    static const std::string folder = fixtures::TemporaryFolder();
    const TargetAndHead& c = GetParam();
    EngineOptions options{.model = fixtures::WriteTinyModel(folder, c.target),
                          .speculative = {.method = c.method,
                                          .num_speculative_tokens = 5,
                                          .controller = controller,
                                          .draft_vocabulary = n},
                          .max_sequences = sequences,
                          .threads = 1};
    if (c.target.n_next == 0 && c.method != "self")
      options.draft_model = fixtures::WriteTinyHead(folder, c.head);
    return OpenEngine(std::move(options));
  }

  static Request RequestOf(float temperature, const std::string& method = "", int number = 0) {
    Request request;
    request.prompt = fmt::format("once upon a time {} there was", number);
    request.max_new_tokens = 80;
    request.sampling.temperature = temperature;
    request.seed = 5;
    // The token of each position is the same, whatever was drafted.
    if (temperature > 0) request.speculative.strategy = VerifyStrategy::kSampleMatch;
    if (!method.empty()) request.speculative.method = method;
    return request;
  }
};

TEST_P(ReducedHeads, KeepTheTextOfPlainDecoding) {
  const auto engine = Open(60);
  for (const float temperature : {0.0F, 0.8F}) {
    const Completion plain = Generated(*engine, RequestOf(temperature, "none"));
    for (const std::string output : {"subset", "whole"}) {
      const Completion drafted =
          Generated(*engine, RequestOf(temperature, GetParam().method + ":" + output));
      EXPECT_EQ(drafted.token_ids, plain.token_ids) << output << ", " << temperature;
      EXPECT_GT(drafted.speculation.drafted, 0) << output;
    }
  }
}

// The whole output beside a reduced one drafts as the only output of a head.
TEST_P(ReducedHeads, LeaveTheWholeOutputAsItIs) {
  const auto both = Open(60), alone = Open(0);
  for (const float temperature : {0.0F, 0.8F}) {
    const Completion a = Generated(*both, RequestOf(temperature, GetParam().method + ":whole")),
                     b = Generated(*alone, RequestOf(temperature, GetParam().method));
    EXPECT_EQ(a.speculation.drafted, b.speculation.drafted);
    EXPECT_EQ(a.speculation.accepted, b.speculation.accepted);
  }
}

TEST_P(ReducedHeads, DraftNearlyAsTheWholeOutputWithAllTokensButOne) {
  const auto engine = Open(319);
  const Completion subset = Generated(*engine, RequestOf(0, GetParam().method + ":subset")),
                   whole = Generated(*engine, RequestOf(0, GetParam().method + ":whole"));
  EXPECT_EQ(subset.token_ids, whole.token_ids);
  const auto missing = std::count(whole.token_ids.begin(), whole.token_ids.end(), 319);
  EXPECT_NEAR(static_cast<double>(subset.speculation.accepted),
              static_cast<double>(whole.speculation.accepted),
              2 + 5 * static_cast<double>(missing));
}

// With 60 of 320 tokens a column of the reduced output is not the token of its number. Drafts that took it for
// one would hardly ever be accepted.
TEST_P(ReducedHeads, DraftTheTokensOfTheirRows) {
  const auto engine = Open(60);
  const Completion subset = Generated(*engine, RequestOf(0, GetParam().method + ":subset")),
                   whole = Generated(*engine, RequestOf(0, GetParam().method + ":whole"));
  if (whole.speculation.accepted < 30) GTEST_SKIP() << "this head is hardly ever right";
  EXPECT_GE(5 * subset.speculation.accepted, whole.speculation.accepted);
}

// The controller may change the output from round to round, with several texts at once.
TEST_P(ReducedHeads, MayBeChosenByTheController) {
  const auto engine = Open(60, "cost-model", 3);
  const auto& methods = engine->summary().methods;
  EXPECT_NE(std::find(methods.begin(), methods.end(), GetParam().method + ":subset"),
            methods.end());
  for (const float temperature : {0.0F, 0.8F}) {
    std::vector<Request> plain, drafted;
    for (int i = 0; i < 3; ++i) {
      plain.push_back(RequestOf(temperature, "none", i));
      drafted.push_back(RequestOf(temperature, i == 1 ? GetParam().method + ":whole" : "", i));
    }
    ExpectSame(GeneratedTogether(*engine, drafted), GeneratedTogether(*engine, plain),
               fmt::format("{}", temperature));
  }
}

TEST_P(ReducedHeads, AreOffWhereTheVocabularyIsSmall) {
  const auto engine = Open(std::nullopt);
  const auto& methods = engine->summary().methods;
  EXPECT_EQ(std::find(methods.begin(), methods.end(), GetParam().method + ":subset"),
            methods.end());
}

INSTANTIATE_TEST_SUITE_P(Kinds, ReducedHeads, testing::ValuesIn(Cases()),
                         [](const auto& row) { return row.param.name; });

TEST(ReducedHead, OfTokensOfItsOwnIsRefusedInANotice) {
  const std::string folder = fixtures::TemporaryFolder();
  const fixtures::TinyModelOptions target{.seed = 87};
  EngineOptions options{.model = fixtures::WriteTinyModel(folder, target),
                        .draft_model = fixtures::WriteTinyHead(
                            folder, {.target = target, .eagle = true, .draft_vocabulary = 100}),
                        .speculative = {.draft_vocabulary = 60},
                        .threads = 1};
  auto engine = OpenEngine(options);
  bool noticed = false;
  for (const std::string& notice : engine->summary().notices)
    noticed |= notice.find("this head's output cannot be reduced") != std::string::npos;
  EXPECT_TRUE(noticed);
}

// The default: 32,768 tokens of a larger vocabulary.
TEST(ReducedHead, IsThereWithoutAFlagWhereTheVocabularyIsLarge) {
  const std::string folder = fixtures::TemporaryFolder();
  fixtures::TinyModelOptions target{.seed = 88, .n_layers = 1, .dim = 32, .ff = 32};
  target.vocab = 33'000, target.n_heads = 2, target.n_kv_heads = 1;
  EngineOptions options{.model = fixtures::WriteTinyModel(folder, target),
                        .draft_model = fixtures::WriteTinyHead(folder, {.target = target}),
                        .context_size = 128,
                        .threads = 1};
  auto engine = OpenEngine(options);
  const auto& methods = engine->summary().methods;
  EXPECT_NE(std::find(methods.begin(), methods.end(), "mtp:subset"), methods.end());
  options.speculative.draft_vocabulary = 0;
  engine = OpenEngine(options);
  const auto& without = engine->summary().methods;
  EXPECT_EQ(std::find(without.begin(), without.end(), "mtp:subset"), without.end());
}

}  // namespace
}  // namespace foretoken
