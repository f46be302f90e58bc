// SPDX-License-Identifier: Apache-2.0
// What the types of the cache err: log-probabilities of a text differ from those with F32 as much as the
// numbers that the cache keeps do.
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken {
namespace {

std::vector<float> ScoresWith(CacheType type, const std::string& model) {
  std::vector<std::int32_t> tokens = {1};
  for (int i = 0; i < 150; ++i) tokens.push_back(3 + (i * 37 + i * i) % 300);
  EngineOptions options{.model = model, .speculative = {.method = "none"}, .threads = 1};
  options.cache_type_k = options.cache_type_v = type;
  return *OpenEngine(options)->Score(tokens);
}

double MeanDistance(const std::vector<float>& x, const std::vector<float>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += std::abs(double{x[i]} - double{y[i]});
  return sum / static_cast<double>(x.size());
}

const std::vector<fixtures::NamedOptions>& Networks() {
  static const auto networks = fixtures::TinyTable(R"(
llama: seed=41 head_dim=64
qwen3: qwen3 seed=42 head_dim=96
gemma3: gemma3 seed=43 head_dim=32 window=40
deepseek2: deepseek2 seed=44 n_kv_heads=1 head_dim=64 latent_rank=128 n_experts=4 shared_ff=32
    n_dense=1 rope_dimensions=32)");
  return networks;
}

class CacheTypes : public testing::TestWithParam<fixtures::NamedOptions> {};

// A step of q4_0 is about 17 steps of q8_0, whose error is in part that of queries.
TEST_P(CacheTypes, ErrByTheirSteps) {
  const std::string model =
      fixtures::WriteTinyModel(fixtures::TemporaryFolder(), GetParam().options);
  const auto exact = ScoresWith(CacheType::kF32, model);
  const double eight = MeanDistance(ScoresWith(CacheType::kQ8_0, model), exact),
               four = MeanDistance(ScoresWith(CacheType::kQ4_0, model), exact);
  EXPECT_GT(eight, 0);
  EXPECT_GT(four, 4 * eight);
  EXPECT_LT(four, 30 * eight);
}

INSTANTIATE_TEST_SUITE_P(Networks, CacheTypes, testing::ValuesIn(Networks()),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace foretoken
