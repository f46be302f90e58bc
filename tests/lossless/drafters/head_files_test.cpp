// SPDX-License-Identifier: Apache-2.0
// Heads as the files of many families hold them: the bits of a request do not depend on their drafts,
// on the cut of its prompt, on the threads, on its neighbours, or on preemption.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lossless/same_bits_testing.h"

namespace foretoken {
namespace {

using tensor::DType;

// A target whose last block is an MTP head.
TargetAndHead Next(const std::string& arch, fixtures::TinyModelOptions target, int n_next = 1) {
  target.arch = arch;
  target.n_next = n_next;
  return HeadOf(fmt::format("mtp_{}_{}", arch, n_next), "mtp", target);
}

std::vector<TargetAndHead> Cases() {
  const auto experts =
                 fixtures::TinyOptions("seed=71 n_layers=3 n_experts=6 shared_ff=32 n_dense=1"),
             latent = fixtures::TinyOptions(
                 "Q8_0 seed=71 n_layers=3 n_heads=8 n_kv_heads=1 head_dim=48 q_rank=32 n_experts=6 "
                 "shared_ff=32 n_dense=1 rope_dimensions=16"),
             delta = fixtures::TinyOptions("seed=73 n_layers=4 head_dim=32 rope_dimensions=8"),
             delta_experts = fixtures::TinyOptions(
                 "Q8_0 seed=73 n_layers=4 head_dim=32 n_experts=6 shared_ff=32 rope_dimensions=8");
  return {
      Next("glm4moe", experts),
      Next("deepseek2", latent),
      Next("qwen35", delta),
      Next("qwen35moe", delta_experts, 2),
      Next("qwen3next", delta_experts),
      HeadOf("eagle_one_tap", "eagle", {.seed = 74}, {.eagle = true, .layers = {2}}),
      HeadOf("eagle_five_taps_two_blocks", "eagle", {.arch = "qwen3", .seed = 75, .n_layers = 4},
             {.eagle = true, .layers = {4, 0, 3, 1, 1}, .n_blocks = 2}),
      HeadOf("eagle_three_wider_blocks", "eagle",
             {.arch = "gemma3", .seed = 76, .n_layers = 3, .head_dim = 32, .window = 12},
             {.eagle = true,
              .weight_type = DType::kQ8_0,
              .layers = {0, 2},
              .n_blocks = 3,
              .dim = 96,
              .draft_vocabulary = 100,
              .norm_before_residual = true,
              .norm_before_fc = true}),
      HeadOf("assistant_two_blocks", "mtp",
             fixtures::TinyOptions(
                 "gemma4 seed=77 n_layers=6 head_dim=32 window=12 shared_caches=2 layer_input=8"),
             {.assistant = true, .n_blocks = 2, .dim = 32}),
      HeadOf(
          "assistant_four_blocks", "mtp",
          fixtures::TinyOptions("gemma4 Q8_0 seed=78 n_layers=3 head_dim=64 window=12 n_experts=4"),
          {.assistant = true, .weight_type = DType::kQ8_0, .n_blocks = 4, .dim = 96}),
      HeadOf("eagle_hybrid", "eagle", delta_experts,
             {.eagle = true, .layers = {1, 3, 4}, .n_blocks = 2}),
      HeadOf("dflash_window", "dflash", {.seed = 79}, {.block = true, .window = 20}),
      HeadOf("dflash_2_of_a_hybrid", "dflash", delta_experts,
             {.block = true, .weight_type = DType::kQ8_0, .taps = 2, .n_candidates = 8}),
      HeadOf("dflash_2_with_some_tokens", "dflash", {.arch = "qwen3", .seed = 80},
             {.block = true,
              .block_size = 6,
              .window = 12,
              .taps = 3,
              .group = 16,
              .n_candidates = 5,
              .layers = {2, 0},
              .draft_vocabulary = 120})};
}

std::vector<TargetAndHead> CasesWhere(bool (*is)(const TargetAndHead&)) {
  std::vector<TargetAndHead> cases = Cases();
  std::erase_if(cases, [is](const TargetAndHead& c) { return !is(c); });
  return cases;
}

class HeadFiles : public testing::TestWithParam<TargetAndHead> {
 protected:
  static const std::string& Folder() {
    static const std::string folder = fixtures::TemporaryFolder();
    return folder;
  }
  struct Paths {
    std::string target, head;
  };
  const Paths& Files() {
    static std::map<std::string, Paths> all;
    const TargetAndHead& c = GetParam();
    Paths& paths = all[c.name];
    if (!paths.target.empty()) return paths;
    paths.target = fixtures::WriteTinyModel(Folder(), c.target);
    if (c.target.n_next == 0) paths.head = fixtures::WriteTinyHead(Folder(), c.head);
    return paths;
  }

  // The setting with drafts of the head.
  Setting Drafting(Setting setting = {}) const {
    setting.method = GetParam().method;
    return setting;
  }
  Result<std::unique_ptr<Engine>> Open(const Setting& setting) {
    EngineOptions options = OptionsOf(Files().target, setting);
    if (setting.method != "none") options.draft_model = Files().head;
    return Engine::Open(options);
  }
  std::unique_ptr<Engine> Opened(const Setting& setting) { return Got(Open(setting)); }
};

TEST_P(HeadFiles, GiveTheSameBitsForEveryCutThreadsAndDraftLength) {
  for (const float temperature : {0.0f, 0.8f}) {
    const Completion plain = Generated(*Opened({}), Read(150, 7, 0, temperature));
    for (const Setting& setting :
         {Setting{}, Setting{.threads = 3, .prefill_rows = 17}, Setting{.kv_cache = false}}) {
      if (!setting.kv_cache && GetParam().head.assistant) continue;
      const auto engine = Opened(Drafting(setting));
      for (const int drafts : {1, 3, 40}) {
        const Completion other = Generated(*engine, Read(150, 7, drafts, temperature));
        ExpectSame(other, plain, fmt::format("T {} K {} {}", temperature, drafts, setting.threads));
        EXPECT_GT(other.speculation.drafted, other.speculation.accepted);
      }
    }
  }
}

// The text follows the drafts, so it is compared with itself: the drafts are exact too.
TEST_P(HeadFiles, DraftTheSameWhateverTheCutAndTheThreads) {
  const Request request = Read(100, 8, 4, 0.8f, VerifyStrategy::kResidual);
  const auto one = Opened(Drafting()), two = Opened(Drafting({.threads = 2, .prefill_rows = 13}));
  const Completion first = Generated(*one, request), other = Generated(*two, request);
  EXPECT_GT(first.speculation.drafted, 0);
  ExpectSame(other, first);
  EXPECT_EQ(other.speculation.accepted, first.speculation.accepted);
}

TEST_P(HeadFiles, GiveTheSameBitsInABatchAndAfterPreemption) {
  const auto requests = ReadSeveral(5, 40, 9);
  const auto wanted = GeneratedInTurn(*Opened({}), requests);
  for (const int cache_tokens : {0, 256}) {
    const auto engine =
        Opened(Drafting({.threads = 2, .sequences = 4, .cache_tokens = cache_tokens}));
    const auto batch = GeneratedTogether(*engine, requests);
    EXPECT_EQ(engine->load().preemptions > 0, cache_tokens != 0);
    ExpectSame(batch, wanted, fmt::format("of {}", cache_tokens));
    for (const Completion& text : batch) EXPECT_GT(text.speculation.drafted, 0);
  }
}

class HeadFilesThatReadACache : public HeadFiles {};

// Without a cache of the target there is nothing to read.
TEST_P(HeadFilesThatReadACache, AreRefusedWhereItIsOff) {
  EXPECT_TRUE(Fails(Open(Drafting({.kv_cache = false})), "this head reads the model's cache"));
}

// An assistant needs the newest feature alone, so its texts go on from known blocks. Other heads
// read all features of a text.
TEST_P(HeadFiles, GiveTheSameBitsInASecondTurn) {
  const auto engine = Opened(Drafting());
  Request request = Read(100, 11);
  request.prompt_tokens = WholeText(Generated(*engine, request));
  const Completion turn = Generated(*engine, request);
  ExpectSame(turn, Generated(*Opened({}), request));
  EXPECT_GT(turn.speculation.drafted, 0);
  if (GetParam().head.assistant) EXPECT_GE(turn.timings.cached_prompt_tokens, 96);
}

class HeadsInTheTargetsFile : public HeadFiles {};

TEST_P(HeadsInTheTargetsFile, DraftTheSameInAFileOfTheirOwn) {
  fixtures::TinyModelOptions alone = GetParam().target;
  alone.next_alone = true;
  const std::string head = fixtures::WriteTinyModel(Folder(), alone);
  const Request request = Read(60, 9, 3, 0.8f, VerifyStrategy::kResidual);
  const auto engine = OpenEngine({.model = Files().target,
                                  .draft_model = head,
                                  .speculative = {.controller = "fixed"},
                                  .context_size = 512});
  const Completion inside = Generated(*Opened(Drafting()), request),
                   apart = Generated(*engine, request);
  ExpectSame(apart, inside);
  EXPECT_EQ(apart.speculation.accepted, inside.speculation.accepted);
}

std::string NameOf(const testing::TestParamInfo<TargetAndHead>& of) {
  return of.param.name;
}
INSTANTIATE_TEST_SUITE_P(Files, HeadFiles, testing::ValuesIn(Cases()), NameOf);
INSTANTIATE_TEST_SUITE_P(
    Files, HeadFilesThatReadACache,
    testing::ValuesIn(CasesWhere([](const TargetAndHead& c) { return c.head.assistant; })), NameOf);
INSTANTIATE_TEST_SUITE_P(Files, HeadsInTheTargetsFile,
                         testing::ValuesIn(CasesWhere([](const TargetAndHead& c) {
                           return c.target.n_next != 0;
                         })),
                         NameOf);

}  // namespace
}  // namespace foretoken
