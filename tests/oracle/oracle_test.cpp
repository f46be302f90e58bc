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

const std::vector<fixtures::NamedOptions>& Cases() {
  static const auto cases = fixtures::TinyTable(R"(
llama_f32:
llama_f16_tied: F16 seed=2 tied
llama_bf16: BF16 seed=3
llama_q8_0: Q8_0 seed=4
llama_q4_0: Q4_0 seed=5 ff=160
llama_mixed: Q4_0 seed=6 attn_v=Q8_0 output=F16 ffn_down=F32
llama_q6_k: Q6_K seed=11 dim=256 ff=256
llama_q4_0_q6_k_head: Q4_0 seed=12 dim=256 ff=96 output=Q6_K
llama_q4_1: Q4_1 seed=13 ff=160
llama_q5_0: Q5_0 seed=14 ff=160
llama_q5_1: Q5_1 seed=15 ff=160
llama_mxfp4: MXFP4 seed=25 ff=160
llama_iq4_nl: IQ4_NL seed=26 ff=160
llama_iq4_xs: IQ4_XS seed=27 dim=256 ff=256
llama_q3_k: Q3_K seed=28 dim=256 ff=512
llama_q2_k: Q2_K seed=29 dim=256 ff=256
llama_q4_k: Q4_K seed=16 dim=256 ff=512
llama_q5_k: Q5_K seed=17 dim=256 ff=256
llama_q4_k_m: Q4_K seed=18 dim=256 ff=256 output=Q6_K attn_v=Q6_K ffn_down=Q5_K
llama_small_heads: Q8_0 seed=7 dim=32 ff=64 n_heads=4 n_kv_heads=4
qwen2_q8_0: qwen2 Q8_0 seed=8
qwen3_f32: qwen3 seed=9 head_dim=32
smollm3_f32: smollm3 seed=21 n_layers=5
smollm3_q8_0: smollm3 Q8_0 seed=22 n_layers=4
granite_f32: granite seed=23
granite_q4_0: granite Q4_0 seed=24 ff=160
gemma2_f32: gemma2 seed=25 n_layers=3 tied window=9
gemma2_q8_0: gemma2 Q8_0 seed=26 window=33
gemma3_f32: gemma3 seed=27 n_layers=7 head_dim=32 tied window=5
gemma3_q4_0: gemma3 Q4_0 seed=28 n_layers=6 head_dim=32 window=20 rope_scaling=linear
    rope_scaling_factor=8
gemma4_f32: gemma4 seed=40 n_layers=3 kv_heads_by_layer=2,2,1 head_dim=32 tied window=6 rope_freqs
gemma4_q8_0: gemma4 Q8_0 seed=41 n_layers=4 head_dim=16 window=21
gemma4_e_f32: gemma4 seed=42 n_layers=6 ff_by_layer=96,96,96,128,128,128
    kv_heads_by_layer=2,2,1,2,2,1 head_dim=32 tied window=6 shared_caches=3 layer_input=16
    rope_freqs
gemma4_e_q8_0: gemma4 Q8_0 seed=43 n_layers=5 head_dim=16 window=21 shared_caches=2 layer_input=32
    proj=F16
gemma4_layer_input_odd_sizes_f32: gemma4 seed=44 n_layers=3 dim=40 ff=24 n_heads=4 n_kv_heads=1
    head_dim=16 window=9 layer_input=37 per_layer_token_embd=F16
gemma4_shared_caches_q4_k: gemma4 Q4_K seed=45 n_layers=6 dim=256 ff=256 head_dim=128 window=33
    shared_caches=3
gemma4_moe_f32: gemma4 seed=46 n_layers=3 kv_heads_by_layer=2,2,1 head_dim=32 window=6 n_experts=8
    n_used=3 rope_freqs
gemma4_moe_q8_0: gemma4 Q8_0 seed=47 n_layers=4 head_dim=16 window=21 n_experts=7 n_used=2
    expert_ff=64 ffn_down_exps=Q5_0 ffn_gate=F16
gemma4_moe_e_f32: gemma4 seed=48 n_layers=6 window=12 shared_caches=3 layer_input=24 n_experts=5
    expert_ff=27
phi3_short_f32: phi3 seed=29 rope_dimensions=12 rope_original_context=64
phi3_q4_k: phi3 Q4_K seed=30 dim=256 ff=256 rope_original_context=64
mistral3_f32: mistral3 seed=31 rope_scaling=yarn rope_scaling_factor=4 rope_original_context=8
olmo2_f32: olmo2 seed=32
olmo3_q8_0: olmo2 Q8_0 seed=33 n_layers=4 window=12 rope_scaling=yarn rope_scaling_factor=8
    rope_original_context=16
glm4_f32: glm4 seed=34 rope_dimensions=8
glm4_q4_0: glm4 Q4_0 seed=35 ff=160 rope_dimensions=8
seed_oss_q8_0: seed_oss Q8_0 seed=36
exaone4_f32: exaone4 seed=37
exaone4_windows_q8_0: exaone4 Q8_0 seed=38 n_layers=64 dim=32 ff=32 window=7
ernie4_5_q8_0: ernie4_5 Q8_0 seed=39 tied
layers_differ_f32: seed=19 n_layers=3 ff_by_layer=96,32,64 heads_by_layer=4,2,6
    kv_heads_by_layer=2,2,1 head_dim=16
layers_differ_q8_0: Q8_0 seed=20 n_layers=3 ff_by_layer=64,96,32 heads_by_layer=2,4,6
    kv_heads_by_layer=1,4,2 head_dim=16
qwen3moe_f32: qwen3moe seed=25 head_dim=32 n_experts=10 n_used=3
qwen3moe_odd_sizes_f32: qwen3moe seed=26 n_layers=3 dim=40 ff=52 n_heads=5 n_kv_heads=1 vocab=333
    n_experts=7 n_used=2 expert_ff=27 n_dense=1
qwen3moe_q8_0: qwen3moe Q8_0 seed=27 n_experts=16 n_used=4 expert_ff=96
qwen3moe_one_expert_f16: qwen3moe F16 seed=28 n_experts=1 n_used=1 expert_ff=48
qwen3moe_all_experts_q4_0: qwen3moe Q4_0 seed=29 n_experts=5 n_used=5 expert_ff=64
qwen3moe_q4_k_m: qwen3moe Q4_K seed=30 dim=256 ff=256 n_experts=6 n_used=2 expert_ff=256 output=Q6_K
    attn_v=Q6_K ffn_down_exps=Q6_K
qwen3moe_mixed: qwen3moe seed=31 n_experts=8 n_used=2 expert_ff=160 ffn_gate_exps=Q5_1
    ffn_up_exps=BF16 ffn_down_exps=Q5_0
gpt_oss_f32: gpt-oss seed=50 window=12 n_experts=8 n_used=3
gpt_oss_mxfp4: gpt-oss Q8_0 seed=51 window=9 n_experts=6 n_used=2 expert_ff=96 ffn_gate_exps=MXFP4
    ffn_up_exps=MXFP4 ffn_down_exps=MXFP4
glm4moe_f32: glm4moe seed=52 n_layers=3 n_experts=8 n_used=3 shared_ff=32 n_dense=1
deepseek2_f32: deepseek2 seed=60 n_layers=3 n_kv_heads=1 head_dim=24 n_experts=8 n_used=3
    shared_ff=32 n_dense=1 rope_dimensions=8
deepseek2_q_rank_groups_f32: deepseek2 seed=61 n_heads=5 n_kv_heads=1 head_dim=40 latent_rank=64
    value_dim=32 q_rank=24 n_experts=8 n_used=3 shared_ff=32 n_dense=1 rope_dimensions=16
    rope_scaling=yarn rope_scaling_factor=4 rope_original_context=16 false.expert_gating_func=2
    false.expert_group_count=4 false.expert_group_used_count=2
deepseek2_q8_0: deepseek2 Q8_0 seed=62 n_kv_heads=1 head_dim=48 q_rank=64 n_experts=8 n_used=2
    shared_ff=32 n_dense=1 rope_dimensions=16
deepseek2_mixed: deepseek2 seed=63 n_heads=20 n_kv_heads=1 head_dim=40 value_dim=48 n_experts=4
    n_used=2 shared_ff=32 n_dense=1 rope_dimensions=8 attn_k_b=Q5_0 attn_output=Q4_0
    attn_kv_a_mqa=Q8_0 ffn_down_exps=Q8_0
lfm2_f32: lfm2 seed=70 n_layers=4 kv_heads_by_layer=0,0,2,0
lfm2_q8_0: lfm2 Q8_0 seed=71 n_layers=3 kv_heads_by_layer=0,2,0 tied
lfm2_odd_sizes_mixed: lfm2 seed=72 n_layers=3 dim=96 ff=52 n_heads=3 kv_heads_by_layer=0,1,0
    head_dim=24 shortconv.in_proj=Q4_0
lfm2moe_q8_0: lfm2moe Q8_0 seed=73 n_layers=4 kv_heads_by_layer=0,0,2,0 n_experts=8 n_used=3
    n_dense=2
qwen35_f32: qwen35 seed=74 n_layers=3 head_dim=32 rope_dimensions=8
qwen35_q8_0: qwen35 Q8_0 seed=75 head_dim=32 key_heads=1 value_heads=3 state_size=64
    rope_dimensions=16
qwen35moe_mixed: qwen35moe seed=76 n_layers=4 head_dim=24 key_heads=4 value_heads=4 full_interval=4
    n_experts=6 n_used=2 shared_ff=32 rope_dimensions=8 attn_qkv=Q4_0 ssm_out=Q8_0
qwen3next_q8_0: qwen3next Q8_0 seed=77 head_dim=32 key_heads=2 value_heads=8 n_experts=6 n_used=2
    shared_ff=32 rope_dimensions=8
granitehybrid_f32: granitehybrid seed=78 n_layers=4 kv_heads_by_layer=0,0,2,0 n_experts=6 n_used=2
    shared_ff=40
falcon_h1_f32: falcon-h1 seed=80
falcon_h1_q8_0: falcon-h1 Q8_0 seed=81 mamba_heads=3 mamba_dim=32 mamba_groups=1 attn_q=F32
    attn_k=F32 attn_v=F32
nemotron_h_f32: nemotron_h seed=82 n_layers=5 ff_by_layer=0,96,0,0,64 kv_heads_by_layer=0,0,0,2,0
nemotron_h_q8_0: nemotron_h Q8_0 seed=83 n_layers=4 ff_by_layer=96,0,0,64 kv_heads_by_layer=0,0,2,0
nemotron_h_moe_q8_0: nemotron_h_moe Q8_0 seed=84 n_layers=4 ff_by_layer=0,32,0,32
    kv_heads_by_layer=0,0,2,0 n_experts=6 n_used=2 shared_ff=64
granitehybrid_dense_q8_0: granitehybrid Q8_0 seed=79 n_layers=3 kv_heads_by_layer=0,2,0
    mamba_heads=6 mamba_dim=32 mamba_groups=3 state_size=24
mixtral_f32: seed=32 n_experts=8
mixtral_q4_0: Q4_0 seed=33 n_experts=4 n_used=2 expert_ff=96
granitemoe_f32: granitemoe seed=34 n_experts=9 n_used=3 shared_ff=40
granitemoe_q8_0: granitemoe Q8_0 seed=35 n_experts=6
qwen2moe_f32: qwen2moe seed=36 n_experts=8 n_used=4 shared_ff=80
qwen2moe_mixed: qwen2moe Q5_0 seed=37 n_experts=7 n_used=2 expert_ff=64 shared_ff=96
    ffn_up_shexp=Q8_0 ffn_down_shexp=F16
odd_sizes_f32: seed=10 dim=40 ff=52 n_heads=5 n_kv_heads=1 vocab=333)");
  return cases;
}

class ModelAgainstOracle : public testing::TestWithParam<std::tuple<int, tensor::KvType>> {};

TEST_P(ModelAgainstOracle, GivesTheSameLogitsToTheBit) {
  const auto [index, cache_type] = GetParam();
  const auto& [name, options] = Cases()[static_cast<std::size_t>(index)];
  const std::string path = fixtures::WriteTinyModel(fixtures::TemporaryFolder(), options);
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
    kv::BlockTables tables({.max_positions = 64, .state_rows = 65});
    auto runner = model::LocalRunner::Load(
        **checkpoint, *config,
        {.max_rows = 64,
         .max_logit_rows = 2,
         .max_positions = 64,
         .cache = {.k_type = cache_type, .v_type = cache_type, .n_blocks = tables.n_blocks()},
         .state = {.n_sequences = 1, .rows = 65}},
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
        << name << " " << kernels::Name(isa) << " " << threads << " threads, row 20";
    EXPECT_EQ(std::memcmp(result.Logits(1), whole.data(), bytes), 0)
        << name << " " << kernels::Name(isa) << " " << threads << " threads, last row"
        << (paged ? ", paged" : "");
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ModelAgainstOracle,
                         testing::Combine(testing::Range(0, static_cast<int>(Cases().size())),
                                          testing::Values(tensor::KvType::kF32,
                                                          tensor::KvType::kF16)),
                         [](const auto& of) {
                           return Cases()[static_cast<std::size_t>(std::get<0>(of.param))].name +
                                  (std::get<1>(of.param) == tensor::KvType::kF32 ? "_f32_cache"
                                                                                 : "_f16_cache");
                         });

}  // namespace
}  // namespace foretoken::oracle
