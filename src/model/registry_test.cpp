// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/failure_testing.h"
#include "foretoken/options.h"
#include "kv/block_tables.h"
#include "model/arch/registry.h"

namespace foretoken::model {
namespace {

formats::Metadata KeysOf(const std::string& architecture, int blocks) {
  formats::Metadata m;
  m.Set("general.architecture", architecture);
  m.Set(architecture + ".block_count", std::int64_t{blocks});
  m.Set(architecture + ".embedding_length", std::int64_t{64});
  m.Set(architecture + ".feed_forward_length", std::int64_t{96});
  m.Set(architecture + ".attention.head_count", std::int64_t{8});
  m.Set(architecture + ".context_length", std::int64_t{128});
  m.Set(architecture + ".attention.layer_norm_rms_epsilon", 1e-6);
  return m;
}

formats::Metadata Llama() {
  return KeysOf("llama", 2);
}

// The windows of the layers.
std::vector<int> WindowsOf(const formats::Metadata& metadata) {
  const auto config = Got(ConfigFromMetadata(metadata));
  std::vector<int> windows;
  for (const LayerConfig& layer : config.layers) windows.push_back(layer.attention().window);
  return windows;
}

constexpr auto kNoError = static_cast<ErrorCode>(-1), kInvalid = ErrorCode::kInvalidFile;

ErrorCode CodeOf(const Result<ModelConfig>& config) {
  return config ? kNoError : config.error().code;
}
// The code of the error that one key more causes.
ErrorCode CodeWith(formats::Metadata m, const std::string& key, formats::MetadataValue value) {
  m.Set(key, std::move(value));
  return CodeOf(ConfigFromMetadata(m));
}
ErrorCode CodeAfter(const char* key, formats::MetadataValue value) {
  return CodeWith(Llama(), key, std::move(value));
}

TEST(Registry, FillsWhatALlamaFileLeavesUnsaid) {
  const auto config = Got(ConfigFromMetadata(Llama()));
  ASSERT_EQ(config.n_layers(), 2);
  const AttentionConfig& attention = config.layers[1].attention();
  EXPECT_EQ(config.layers[1].block, 1);
  EXPECT_EQ(config.layers[1].ffn().width, 96);
  EXPECT_EQ(attention.n_kv_heads, 8);
  EXPECT_EQ(attention.head_dim, 8);
  EXPECT_EQ(attention.rope->n_rot, 8);
  EXPECT_TRUE(attention.rope->interleaved);
  EXPECT_EQ(attention.rope->freq_base, 10000);
  EXPECT_EQ(attention.rope->freq_scale, 1);
}

// The blocks of a cache for a thousand texts of any file can be counted.
TEST(Registry, BoundsTheContextAsTheOptionIsBounded) {
  EXPECT_EQ(CodeAfter("llama.context_length", std::int64_t{kMaxTextTokens}), kNoError);
  EXPECT_EQ(CodeAfter("llama.context_length", std::int64_t{kMaxTextTokens} + 1),
            ErrorCode::kInvalidFile);
  const kv::TablesShape shape{.n_sequences = 1024, .max_positions = kMaxTextTokens};
  EXPECT_EQ(shape.n_blocks(), 1024 * (kMaxTextTokens / 32));
}

TEST(Registry, ReadsRopeScaling) {
  auto m = Llama();
  m.Set("llama.rope.scaling.type", std::string("yarn"));
  m.Set("llama.rope.scaling.factor", 4.0);
  m.Set("llama.rope.scaling.original_context_length", std::int64_t{32});
  const auto config = ConfigFromMetadata(m);
  ASSERT_TRUE(config);
  const RopeConfig& rope = *config->layers[0].attention().rope;
  EXPECT_TRUE(rope.yarn);
  EXPECT_EQ(rope.freq_scale, 0.25);
  EXPECT_EQ(rope.original_context, 32);
}

TEST(Registry, ReadsListsByLayer) {
  auto m = Llama();
  m.Set("llama.attention.head_count", std::vector<std::int64_t>{8, 4});
  m.Set("llama.attention.head_count_kv", std::vector<std::int64_t>{2, 4});
  m.Set("llama.feed_forward_length", std::vector<std::int64_t>{96, 32});
  const auto config = Got(ConfigFromMetadata(m));
  for (const std::size_t i : {0u, 1u}) {
    const AttentionConfig& attention = config.layers[i].attention();
    EXPECT_EQ(attention.n_heads, i == 0 ? 8 : 4);
    EXPECT_EQ(attention.n_kv_heads, i == 0 ? 2 : 4);
    EXPECT_EQ(attention.head_dim, i == 0 ? 8 : 16);
    EXPECT_EQ(attention.rope->n_rot, attention.head_dim);
    EXPECT_EQ(config.layers[i].ffn().width, i == 0 ? 96 : 32);
  }
}

TEST(Registry, ReadsWindowsByPeriodOrByLayer) {
  auto m = KeysOf("gemma2", 4);
  EXPECT_EQ(WindowsOf(m), (std::vector<int>{0, 0, 0, 0}));
  m.Set("gemma2.attention.sliding_window", std::int64_t{9});
  EXPECT_EQ(WindowsOf(m), (std::vector<int>{9, 0, 9, 0}));
  m.Set("gemma2.attention.sliding_window_pattern", std::int64_t{3});
  EXPECT_EQ(WindowsOf(m), (std::vector<int>{9, 9, 0, 9}));
  m.Set("gemma2.attention.sliding_window_pattern", std::int64_t{0});
  EXPECT_EQ(WindowsOf(m), (std::vector<int>{9, 9, 9, 9}));
  m.Set("gemma2.attention.sliding_window_pattern", std::vector<std::int64_t>{0, 1, 0, 0});
  EXPECT_EQ(WindowsOf(m), (std::vector<int>{0, 9, 0, 0}));
}

TEST(Registry, GivesWindowLayersARotationOfTheirOwn) {
  auto m = KeysOf("gemma3", 6);
  m.Set("gemma3.attention.sliding_window", std::int64_t{9});
  m.Set("gemma3.rope.freq_base", 1e6);
  m.Set("gemma3.rope.scaling.type", std::string("linear"));
  m.Set("gemma3.rope.scaling.factor", 8.0);
  const auto config = Got(ConfigFromMetadata(m));
  const RopeConfig &local = *config.layers[0].attention().rope,
                   &global = *config.layers[5].attention().rope;
  EXPECT_EQ(local.freq_base, 10000);
  EXPECT_EQ(local.freq_scale, 1);
  EXPECT_EQ(global.freq_base, 1e6);
  EXPECT_EQ(global.freq_scale, 1.0 / 8);
  EXPECT_EQ(config.embedding_scale, 8);
}

TEST(Registry, RefusesKeysOfWindowsAndCapsThatCannotBe) {
  auto m = KeysOf("gemma2", 4);
  m.Set("gemma2.attention.sliding_window", std::int64_t{9});
  const auto code = [&](const char* key, formats::MetadataValue value) {
    return CodeWith(m, key, std::move(value));
  };
  for (const std::int64_t window : {std::int64_t{-1}, std::int64_t{1} << 40})
    EXPECT_EQ(code("gemma2.attention.sliding_window", window), ErrorCode::kInvalidFile);
  for (const std::int64_t period : {std::int64_t{-2}, std::int64_t{1} << 40})
    EXPECT_EQ(code("gemma2.attention.sliding_window_pattern", period), ErrorCode::kInvalidFile);
  EXPECT_EQ(code("gemma2.attention.sliding_window_pattern", std::vector<std::int64_t>{1, 0, 1}),
            ErrorCode::kInvalidFile);
  for (const double cap : {-1.0, std::nan(""), 1e300})
    for (const char* key : {"gemma2.attn_logit_softcapping", "gemma2.final_logit_softcapping"})
      EXPECT_EQ(code(key, cap), ErrorCode::kInvalidFile) << key << " " << cap;
}

TEST(Registry, RefusesScalesOfPositionsThatCannotBe) {
  for (const char* key : {"attention.temperature_scale", "rope.scaling.yarn_log_multiplier"})
    for (const double value : {-1.0, std::nan(""), 1e300})
      EXPECT_EQ(CodeWith(KeysOf("mistral3", 2), std::string("mistral3.") + key, value), kInvalid)
          << key << " " << value;
}

TEST(Registry, GivesLocalLayersOfGemma4HeadsOfTheirOwn) {
  const auto with = [](const char* key, formats::MetadataValue value) {
    auto m = KeysOf("gemma4", 2);
    m.Set("gemma4.attention.key_length", std::int64_t{32});
    m.Set("gemma4.attention.sliding_window", std::int64_t{9});
    m.Set("gemma4.attention.sliding_window_pattern", std::vector<std::int64_t>{1, 0});
    m.Set("gemma4.attention.key_length_swa", std::int64_t{16});
    m.Set("gemma4.attention.value_length_swa", std::int64_t{16});
    m.Set(key, std::move(value));
    return ConfigFromMetadata(m);
  };
  const auto config = Got(with("gemma4.rope.freq_base_swa", 500.0));
  const AttentionConfig &local = config.layers[0].attention(),
                        &global = config.layers[1].attention();
  EXPECT_EQ(local.head_dim, 16);
  EXPECT_EQ(local.rope->n_rot, 16);
  EXPECT_EQ(local.rope->freq_base, 500);
  EXPECT_EQ(local.rope->factors, "");
  EXPECT_EQ(global.head_dim, 32);
  EXPECT_EQ(global.rope->factors, "rope_freqs");
  const auto code = [&](const char* key, std::int64_t value) {
    return with(key, value).error().code;
  };
  EXPECT_EQ(code("gemma4.attention.value_length_swa", 24), ErrorCode::kUnsupported);
  EXPECT_EQ(code("gemma4.attention.key_length_swa", 0), ErrorCode::kInvalidFile);
  EXPECT_EQ(code("gemma4.attention.key_length_swa", 1 << 20), ErrorCode::kInvalidFile);
  EXPECT_EQ(code("gemma4.rope.dimension_count_swa", 7), ErrorCode::kInvalidFile);
  EXPECT_EQ(code("gemma4.rope.dimension_count_swa", 64), ErrorCode::kInvalidFile);
  EXPECT_EQ(code("gemma4.nextn_predict_layers", 1), ErrorCode::kUnsupported);
}

// Six layers: two with a window, one without, twice.
Result<ModelConfig> SixLayers(const char* key, formats::MetadataValue value) {
  auto m = KeysOf("gemma4", 6);
  m.Set("gemma4.attention.sliding_window", std::int64_t{9});
  m.Set("gemma4.attention.sliding_window_pattern", std::vector<std::int64_t>{1, 1, 0, 1, 1, 0});
  m.Set("gemma4.attention.shared_kv_layers", std::int64_t{3});
  m.Set(key, std::move(value));
  return ConfigFromMetadata(m);
}

TEST(Registry, SharesCachesOfGemma4AmongLayersOfOneKind) {
  const auto sources = [](const char* key, formats::MetadataValue value) {
    std::vector<int> all;
    const auto config = Got(SixLayers(key, std::move(value)));
    for (const LayerConfig& layer : config.layers) all.push_back(layer.attention().cache_layer);
    return all;
  };
  using Layers = std::vector<int>;
  constexpr const char* kShared = "gemma4.attention.shared_kv_layers";
  EXPECT_EQ(sources(kShared, std::int64_t{0}), Layers(6, -1));
  EXPECT_EQ(sources(kShared, std::int64_t{1}), (Layers{-1, -1, -1, -1, -1, 2}));
  EXPECT_EQ(sources(kShared, std::int64_t{3}), (Layers{-1, -1, -1, 1, 1, 2}));
}

TEST(Registry, RefusesSharedCachesAndLayerInputsThatCannotBe) {
  const auto code = [](const char* key, formats::MetadataValue value) {
    return CodeOf(SixLayers(key, std::move(value)));
  };
  using Numbers = std::vector<std::int64_t>;
  for (const std::int64_t shared : {-1, 4, 5, 6, 1 << 30})  // 4: no full layer is left
    EXPECT_EQ(code("gemma4.attention.shared_kv_layers", shared), kInvalid) << shared;
  // Layer 5 would read a cache with other heads.
  EXPECT_EQ(code("gemma4.attention.head_count_kv", Numbers{2, 2, 2, 2, 2, 1}), kInvalid);
  EXPECT_EQ(code("gemma4.attention.sliding_window_pattern", Numbers{1, 1, 1, 1, 1, 0}), kInvalid);
  for (const std::int64_t width : {std::int64_t{-1}, std::int64_t{1} << 20, std::int64_t{1} << 40})
    EXPECT_EQ(code("gemma4.embedding_length_per_layer_input", width), kInvalid) << width;
}

TEST(Registry, PutsExpertsOfGemma4BesideTheDensePart) {
  auto m = KeysOf("gemma4", 2);
  m.Set("gemma4.expert_count", std::int64_t{8});
  m.Set("gemma4.expert_used_count", std::int64_t{3});
  m.Set("gemma4.expert_feed_forward_length", std::int64_t{48});
  auto config = Got(ConfigFromMetadata(m));
  const LayerConfig& layer = config.layers[1];
  ASSERT_NE(layer.experts(), nullptr);
  ASSERT_TRUE(layer.dense_part);
  EXPECT_EQ(layer.experts()->width, 48);
  EXPECT_EQ(layer.dense_part->width, 96);
  EXPECT_EQ(layer.sum_norm, "post_ffw_norm");
  m.Set("gemma4.expert_used_count", std::int64_t{9});
  EXPECT_EQ(ConfigFromMetadata(m).error().code, ErrorCode::kInvalidFile);
}

TEST(Registry, IsSortedByName) {
  const auto names = NamesOf(AllArchitectures());
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

TEST(Registry, NamesTheArchitecturesThereAreForAnUnknownOne) {
  auto m = Llama();
  m.Set("general.architecture", std::string("mamba"));
  EXPECT_TRUE(Fails(ConfigFromMetadata(m), ErrorCode::kUnsupported, "llama, mistral3, "));
}

TEST(Registry, RefusesValuesThatCannotBe) {
  EXPECT_EQ(CodeAfter("llama.block_count", std::int64_t{0}), kInvalid);
  EXPECT_EQ(CodeAfter("llama.embedding_length", std::int64_t{1} << 40), kInvalid);
  EXPECT_EQ(CodeAfter("llama.embedding_length", std::int64_t{60}), kInvalid);
  EXPECT_EQ(CodeAfter("llama.attention.head_count_kv", std::int64_t{3}), kInvalid);
  EXPECT_EQ(CodeAfter("llama.attention.layer_norm_rms_epsilon", -1.0), kInvalid);
  EXPECT_EQ(CodeAfter("llama.rope.dimension_count", std::int64_t{7}), kInvalid);
  EXPECT_EQ(CodeAfter("llama.rope.scaling.type", std::string("su")), ErrorCode::kUnsupported);
  EXPECT_EQ(CodeAfter("llama.attention.head_count_kv", std::vector<std::int64_t>{8, 0}), kInvalid);
  EXPECT_EQ(CodeAfter("llama.attention.head_count_kv", std::vector<std::int64_t>{8}), kInvalid);
  EXPECT_EQ(CodeAfter("llama.expert_count", std::int64_t{8}), kInvalid);
}

TEST(Registry, RefusesExpertsOfAnArchitectureWithoutThem) {
  auto m = KeysOf("smollm3", 4);
  m.Set("smollm3.expert_count", std::int64_t{8});
  EXPECT_TRUE(Fails(ConfigFromMetadata(m), ErrorCode::kUnsupported));
}

formats::Metadata Mixture() {
  auto m = KeysOf("qwen3moe", 2);
  m.Set("qwen3moe.expert_count", std::int64_t{8});
  m.Set("qwen3moe.expert_used_count", std::int64_t{3});
  return m;
}

TEST(Registry, ReadsTheKeysOfAMixture) {
  auto m = Mixture();
  auto config = ConfigFromMetadata(m);
  ASSERT_TRUE(config) << config.error().message;
  const ExpertsConfig* experts = config->layers[1].experts();
  ASSERT_NE(experts, nullptr);
  EXPECT_EQ(experts->n_experts, 8);
  EXPECT_EQ(experts->n_used, 3);
  EXPECT_EQ(experts->width, 32);  // 96 / 3
  EXPECT_TRUE(experts->normalised);
  m.Set("qwen3moe.expert_feed_forward_length", std::int64_t{48});
  m.Set("qwen3moe.leading_dense_block_count", std::int64_t{1});
  config = ConfigFromMetadata(m);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->layers[0].ffn().width, 96);
  EXPECT_EQ(config->layers[1].experts()->width, 48);
}

// older: with the lengths of heads under the keys that all architectures have.
formats::Metadata LatentKeys(bool older = false) {
  formats::Metadata m;
  m.Set("general.architecture", std::string("deepseek2"));
  const auto set = [&m](const char* key, int value) {
    m.Set(std::string("deepseek2.") + key, std::int64_t{value});
  };
  for (const auto& [key, value] :
       {std::pair("block_count", 3), std::pair("embedding_length", 64),
        std::pair("feed_forward_length", 96), std::pair("context_length", 128),
        std::pair("attention.head_count", 5), std::pair("attention.head_count_kv", 1),
        std::pair("attention.kv_lora_rank", 64), std::pair("rope.dimension_count", 16),
        std::pair("expert_count", 8), std::pair("expert_used_count", 3),
        std::pair("expert_feed_forward_length", 48), std::pair("expert_shared_count", 2),
        std::pair("leading_dense_block_count", 1)})
    set(key, value);
  set(older ? "attention.key_length" : "attention.key_length_mla", 40);
  set(older ? "attention.value_length" : "attention.value_length_mla", 32);
  if (older) return m;
  set("attention.key_length", 80);
  set("attention.value_length", 64);
  return m;
}

TEST(Registry, ReadsTheKeysOfLatentAttention) {
  auto m = LatentKeys();
  auto config = ConfigFromMetadata(m);
  ASSERT_TRUE(config) << config.error().message;
  const auto* latent = std::get_if<LatentAttentionConfig>(&config->layers[2].mixer);
  ASSERT_NE(latent, nullptr);
  EXPECT_EQ(latent->n_heads, 5);
  EXPECT_EQ(latent->q_rank, 0);
  EXPECT_EQ(latent->rank, 64);
  EXPECT_EQ(latent->head_dim, 24);
  EXPECT_EQ(latent->value_dim, 32);
  EXPECT_EQ(latent->key_dim(), 80);
  EXPECT_FLOAT_EQ(latent->scale, 1 / std::sqrt(40.0f));
  EXPECT_EQ(config->layers[0].ffn().width, 96);
  const ExpertsConfig* experts = config->layers[1].experts();
  ASSERT_NE(experts, nullptr);
  EXPECT_EQ(experts->gating, ExpertGating::kSoftmax);
  EXPECT_EQ(experts->shared_width, 96);
  EXPECT_FALSE(experts->normalised);
  m.Set("deepseek2.attention.q_lora_rank", std::int64_t{24});
  m.Set("deepseek2.expert_gating_func", std::int64_t{2});
  m.Set("deepseek2.rope.scaling.type", std::string("yarn"));
  m.Set("deepseek2.rope.scaling.factor", 40.0);
  m.Set("deepseek2.rope.scaling.yarn_log_multiplier", 0.1);
  config = ConfigFromMetadata(m);
  ASSERT_TRUE(config) << config.error().message;
  latent = std::get_if<LatentAttentionConfig>(&config->layers[2].mixer);
  EXPECT_EQ(latent->q_rank, 24);
  EXPECT_EQ(config->layers[1].experts()->gating, ExpertGating::kSigmoid);
  // Scores grow, and cosines and sines do not.
  const float growth = 1 + 0.1f * std::log(40.0f);
  EXPECT_FLOAT_EQ(latent->scale, growth * growth / std::sqrt(40.0f));
  EXPECT_EQ(latent->rope.yarn_log_multiplier, 1);
  // The block of an MTP head is no layer.
  m.Set("deepseek2.nextn_predict_layers", std::int64_t{1});
  config = ConfigFromMetadata(m);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->n_layers(), 2);
}

TEST(Registry, RefusesLatentAttentionThatCannotBe) {
  const auto message_after = [](const char* key, std::int64_t value) {
    auto m = LatentKeys();
    m.Set(std::string("deepseek2.") + key, value);
    const auto config = ConfigFromMetadata(m);
    return config ? std::string() : config.error().message;
  };
  const std::pair<const char*, std::int64_t> cases[] = {
      {"attention.kv_lora_rank", 32},    {"attention.kv_lora_rank", 0},
      {"attention.key_length", 16},      {"attention.key_length", -1},
      {"attention.key_length", 1 << 20}, {"attention.key_length_mla", 16},
      {"attention.key_length_mla", 0},   {"attention.key_length_mla", 1 << 20},
      {"attention.value_length_mla", 0}, {"attention.value_length_mla", 24},
      {"attention.q_lora_rank", -3},     {"attention.q_lora_rank", 1 << 30},
      {"rope.dimension_count", 80},      {"rope.dimension_count", 7},
      {"expert_shared_count", 0},        {"leading_dense_block_count", 3},
      {"expert_group_count", 3},         {"expert_gating_func", 9}};
  for (const auto& [key, value] : cases)
    EXPECT_NE(message_after(key, value), "") << key << " " << value;
  // The rank is not a multiple of 32.
  auto m = LatentKeys();
  m.Set("deepseek2.attention.kv_lora_rank", std::int64_t{40});
  m.Set("deepseek2.attention.key_length", std::int64_t{56});
  EXPECT_EQ(ConfigFromMetadata(m).error().message,
            "deepseek2.attention.kv_lora_rank: 40 is not a multiple of 32, which is not supported");
}

TEST(Registry, ReadsTheOlderKeysOfLatentAttention) {
  const auto older = Got(ConfigFromMetadata(LatentKeys(true))),
             newer = Got(ConfigFromMetadata(LatentKeys()));
  EXPECT_EQ(older.layers[0].mixer, newer.layers[0].mixer);
}

// Training writes such files.
TEST(Registry, ReadsTheDenseHeadOfAMixture) {
  auto m = Mixture();
  m.Set("qwen3moe.nextn_predict_layers", std::int64_t{1});
  EXPECT_NE(MtpConfigFromMetadata(m)->layers[0].experts(), nullptr);
  m.Set("qwen3moe.leading_dense_block_count", std::int64_t{2});
  const auto head = Got(MtpConfigFromMetadata(m));
  EXPECT_EQ(head.layers[0].ffn().width, 96);
  m.Set("qwen3moe.leading_dense_block_count", std::int64_t{3});
  EXPECT_FALSE(MtpConfigFromMetadata(m));
}

TEST(Registry, RefusesMixturesThatCannotBe) {
  const auto code = [](const std::string& key, formats::MetadataValue value) {
    return CodeWith(Mixture(), "qwen3moe." + key, std::move(value));
  };
  EXPECT_EQ(code("expert_count", std::int64_t{0}), kInvalid);
  EXPECT_EQ(code("expert_count", std::int64_t{-1}), kInvalid);
  EXPECT_EQ(code("expert_count", std::int64_t{1} << 40), kInvalid);
  EXPECT_EQ(code("expert_count", std::string("eight")), kInvalid);
  EXPECT_EQ(code("expert_used_count", std::int64_t{0}), kInvalid);
  EXPECT_EQ(code("expert_used_count", std::int64_t{9}), kInvalid);
  EXPECT_EQ(code("expert_feed_forward_length", std::int64_t{-5}), kInvalid);
  EXPECT_EQ(code("expert_feed_forward_length", std::int64_t{1} << 50), kInvalid);
  EXPECT_EQ(code("leading_dense_block_count", std::int64_t{2}), kInvalid);
  EXPECT_EQ(code("leading_dense_block_count", std::int64_t{-1}), kInvalid);
}

}  // namespace
}  // namespace foretoken::model
