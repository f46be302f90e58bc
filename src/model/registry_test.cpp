// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "model/arch/registry.h"

namespace foretoken::model {
namespace {

formats::Metadata Llama() {
  formats::Metadata m;
  m.Set("general.architecture", std::string("llama"));
  m.Set("llama.block_count", std::int64_t{2});
  m.Set("llama.embedding_length", std::int64_t{64});
  m.Set("llama.feed_forward_length", std::int64_t{96});
  m.Set("llama.attention.head_count", std::int64_t{8});
  m.Set("llama.context_length", std::int64_t{128});
  m.Set("llama.attention.layer_norm_rms_epsilon", 1e-6);
  return m;
}

ErrorCode CodeAfter(const char* key, formats::MetadataValue value) {
  auto m = Llama();
  m.Set(key, std::move(value));
  const auto config = ConfigFromMetadata(m);
  return config ? static_cast<ErrorCode>(-1) : config.error().code;
}

TEST(Registry, FillsWhatALlamaFileLeavesUnsaid) {
  const auto config = ConfigFromMetadata(Llama());
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->n_layers(), 2);
  const AttentionConfig& attention = config->layers[1].attention();
  EXPECT_EQ(config->layers[1].block, 1);
  EXPECT_EQ(config->layers[1].ffn().width, 96);
  EXPECT_EQ(attention.n_kv_heads, 8);
  EXPECT_EQ(attention.head_dim, 8);
  EXPECT_EQ(attention.rope->n_rot, 8);
  EXPECT_TRUE(attention.rope->interleaved);
  EXPECT_EQ(attention.rope->freq_base, 10000);
  EXPECT_EQ(attention.rope->freq_scale, 1);
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
  const auto config = ConfigFromMetadata(m);
  ASSERT_TRUE(config) << config.error().message;
  for (const std::size_t i : {0u, 1u}) {
    const AttentionConfig& attention = config->layers[i].attention();
    EXPECT_EQ(attention.n_heads, i == 0 ? 8 : 4);
    EXPECT_EQ(attention.n_kv_heads, i == 0 ? 2 : 4);
    EXPECT_EQ(attention.head_dim, i == 0 ? 8 : 16);
    EXPECT_EQ(attention.rope->n_rot, attention.head_dim);
    EXPECT_EQ(config->layers[i].ffn().width, i == 0 ? 96 : 32);
  }
}

TEST(Registry, IsSortedByName) {
  const auto names = NamesOf(AllArchitectures());
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

TEST(Registry, NamesTheArchitecturesThereAreForAnUnknownOne) {
  auto m = Llama();
  m.Set("general.architecture", std::string("mamba"));
  const auto config = ConfigFromMetadata(m);
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(config.error().message.find("llama, qwen2, qwen3"), std::string::npos);
}

TEST(Registry, RefusesValuesThatCannotBe) {
  EXPECT_EQ(CodeAfter("llama.block_count", std::int64_t{0}), ErrorCode::kInvalidFile);
  EXPECT_EQ(CodeAfter("llama.embedding_length", std::int64_t{1} << 40), ErrorCode::kInvalidFile);
  EXPECT_EQ(CodeAfter("llama.embedding_length", std::int64_t{60}), ErrorCode::kInvalidFile);
  EXPECT_EQ(CodeAfter("llama.attention.head_count_kv", std::int64_t{3}), ErrorCode::kInvalidFile);
  EXPECT_EQ(CodeAfter("llama.attention.layer_norm_rms_epsilon", -1.0), ErrorCode::kInvalidFile);
  EXPECT_EQ(CodeAfter("llama.rope.dimension_count", std::int64_t{7}), ErrorCode::kInvalidFile);
  EXPECT_EQ(CodeAfter("llama.rope.scaling.type", std::string("su")), ErrorCode::kUnsupported);
  EXPECT_EQ(CodeAfter("llama.attention.head_count_kv", std::vector<std::int64_t>{8, 0}),
            ErrorCode::kInvalidFile);
  EXPECT_EQ(CodeAfter("llama.attention.head_count_kv", std::vector<std::int64_t>{8}),
            ErrorCode::kInvalidFile);
  EXPECT_EQ(CodeAfter("llama.expert_count", std::int64_t{8}), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace foretoken::model
