// SPDX-License-Identifier: Apache-2.0
// Networks whose cache keeps latent vectors: the bits of a request do not depend on the cut of its
// prompt, on the threads, on its neighbours, or on what it shares with earlier requests.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/engine.h"

namespace foretoken {
namespace {

using Tokens = std::vector<std::int32_t>;

struct Files {
  std::string target, draft;
};

// Heads enough for several tiles of queries, and experts in groups.
const Files& Model() {
  static const Files files = [] {
    const std::string folder = fixtures::TemporaryFolder();
    fixtures::TinyModelOptions options{
        .arch = "deepseek2",
        .seed = 93,
        .n_heads = 20,
        .n_kv_heads = 1,
        .head_dim = 64,
        .q_rank = 32,
        .context_length = 512,
        .weight_type = tensor::DType::kQ8_0,
        .n_experts = 8,
        .n_used = 3,
        .shared_ff = 32,
        .n_dense = 1,
        .rope_dimensions = 32,
        .false_keys = {
            {"expert_gating_func", 2}, {"expert_group_count", 4}, {"expert_group_used_count", 2}}};
    Files made;
    made.target = fixtures::WriteTinyModel(folder, options);
    options.noise = 0.15;
    made.draft = fixtures::WriteTinyModel(folder, options);
    return made;
  }();
  return files;
}

struct Setting {
  CacheType cache = CacheType::kF16;
  std::string method = "none";
  int threads = 1, prefill_rows = 64, sequences = 1;
};

std::unique_ptr<Engine> Open(const Setting& setting) {
  EngineOptions options{.model = Model().target,
                        .speculative = {.method = setting.method, .controller = "fixed"},
                        .context_size = 512,
                        .max_sequences = setting.sequences,
                        .threads = setting.threads,
                        .prefill_rows = setting.prefill_rows};
  options.cache_type_k = options.cache_type_v = setting.cache;
  if (setting.method == "standalone") options.draft_model = Model().draft;
  return OpenEngine(options);
}

Request Read(int n, unsigned seed) {
  Request r;
  r.prompt_tokens = TokensOf(n, seed);
  r.max_new_tokens = 40;
  r.sampling.temperature = 0;  // drafts change no token
  r.seed = 3;
  r.logprobs = 3;
  r.ignore_eos = true;
  r.speculative.num_speculative_tokens = 5;
  return r;
}

constexpr CacheType kCaches[] = {CacheType::kF32, CacheType::kF16, CacheType::kBF16,
                                 CacheType::kQ8_0, CacheType::kQ4_0};

TEST(LatentAttention, HasTheSameBitsForEveryCutThreadsAndDrafter) {
  const Request request = Read(150, 7);
  for (const CacheType cache : kCaches) {
    const auto plain = Open({.cache = cache})->Generate(request);
    ASSERT_TRUE(plain) << plain.error().message;
    for (const Setting& setting :
         {Setting{.prefill_rows = 17}, Setting{.threads = 2}, Setting{.threads = 3},
          Setting{.method = "ngram", .threads = 2}, Setting{.method = "standalone"}}) {
      Setting same = setting;
      same.cache = cache;
      const auto other = Open(same)->Generate(request);
      ASSERT_TRUE(other) << other.error().message;
      ASSERT_NO_FATAL_FAILURE(ExpectSame(
          *other, *plain, fmt::format("cache {} {}", static_cast<int>(cache), same.method)));
    }
  }
}

TEST(LatentAttention, HasTheSameBitsInABatch) {
  std::vector<Request> requests;
  for (unsigned i = 0; i < 6; ++i) requests.push_back(Read(20 + 13 * static_cast<int>(i), i));
  const auto alone = Open({});
  for (const char* method : {"none", "standalone"}) {
    const auto batch =
        Open({.method = method, .threads = 2, .sequences = 4})->GenerateBatch(requests);
    ASSERT_TRUE(batch) << batch.error().message;
    for (std::size_t i = 0; i < requests.size(); ++i)
      ASSERT_NO_FATAL_FAILURE(
          ExpectSame((*batch)[i], *alone->Generate(requests[i]), fmt::format("{} {}", method, i)));
  }
}

TEST(LatentAttention, HasTheSameBitsWhereAPrefixIsReused) {
  const auto engine = Open({});
  const Request first = Read(150, 7);
  Request second = first;
  second.prompt_tokens.resize(100);
  second.prompt_tokens.push_back(9);
  ASSERT_TRUE(engine->Generate(first));
  const auto reused = engine->Generate(second), fresh = Open({})->Generate(second);
  ASSERT_TRUE(reused && fresh);
  EXPECT_GE(engine->load().cached_prompt_tokens, 96);
  ASSERT_NO_FATAL_FAILURE(ExpectSame(*reused, *fresh, "reused"));
}

TEST(LatentAttention, HasTheSameBitsInTheOlderLayout) {
  const std::string folder = fixtures::TemporaryFolder();
  fixtures::TinyModelOptions model{.arch = "deepseek2",
                                   .seed = 94,
                                   .n_kv_heads = 1,
                                   .head_dim = 40,
                                   .n_experts = 4,
                                   .shared_ff = 32,
                                   .n_dense = 1,
                                   .rope_dimensions = 8};
  std::vector<Completion> completions;
  for (const bool older : {false, true}) {
    model.older_latent = older;
    const auto engine = Engine::Open({.model = fixtures::WriteTinyModel(folder, model)});
    ASSERT_TRUE(engine) << engine.error().message;
    completions.push_back(*(*engine)->Generate(Read(50, 1)));
  }
  ExpectSame(completions[0], completions[1], "older layout");
}

// The cache keeps 32 + 32 numbers a position and layer, whatever the 20 heads are.
TEST(LatentAttention, KeepsOneShortVectorAPosition) {
  const auto bytes = Open({})->summary().target.cache_bytes;
  EXPECT_EQ(bytes % (2 * 2 * 64 * 32), 0);
  EXPECT_GE(bytes, 2 * 2 * 64 * 512);
  EXPECT_LT(bytes, 2 * 2 * 64 * 700);
}

}  // namespace
}  // namespace foretoken
