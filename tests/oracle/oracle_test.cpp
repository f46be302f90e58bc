// SPDX-License-Identifier: Apache-2.0
// The forward pass against the oracle: the same bits, for every architecture, weight type,
// instruction set, team and cache type.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <vector>

#include "fixtures/tiny_model.h"
#include "kernels/dispatch.h"
#include "kv/transaction.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"
#include "oracle/oracle.h"

namespace foretoken::oracle {
namespace {

struct Case {
  const char* name;
  fixtures::TinyModelOptions options;
};

std::vector<Case> Cases() {
  using tensor::DType;
  return {
      {"llama_f32", {}},
      {"llama_f16_tied", {.seed = 2, .tied = true, .weight_type = DType::kF16}},
      {"llama_bf16", {.seed = 3, .weight_type = DType::kBF16}},
      {"llama_q8_0", {.seed = 4, .weight_type = DType::kQ8_0}},
      {"llama_q4_0", {.seed = 5, .ff = 160, .weight_type = DType::kQ4_0}},
      {"llama_mixed",
       {.seed = 6,
        .weight_type = DType::kQ4_0,
        .weight_types = {{"attn_v", DType::kQ8_0},
                         {"output", DType::kF16},
                         {"ffn_down", DType::kF32}}}},
      {"llama_q6_k", {.seed = 11, .dim = 256, .ff = 256, .weight_type = DType::kQ6_K}},
      {"llama_q4_0_q6_k_head",
       {.seed = 12,
        .dim = 256,
        .ff = 96,
        .weight_type = DType::kQ4_0,
        .weight_types = {{"output", DType::kQ6_K}}}},
      {"llama_q4_1", {.seed = 13, .ff = 160, .weight_type = DType::kQ4_1}},
      {"llama_q5_0", {.seed = 14, .ff = 160, .weight_type = DType::kQ5_0}},
      {"llama_q5_1", {.seed = 15, .ff = 160, .weight_type = DType::kQ5_1}},
      {"llama_mxfp4", {.seed = 25, .ff = 160, .weight_type = DType::kMXFP4}},
      {"llama_iq4_nl", {.seed = 26, .ff = 160, .weight_type = DType::kIQ4_NL}},
      {"llama_iq4_xs", {.seed = 27, .dim = 256, .ff = 256, .weight_type = DType::kIQ4_XS}},
      {"llama_q3_k", {.seed = 28, .dim = 256, .ff = 512, .weight_type = DType::kQ3_K}},
      {"llama_q2_k", {.seed = 29, .dim = 256, .ff = 256, .weight_type = DType::kQ2_K}},
      {"llama_q4_k", {.seed = 16, .dim = 256, .ff = 512, .weight_type = DType::kQ4_K}},
      {"llama_q5_k", {.seed = 17, .dim = 256, .ff = 256, .weight_type = DType::kQ5_K}},
      {"llama_q4_k_m",
       {.seed = 18,
        .dim = 256,
        .ff = 256,
        .weight_type = DType::kQ4_K,
        .weight_types = {{"output", DType::kQ6_K},
                         {"attn_v", DType::kQ6_K},
                         {"ffn_down", DType::kQ5_K}}}},
      {"llama_small_heads",
       {.seed = 7,
        .dim = 32,
        .ff = 64,
        .n_heads = 4,
        .n_kv_heads = 4,
        .weight_type = DType::kQ8_0}},
      {"qwen2_q8_0", {.arch = "qwen2", .seed = 8, .weight_type = DType::kQ8_0}},
      {"qwen3_f32", {.arch = "qwen3", .seed = 9, .head_dim = 32}},
      {"smollm3_f32", {.arch = "smollm3", .seed = 21, .n_layers = 5}},
      {"smollm3_q8_0", {.arch = "smollm3", .seed = 22, .n_layers = 4, .weight_type = DType::kQ8_0}},
      {"granite_f32", {.arch = "granite", .seed = 23}},
      {"granite_q4_0", {.arch = "granite", .seed = 24, .ff = 160, .weight_type = DType::kQ4_0}},
      {"gemma2_f32", {.arch = "gemma2", .seed = 25, .n_layers = 3, .tied = true, .window = 9}},
      {"gemma2_q8_0", {.arch = "gemma2", .seed = 26, .window = 33, .weight_type = DType::kQ8_0}},
      {"gemma3_f32",
       {.arch = "gemma3", .seed = 27, .n_layers = 7, .head_dim = 32, .tied = true, .window = 5}},
      {"gemma3_q4_0",
       {.arch = "gemma3",
        .seed = 28,
        .n_layers = 6,
        .head_dim = 32,
        .window = 20,
        .weight_type = DType::kQ4_0,
        .rope_scaling = "linear",
        .rope_scaling_factor = 8}},
      {"gemma4_f32",
       {.arch = "gemma4",
        .seed = 40,
        .n_layers = 3,
        .kv_heads_by_layer = {2, 2, 1},
        .head_dim = 32,
        .tied = true,
        .window = 6,
        .rope_freqs = true}},
      {"gemma4_q8_0",
       {.arch = "gemma4",
        .seed = 41,
        .n_layers = 4,
        .head_dim = 16,
        .window = 21,
        .weight_type = DType::kQ8_0}},
      {"phi3_short_f32",
       {.arch = "phi3", .seed = 29, .rope_dimensions = 12, .rope_original_context = 64}},
      {"phi3_q4_k",
       {.arch = "phi3",
        .seed = 30,
        .dim = 256,
        .ff = 256,
        .weight_type = DType::kQ4_K,
        .rope_original_context = 64}},
      {"mistral3_f32",
       {.arch = "mistral3",
        .seed = 31,
        .rope_scaling = "yarn",
        .rope_scaling_factor = 4,
        .rope_original_context = 8}},
      {"olmo2_f32", {.arch = "olmo2", .seed = 32}},
      {"olmo3_q8_0",
       {.arch = "olmo2",
        .seed = 33,
        .n_layers = 4,
        .window = 12,
        .weight_type = DType::kQ8_0,
        .rope_scaling = "yarn",
        .rope_scaling_factor = 8,
        .rope_original_context = 16}},
      {"glm4_f32", {.arch = "glm4", .seed = 34, .rope_dimensions = 8}},
      {"glm4_q4_0",
       {.arch = "glm4", .seed = 35, .ff = 160, .weight_type = DType::kQ4_0, .rope_dimensions = 8}},
      {"seed_oss_q8_0", {.arch = "seed_oss", .seed = 36, .weight_type = DType::kQ8_0}},
      {"exaone4_f32", {.arch = "exaone4", .seed = 37}},
      {"exaone4_windows_q8_0",
       {.arch = "exaone4",
        .seed = 38,
        .n_layers = 64,
        .dim = 32,
        .ff = 32,
        .window = 7,
        .weight_type = DType::kQ8_0}},
      {"ernie4_5_q8_0",
       {.arch = "ernie4_5", .seed = 39, .tied = true, .weight_type = DType::kQ8_0}},
      {"layers_differ_f32",
       {.seed = 19,
        .n_layers = 3,
        .ff_by_layer = {96, 32, 64},
        .heads_by_layer = {4, 2, 6},
        .kv_heads_by_layer = {2, 2, 1},
        .head_dim = 16}},
      {"layers_differ_q8_0",
       {.seed = 20,
        .n_layers = 3,
        .ff_by_layer = {64, 96, 32},
        .heads_by_layer = {2, 4, 6},
        .kv_heads_by_layer = {1, 4, 2},
        .head_dim = 16,
        .weight_type = DType::kQ8_0}},
      {"qwen3moe_f32",
       {.arch = "qwen3moe", .seed = 25, .head_dim = 32, .n_experts = 10, .n_used = 3}},
      {"qwen3moe_odd_sizes_f32",
       {.arch = "qwen3moe",
        .seed = 26,
        .n_layers = 3,
        .dim = 40,
        .ff = 52,
        .n_heads = 5,
        .n_kv_heads = 1,
        .vocab = 333,
        .n_experts = 7,
        .n_used = 2,
        .expert_ff = 27,
        .n_dense = 1}},
      {"qwen3moe_q8_0",
       {.arch = "qwen3moe",
        .seed = 27,
        .weight_type = DType::kQ8_0,
        .n_experts = 16,
        .n_used = 4,
        .expert_ff = 96}},
      {"qwen3moe_one_expert_f16",
       {.arch = "qwen3moe",
        .seed = 28,
        .weight_type = DType::kF16,
        .n_experts = 1,
        .n_used = 1,
        .expert_ff = 48}},
      {"qwen3moe_all_experts_q4_0",
       {.arch = "qwen3moe",
        .seed = 29,
        .weight_type = DType::kQ4_0,
        .n_experts = 5,
        .n_used = 5,
        .expert_ff = 64}},
      {"qwen3moe_q4_k_m",
       {.arch = "qwen3moe",
        .seed = 30,
        .dim = 256,
        .ff = 256,
        .weight_type = DType::kQ4_K,
        .weight_types = {{"output", DType::kQ6_K},
                         {"attn_v", DType::kQ6_K},
                         {"ffn_down_exps", DType::kQ6_K}},
        .n_experts = 6,
        .n_used = 2,
        .expert_ff = 256}},
      {"qwen3moe_mixed",
       {.arch = "qwen3moe",
        .seed = 31,
        .weight_types = {{"ffn_gate_exps", DType::kQ5_1},
                         {"ffn_up_exps", DType::kBF16},
                         {"ffn_down_exps", DType::kQ5_0}},
        .n_experts = 8,
        .n_used = 2,
        .expert_ff = 160}},
      {"gpt_oss_f32", {.arch = "gpt-oss", .seed = 50, .window = 12, .n_experts = 8, .n_used = 3}},
      {"gpt_oss_mxfp4",
       {.arch = "gpt-oss",
        .seed = 51,
        .window = 9,
        .weight_type = DType::kQ8_0,
        .weight_types = {{"ffn_gate_exps", DType::kMXFP4},
                         {"ffn_up_exps", DType::kMXFP4},
                         {"ffn_down_exps", DType::kMXFP4}},
        .n_experts = 6,
        .n_used = 2,
        .expert_ff = 96}},
      {"glm4moe_f32",
       {.arch = "glm4moe",
        .seed = 52,
        .n_layers = 3,
        .n_experts = 8,
        .n_used = 3,
        .shared_ff = 32,
        .n_dense = 1}},
      {"deepseek2_f32",
       {.arch = "deepseek2",
        .seed = 60,
        .n_layers = 3,
        .n_kv_heads = 1,
        .head_dim = 24,
        .n_experts = 8,
        .n_used = 3,
        .shared_ff = 32,
        .n_dense = 1,
        .rope_dimensions = 8}},
      {"deepseek2_q_rank_groups_f32",
       {.arch = "deepseek2",
        .seed = 61,
        .n_heads = 5,
        .n_kv_heads = 1,
        .head_dim = 40,
        .latent_rank = 64,
        .value_dim = 32,
        .q_rank = 24,
        .n_experts = 8,
        .n_used = 3,
        .shared_ff = 32,
        .n_dense = 1,
        .rope_dimensions = 16,
        .rope_scaling = "yarn",
        .rope_scaling_factor = 4,
        .rope_original_context = 16,
        .false_keys = {{"expert_gating_func", 2},
                       {"expert_group_count", 4},
                       {"expert_group_used_count", 2}}}},
      {"deepseek2_q8_0",
       {.arch = "deepseek2",
        .seed = 62,
        .n_kv_heads = 1,
        .head_dim = 48,
        .q_rank = 64,
        .weight_type = DType::kQ8_0,
        .n_experts = 8,
        .n_used = 2,
        .shared_ff = 32,
        .n_dense = 1,
        .rope_dimensions = 16}},
      {"deepseek2_mixed",
       {.arch = "deepseek2",
        .seed = 63,
        .n_heads = 20,
        .n_kv_heads = 1,
        .head_dim = 40,
        .value_dim = 48,
        .weight_types = {{"attn_k_b", DType::kQ5_0},
                         {"attn_output", DType::kQ4_0},
                         {"attn_kv_a_mqa", DType::kQ8_0},
                         {"ffn_down_exps", DType::kQ8_0}},
        .n_experts = 4,
        .n_used = 2,
        .shared_ff = 32,
        .n_dense = 1,
        .rope_dimensions = 8}},
      {"mixtral_f32", {.seed = 32, .n_experts = 8}},
      {"mixtral_q4_0",
       {.seed = 33, .weight_type = DType::kQ4_0, .n_experts = 4, .n_used = 2, .expert_ff = 96}},
      {"granitemoe_f32",
       {.arch = "granitemoe", .seed = 34, .n_experts = 9, .n_used = 3, .shared_ff = 40}},
      {"granitemoe_q8_0",
       {.arch = "granitemoe", .seed = 35, .weight_type = DType::kQ8_0, .n_experts = 6}},
      {"qwen2moe_f32",
       {.arch = "qwen2moe", .seed = 36, .n_experts = 8, .n_used = 4, .shared_ff = 80}},
      {"qwen2moe_mixed",
       {.arch = "qwen2moe",
        .seed = 37,
        .weight_type = DType::kQ5_0,
        .weight_types = {{"ffn_up_shexp", DType::kQ8_0}, {"ffn_down_shexp", DType::kF16}},
        .n_experts = 7,
        .n_used = 2,
        .expert_ff = 64,
        .shared_ff = 96}},
      {"odd_sizes_f32",
       {.seed = 10, .dim = 40, .ff = 52, .n_heads = 5, .n_kv_heads = 1, .vocab = 333}}};
}

class ModelAgainstOracle : public testing::TestWithParam<std::tuple<int, tensor::KvType>> {};

TEST_P(ModelAgainstOracle, GivesTheSameLogitsToTheBit) {
  const auto [index, cache_type] = GetParam();
  const Case c = Cases()[static_cast<std::size_t>(index)];
  const std::string path = fixtures::WriteTinyModel(fixtures::TemporaryFolder(), c.options);
  auto checkpoint = formats::OpenCheckpoint(path);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  auto config = model::ConfigFromMetadata((*checkpoint)->metadata());
  ASSERT_TRUE(config) << config.error().message;
  config->vocabulary = *model::VocabularyRows(**checkpoint);
  const Oracle oracle(**checkpoint, *config, cache_type == tensor::KvType::kF16);
  std::vector<Token> text = {1};
  for (int i = 0; i < 36; ++i)
    text.push_back(3 + (i * 37 + i * i) % 300);  // past the edge of a cache block
  const std::vector<float> whole = oracle.Logits(text);
  const std::vector<float> shorter = oracle.Logits({text.begin(), text.begin() + 20});
  const bool mixture = std::any_of(config->layers.begin(), config->layers.end(),
                                   [](const auto& layer) { return layer.experts() != nullptr; });
  const model::TileCache cache(fixtures::TemporaryFolder() + "/tiles");
  std::vector<std::tuple<kernels::Isa, int, bool>> ways;  // instruction set, threads, paged experts
  for (const kernels::Isa isa : kernels::AvailableIsas())
    for (const int threads : {1, 2})
      for (int paged = 0; paged < (mixture ? 2 : 1); ++paged)
        ways.emplace_back(isa, threads, paged == 1);
  for (const auto& [isa, threads, paged] : ways) {
    ThreadPool pool(threads);
    kv::BlockTables tables({.max_positions = 64});
    auto runner = model::LocalRunner::Load(
        **checkpoint, *config,
        {.max_rows = 64,
         .max_logit_rows = 2,
         .max_positions = 64,
         .cache = {.k_type = cache_type, .v_type = cache_type, .n_blocks = tables.n_blocks()}},
        kernels::KernelsFor(isa), pool, {.cache = paged ? &cache : nullptr, .paged = paged});
    ASSERT_TRUE(runner) << runner.error().message;
    model::PassResult result;
    // In two passes, so that the second reads what the first left in the cache.
    for (const auto& [begin, end] : {std::pair{0, 17}, std::pair{17, 37}}) {
      const int n = end - begin;
      kv::Segment segment{.n_rows = n, .first_position = begin};
      const std::vector<int> logit_rows =
          begin == 0 ? std::vector<int>{n - 1} : std::vector<int>{2, n - 1};
      kv::Transaction transaction(tables, {&segment, 1});
      result = (*runner)->Run({.tokens = std::span(text).subspan(static_cast<std::size_t>(begin),
                                                                 static_cast<std::size_t>(n)),
                               .segments = {&segment, 1},
                               .logit_rows = logit_rows});
      transaction.Commit({&n, 1});
    }
    const auto bytes = sizeof(float) * whole.size();
    EXPECT_EQ(std::memcmp(result.Logits(0), shorter.data(), bytes), 0)
        << c.name << " " << kernels::Name(isa) << " " << threads << " threads, row 20";
    EXPECT_EQ(std::memcmp(result.Logits(1), whole.data(), bytes), 0)
        << c.name << " " << kernels::Name(isa) << " " << threads << " threads, last row"
        << (paged ? ", paged" : "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, ModelAgainstOracle,
    testing::Combine(testing::Range(0, static_cast<int>(Cases().size())),
                     testing::Values(tensor::KvType::kF32, tensor::KvType::kF16)),
    [](const auto& of) {
      return std::string(Cases()[static_cast<std::size_t>(std::get<0>(of.param))].name) +
             (std::get<1>(of.param) == tensor::KvType::kF32 ? "_f32_cache" : "_f16_cache");
    });

}  // namespace
}  // namespace foretoken::oracle
