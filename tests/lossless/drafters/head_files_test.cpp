// SPDX-License-Identifier: Apache-2.0
// Heads as the files of many families hold them: the bits of a request do not depend on their drafts,
// on the cut of its prompt, on the threads, on its neighbours, or on preemption.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <ostream>

#include "fixtures/tiny_model.h"
#include "foretoken/engine.h"
#include "lossless/same_bits_testing.h"

namespace foretoken {
namespace {

using tensor::DType;

struct Case {
  std::string name, method;
  fixtures::TinyModelOptions target;
  fixtures::TinyHeadOptions head = {};  // where the target's file has no head
  bool reads_cache = false;             // of the target, which must keep one
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name;
}

// A target whose last block is an MTP head.
Case Next(const std::string& arch, fixtures::TinyModelOptions target, int n_next = 1) {
  target.arch = arch;
  target.n_next = n_next;
  target.context_length = 512;
  return {fmt::format("mtp_{}_{}", arch, n_next), "mtp", target};
}

Case Eagle(const std::string& name, fixtures::TinyModelOptions target,
           fixtures::TinyHeadOptions head) {
  target.context_length = 512;
  head.target = target;
  head.eagle = true;
  return {"eagle_" + name, "eagle", target, head};
}

Case Block(const std::string& name, fixtures::TinyModelOptions target,
           fixtures::TinyHeadOptions head) {
  target.context_length = 512;
  head.target = target;
  head.block = true;
  return {"dflash_" + name, "dflash", target, head};
}

Case Assistant(const std::string& name, fixtures::TinyModelOptions target,
               fixtures::TinyHeadOptions head) {
  target.arch = "gemma4";
  target.window = 12, target.context_length = 512;
  head.target = target;
  head.assistant = true;
  return {"assistant_" + name, "mtp", target, head, true};
}

std::vector<Case> Cases() {
  const fixtures::TinyModelOptions experts = {
      .seed = 71, .n_layers = 3, .n_experts = 6, .shared_ff = 32, .n_dense = 1};
  fixtures::TinyModelOptions latent = experts;
  latent.n_heads = 8, latent.n_kv_heads = 1, latent.head_dim = 48, latent.q_rank = 32;
  latent.rope_dimensions = 16, latent.weight_type = DType::kQ8_0;
  fixtures::TinyModelOptions delta = {.seed = 73, .n_layers = 4, .head_dim = 32};
  delta.rope_dimensions = 8;
  fixtures::TinyModelOptions delta_experts = delta;
  delta_experts.n_experts = 6, delta_experts.shared_ff = 32;
  delta_experts.weight_type = DType::kQ8_0;
  return {
      Next("glm4moe", experts),
      Next("deepseek2", latent),
      Next("qwen35", delta),
      Next("qwen35moe", delta_experts, 2),
      Next("qwen3next", delta_experts),
      Eagle("one_tap", {.seed = 74}, {.layers = {2}}),
      Eagle("five_taps_two_blocks", {.arch = "qwen3", .seed = 75, .n_layers = 4},
            {.layers = {4, 0, 3, 1, 1}, .n_blocks = 2}),
      Eagle("three_wider_blocks",
            {.arch = "gemma3", .seed = 76, .n_layers = 3, .head_dim = 32, .window = 12},
            {.weight_type = DType::kQ8_0,
             .layers = {0, 2},
             .n_blocks = 3,
             .dim = 96,
             .draft_vocabulary = 100,
             .norm_before_residual = true,
             .norm_before_fc = true}),
      Assistant("two_blocks",
                {.seed = 77, .n_layers = 6, .head_dim = 32, .shared_caches = 2, .layer_input = 8},
                {.n_blocks = 2, .dim = 32}),
      Assistant(
          "four_blocks",
          {.seed = 78, .n_layers = 3, .head_dim = 64, .weight_type = DType::kQ8_0, .n_experts = 4},
          {.weight_type = DType::kQ8_0, .n_blocks = 4, .dim = 96}),
      Eagle("hybrid", delta_experts, {.layers = {1, 3, 4}, .n_blocks = 2}),
      Block("window", {.seed = 79}, {.window = 20}),
      Block("2_of_a_hybrid", delta_experts,
            {.weight_type = DType::kQ8_0, .taps = 2, .n_candidates = 8}),
      Block("2_with_some_tokens", {.arch = "qwen3", .seed = 80},
            {.block_size = 6,
             .window = 12,
             .taps = 3,
             .group = 16,
             .n_candidates = 5,
             .layers = {2, 0},
             .draft_vocabulary = 120})};
}

std::vector<Case> CasesWhere(bool (*is)(const Case&)) {
  std::vector<Case> cases = Cases();
  std::erase_if(cases, [is](const Case& c) { return !is(c); });
  return cases;
}

class HeadFiles : public testing::TestWithParam<Case> {
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
    const Case& c = GetParam();
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
  std::unique_ptr<Engine> Opened(const Setting& setting) {
    auto engine = Open(setting);
    EXPECT_TRUE(engine) << engine.error().message;
    return std::move(*engine);
  }
};

TEST_P(HeadFiles, GiveTheSameBitsForEveryCutThreadsAndDraftLength) {
  for (const float temperature : {0.0f, 0.8f}) {
    const auto plain = Opened({})->Generate(Read(150, 7, 0, temperature));
    ASSERT_TRUE(plain) << plain.error().message;
    for (const Setting& setting :
         {Setting{}, Setting{.threads = 3, .prefill_rows = 17}, Setting{.kv_cache = false}}) {
      if (!setting.kv_cache && GetParam().reads_cache) continue;
      const auto engine = Opened(Drafting(setting));
      for (const int drafts : {1, 3, 40}) {
        const auto other = engine->Generate(Read(150, 7, drafts, temperature));
        ASSERT_TRUE(other) << other.error().message;
        ASSERT_NO_FATAL_FAILURE(ExpectSame(
            *other, *plain, fmt::format("T {} K {} {}", temperature, drafts, setting.threads)));
        EXPECT_GT(other->speculation.drafted, other->speculation.accepted);
      }
    }
  }
}

// The text follows the drafts, so it is compared with itself: the drafts are exact too.
TEST_P(HeadFiles, DraftTheSameWhateverTheCutAndTheThreads) {
  const Request request = Read(100, 8, 4, 0.8f, VerifyStrategy::kResidual);
  const auto first = Opened(Drafting())->Generate(request);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_GT(first->speculation.drafted, 0);
  const auto other = Opened(Drafting({.threads = 2, .prefill_rows = 13}))->Generate(request);
  ASSERT_TRUE(other) << other.error().message;
  ASSERT_NO_FATAL_FAILURE(ExpectSame(*other, *first, "other cut"));
  EXPECT_EQ(other->speculation.accepted, first->speculation.accepted);
}

TEST_P(HeadFiles, GiveTheSameBitsInABatchAndAfterPreemption) {
  std::vector<Request> requests;
  for (unsigned i = 0; i < 5; ++i) requests.push_back(Read(40 + 9 * static_cast<int>(i), i));
  const auto alone = Opened({});
  std::vector<Completion> wanted;
  for (const Request& request : requests) wanted.push_back(*alone->Generate(request));
  for (const int cache_tokens : {0, 256}) {
    const auto engine =
        Opened(Drafting({.threads = 2, .sequences = 4, .cache_tokens = cache_tokens}));
    const auto batch = engine->GenerateBatch(requests);
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ(engine->load().preemptions > 0, cache_tokens != 0);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(
          ExpectSame((*batch)[i], wanted[i], fmt::format("{} of {}", i, cache_tokens)));
      EXPECT_GT((*batch)[i].speculation.drafted, 0);
    }
  }
}

class HeadFilesThatReadACache : public HeadFiles {};

// Without a cache of the target there is nothing to read.
TEST_P(HeadFilesThatReadACache, AreRefusedWhereItIsOff) {
  const auto engine = Open(Drafting({.kv_cache = false}));
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("this head reads the model's cache"), std::string::npos);
}

// An assistant needs the newest feature alone, so its texts go on from known blocks. Other heads
// read all features of a text.
TEST_P(HeadFiles, GiveTheSameBitsInASecondTurn) {
  const auto engine = Opened(Drafting());
  const Request first = Read(100, 11);
  const auto answer = engine->Generate(first);
  ASSERT_TRUE(answer) << answer.error().message;
  Request second = first;
  second.prompt_tokens.insert(second.prompt_tokens.end(), answer->token_ids.begin(),
                              answer->token_ids.end());
  const auto turn = engine->Generate(second), fresh = Opened({})->Generate(second);
  ASSERT_TRUE(turn && fresh);
  ASSERT_NO_FATAL_FAILURE(ExpectSame(*turn, *fresh, "second turn"));
  EXPECT_GT(turn->speculation.drafted, 0);
  if (GetParam().reads_cache) EXPECT_GE(turn->timings.cached_prompt_tokens, 96);
}

class HeadsInTheTargetsFile : public HeadFiles {};

TEST_P(HeadsInTheTargetsFile, DraftTheSameInAFileOfTheirOwn) {
  fixtures::TinyModelOptions alone = GetParam().target;
  alone.next_alone = true;
  const std::string head = fixtures::WriteTinyModel(Folder(), alone);
  const Request request = Read(60, 9, 3, 0.8f, VerifyStrategy::kResidual);
  const auto inside = Opened(Drafting())->Generate(request);
  auto engine = Engine::Open({.model = Files().target,
                              .draft_model = head,
                              .speculative = {.controller = "fixed"},
                              .context_size = 512});
  ASSERT_TRUE(engine) << engine.error().message;
  const auto apart = (*engine)->Generate(request);
  ASSERT_TRUE(inside && apart);
  ASSERT_NO_FATAL_FAILURE(ExpectSame(*apart, *inside, "apart"));
  EXPECT_EQ(apart->speculation.accepted, inside->speculation.accepted);
}

std::string NameOf(const testing::TestParamInfo<Case>& of) {
  return of.param.name;
}
INSTANTIATE_TEST_SUITE_P(Files, HeadFiles, testing::ValuesIn(Cases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Files, HeadFilesThatReadACache,
                         testing::ValuesIn(CasesWhere([](const Case& c) { return c.reads_cache; })),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(
    Files, HeadsInTheTargetsFile,
    testing::ValuesIn(CasesWhere([](const Case& c) { return c.target.n_next != 0; })), NameOf);

}  // namespace
}  // namespace foretoken
