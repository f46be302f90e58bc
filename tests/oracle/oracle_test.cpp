// SPDX-License-Identifier: Apache-2.0
// The engine against the oracle: the same bits, for every architecture, weight type, instruction set and cache type.
#include "oracle/oracle.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures/tiny_model.h"
#include "foretoken/engine.h"
#include "kernels/dispatch.h"
#include "model/arch/registry.h"
#include "model/weights.h"

namespace foretoken::oracle {
namespace {

struct Case {
  const char* name;
  fixtures::TinyModelOptions options;
};

std::vector<Case> Cases() {
  using tensor::DType;
  return {{"llama_f32", {}},
          {"llama_f16_tied", {.seed = 2, .tied = true, .weight_type = DType::kF16}},
          {"llama_bf16", {.seed = 3, .weight_type = DType::kBF16}},
          {"llama_q8_0", {.seed = 4, .weight_type = DType::kQ8_0}},
          {"llama_q4_0", {.seed = 5, .ff = 160, .weight_type = DType::kQ4_0}},
          {"llama_mixed", {.seed = 6, .weight_type = DType::kQ4_0, .weight_types = {{"attn_v", DType::kQ8_0}, {"output", DType::kF16}, {"ffn_down", DType::kF32}}}},
          {"llama_small_heads", {.seed = 7, .dim = 32, .ff = 64, .n_heads = 4, .n_kv_heads = 4, .weight_type = DType::kQ8_0}},
          {"qwen2_q8_0", {.arch = "qwen2", .seed = 8, .weight_type = DType::kQ8_0}},
          {"qwen3_f32", {.arch = "qwen3", .seed = 9, .head_dim = 32}},
          {"odd_sizes_f32", {.seed = 10, .dim = 40, .ff = 52, .n_heads = 5, .n_kv_heads = 1, .vocab = 333}}};
}

// Logits as far as a caller sees them: the bits of the log-probabilities of the 64 best tokens and of the chosen one.
class EngineAgainstOracle : public testing::TestWithParam<std::tuple<int, CacheType>> {};

TEST_P(EngineAgainstOracle, GivesTheSameBits) {
  const auto [index, cache] = GetParam();
  const Case c = Cases()[static_cast<std::size_t>(index)];
  const std::string path = fixtures::WriteTinyModel(fixtures::TemporaryFolder(), c.options);
  auto checkpoint = formats::OpenCheckpoint(path);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  auto config = model::ConfigFromMetadata((*checkpoint)->metadata());
  ASSERT_TRUE(config) << config.error().message;
  const Oracle oracle(**checkpoint, *config, cache == CacheType::kF16);
  std::vector<Token> prompt = {1};
  for (int i = 0; i < 36; ++i) prompt.push_back(3 + (i * 37 + i * i) % 300);  // past the edge of a cache block
  constexpr int kTokens = 6;
  const auto expected = oracle.Decode(prompt, kTokens);
  std::vector<float> last = oracle.Logits(prompt);
  double normaliser = 0;
  for (const float x : last) normaliser += std::exp(static_cast<double>(x));
  for (const kernels::Isa isa : kernels::AvailableIsas()) {
    auto engine = Engine::Open({.model = path, .speculative = {.method = "none"}, .threads = 2, .cache_type_k = cache, .cache_type_v = cache, .isa = std::string(kernels::Name(isa))});
    ASSERT_TRUE(engine) << engine.error().message;
    Request request;
    request.prompt_tokens = prompt;
    request.max_new_tokens = kTokens;
    request.sampling.temperature = 0;
    request.ignore_eos = true;
    request.logprobs = 64;
    auto completion = (*engine)->Generate(request);
    ASSERT_TRUE(completion) << completion.error().message;
    EXPECT_EQ(completion->token_ids, expected) << c.name << " " << kernels::Name(isa);
    // Differences of log-probabilities are differences of logits, rounded once.
    const auto& top = completion->logprobs[0].top;
    ASSERT_EQ(top.size(), 64u);
    for (const auto& [id, logprob] : top)
      ASSERT_NEAR(logprob, static_cast<double>(last[static_cast<std::size_t>(id)]) - std::log(normaliser), 1e-5) << c.name << " " << kernels::Name(isa);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EngineAgainstOracle, testing::Combine(testing::Range(0, 10), testing::Values(CacheType::kF32, CacheType::kF16)),
                         [](const auto& info) {
                           return std::string(Cases()[static_cast<std::size_t>(std::get<0>(info.param))].name) + (std::get<1>(info.param) == CacheType::kF32 ? "_f32_cache" : "_f16_cache");
                         });

}  // namespace
}  // namespace foretoken::oracle
