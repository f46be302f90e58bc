// SPDX-License-Identifier: Apache-2.0
// Heads as the files of many families hold them: the bits of a request do not depend on their drafts,
// on the cut of its prompt, on the threads, on its neighbours, or on preemption.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "fixtures/tiny_model.h"
#include "foretoken/engine.h"

namespace foretoken {
namespace {

using tensor::DType;

struct Case {
  std::string name, method;
  fixtures::TinyModelOptions target;
  fixtures::TinyHeadOptions head = {};  // where the target's file has no head
  bool reads_cache = false;             // of the target, which must keep one
};

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
      Eagle("hybrid", delta_experts, {.layers = {1, 3, 4}, .n_blocks = 2})};
}

struct Setting {
  bool drafts = true;
  int threads = 1, prefill_rows = 64, sequences = 1, cache_tokens = 0;
  bool kv_cache = true;
};

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

  Result<std::unique_ptr<Engine>> Open(const Setting& setting) {
    EngineOptions options{.model = Files().target,
                          .speculative = {.method = setting.drafts ? GetParam().method : "none",
                                          .lookahead = "fixed"},
                          .context_size = 512,
                          .max_sequences = setting.sequences,
                          .threads = setting.threads,
                          .prefill_rows = setting.prefill_rows};
    options.cache_tokens = setting.cache_tokens;
    options.kv_cache = setting.kv_cache;
    if (setting.drafts) options.draft_model = Files().head;
    return Engine::Open(options);
  }
  std::unique_ptr<Engine> Opened(const Setting& setting) {
    auto engine = Open(setting);
    EXPECT_TRUE(engine) << engine.error().message;
    return std::move(*engine);
  }
};

Request Read(int n, unsigned seed, int drafts = 5, float temperature = 0,
             VerifyStrategy strategy = VerifyStrategy::kSampleMatch) {
  std::mt19937 random(seed);
  Request r;
  for (int i = 0; i < n; ++i) r.prompt_tokens.push_back(3 + static_cast<int>(random() % 300));
  r.max_new_tokens = 60;
  r.sampling.temperature = temperature;
  r.seed = 3;
  r.logprobs = 3;
  r.ignore_eos = true;
  r.speculative.num_speculative_tokens = drafts;
  if (temperature != 0) r.speculative.strategy = strategy;
  return r;
}

void ExpectSame(const Completion& a, const Completion& b, const std::string& where) {
  ASSERT_EQ(a.token_ids, b.token_ids) << where;
  ASSERT_EQ(a.logprobs.size(), b.logprobs.size()) << where;
  for (std::size_t i = 0; i < a.logprobs.size(); ++i)
    ASSERT_EQ(std::memcmp(&a.logprobs[i].logprob, &b.logprobs[i].logprob, sizeof(float)), 0)
        << where << " token " << i;
}

TEST_P(HeadFiles, GiveTheSameBitsForEveryCutThreadsAndDraftLength) {
  for (const float temperature : {0.0f, 0.8f}) {
    const auto plain = Opened({.drafts = false})->Generate(Read(150, 7, 0, temperature));
    ASSERT_TRUE(plain) << plain.error().message;
    for (const Setting& setting :
         {Setting{}, Setting{.threads = 3, .prefill_rows = 17}, Setting{.kv_cache = false}}) {
      if (!setting.kv_cache && GetParam().reads_cache) continue;
      const auto engine = Opened(setting);
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
  const auto first = Opened({})->Generate(request);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_GT(first->speculation.accepted, 0);
  const auto other = Opened({.threads = 2, .prefill_rows = 13})->Generate(request);
  ASSERT_TRUE(other) << other.error().message;
  ASSERT_NO_FATAL_FAILURE(ExpectSame(*other, *first, "other cut"));
  EXPECT_EQ(other->speculation.accepted, first->speculation.accepted);
}

TEST_P(HeadFiles, GiveTheSameBitsInABatchAndAfterPreemption) {
  std::vector<Request> requests;
  for (unsigned i = 0; i < 5; ++i) requests.push_back(Read(40 + 9 * static_cast<int>(i), i));
  const auto alone = Opened({.drafts = false});
  std::vector<Completion> wanted;
  for (const Request& request : requests) wanted.push_back(*alone->Generate(request));
  for (const int cache_tokens : {0, 256}) {
    const auto engine = Opened({.threads = 2, .sequences = 4, .cache_tokens = cache_tokens});
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

// Without a cache of the target there is nothing to read.
TEST_P(HeadFiles, AreRefusedWhereTheyReadACacheThatIsOff) {
  if (!GetParam().reads_cache) GTEST_SKIP();
  const auto engine = Open({.kv_cache = false});
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("this head reads the model's cache"), std::string::npos);
}

// An assistant needs the newest feature alone, so its texts go on from known blocks. Other heads
// read all features of a text.
TEST_P(HeadFiles, GiveTheSameBitsInASecondTurn) {
  const auto engine = Opened({});
  const Request first = Read(100, 11);
  const auto answer = engine->Generate(first);
  ASSERT_TRUE(answer) << answer.error().message;
  Request second = first;
  second.prompt_tokens.insert(second.prompt_tokens.end(), answer->token_ids.begin(),
                              answer->token_ids.end());
  const auto turn = engine->Generate(second), fresh = Opened({.drafts = false})->Generate(second);
  ASSERT_TRUE(turn && fresh);
  ASSERT_NO_FATAL_FAILURE(ExpectSame(*turn, *fresh, "second turn"));
  EXPECT_GT(turn->speculation.drafted, 0);
  if (GetParam().reads_cache) EXPECT_GE(turn->timings.cached_prompt_tokens, 96);
}

TEST_P(HeadFiles, DraftTheSameInAFileOfTheirOwn) {
  if (GetParam().target.n_next == 0) GTEST_SKIP();
  fixtures::TinyModelOptions alone = GetParam().target;
  alone.next_alone = true;
  const std::string head = fixtures::WriteTinyModel(Folder(), alone);
  const Request request = Read(60, 9, 3, 0.8f, VerifyStrategy::kResidual);
  const auto inside = Opened({})->Generate(request);
  auto engine = Engine::Open({.model = Files().target,
                              .draft_model = head,
                              .speculative = {.lookahead = "fixed"},
                              .context_size = 512});
  ASSERT_TRUE(engine) << engine.error().message;
  const auto apart = (*engine)->Generate(request);
  ASSERT_TRUE(inside && apart);
  ASSERT_NO_FATAL_FAILURE(ExpectSame(*apart, *inside, "apart"));
  EXPECT_EQ(apart->speculation.accepted, inside->speculation.accepted);
}

INSTANTIATE_TEST_SUITE_P(Files, HeadFiles, testing::ValuesIn(Cases()),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace foretoken
