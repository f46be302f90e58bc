// SPDX-License-Identifier: Apache-2.0
// Networks whose cache keeps latent vectors: the bits of a request do not depend on the cut of its
// prompt, on the threads, on its neighbours, or on what it shares with earlier requests.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lossless/same_bits_testing.h"

namespace foretoken {
namespace {

// Heads enough for several tiles of queries, and experts in groups.
std::unique_ptr<Engine> Open(const Setting& setting) {
  static const auto files = WriteDrafts(fixtures::TinyOptions(
      "deepseek2 Q8_0 seed=93 n_heads=20 n_kv_heads=1 head_dim=64 q_rank=32 context_length=512 "
      "n_experts=8 n_used=3 shared_ff=32 n_dense=1 rope_dimensions=32 false.expert_gating_func=2 "
      "false.expert_group_count=4 false.expert_group_used_count=2"));
  EngineOptions options = OptionsOf(files.at("none"), setting);
  if (setting.method == "standalone") options.draft_model = files.at("standalone");
  return OpenEngine(options);
}

constexpr CacheType kCaches[] = {CacheType::kF32, CacheType::kF16, CacheType::kBF16,
                                 CacheType::kQ8_0, CacheType::kQ4_0};

TEST(LatentAttention, HasTheSameBitsForEveryCutThreadsAndDrafter) {
  const Request request = Read(150, 7);
  for (const CacheType cache : kCaches) {
    const Completion plain = Generated(*Open({.cache = cache}), request);
    for (const Setting& setting :
         {Setting{.prefill_rows = 17}, Setting{.threads = 2}, Setting{.threads = 3},
          Setting{.method = "ngram", .threads = 2}, Setting{.method = "standalone"}}) {
      Setting same = setting;
      same.cache = cache;
      ExpectSame(Generated(*Open(same), request), plain,
                 fmt::format("cache {} {}", static_cast<int>(cache), same.method));
    }
  }
}

TEST(LatentAttention, HasTheSameBitsInABatch) {
  const auto requests = ReadSeveral(6, 20, 13);
  const auto alone = GeneratedInTurn(*Open({}), requests);
  for (const char* method : {"none", "standalone"}) {
    const auto engine = Open({.method = method, .threads = 2, .sequences = 4});
    ExpectSame(GeneratedTogether(*engine, requests), alone, method);
  }
}

TEST(LatentAttention, HasTheSameBitsWhereAPrefixIsReused) {
  const auto engine = Open({});
  ExpectSameAfterOneThatBeganAlike(*engine, *Open({}));
  EXPECT_GE(engine->load().cached_prompt_tokens, 96);
}

TEST(LatentAttention, HasTheSameBitsInTheOlderLayout) {
  const std::string folder = fixtures::TemporaryFolder();
  fixtures::TinyModelOptions model = fixtures::TinyOptions(
      "deepseek2 seed=94 n_kv_heads=1 head_dim=40 n_experts=4 shared_ff=32 n_dense=1 "
      "rope_dimensions=8");
  std::vector<Completion> completions;
  for (const bool older : {false, true}) {
    model.older_latent = older;
    const auto engine = OpenEngine({.model = fixtures::WriteTinyModel(folder, model)});
    completions.push_back(Generated(*engine, Read(50, 1)));
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
