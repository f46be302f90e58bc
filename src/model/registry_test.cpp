// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

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
  EXPECT_EQ(config->n_kv_heads, 8);
  EXPECT_EQ(config->head_dim, 8);
  EXPECT_EQ(config->rope.n_rot, 8);
  EXPECT_TRUE(config->rope.interleaved);
  EXPECT_EQ(config->rope.freq_base, 10000);
  EXPECT_EQ(config->rope.freq_scale, 1);
}

TEST(Registry, ReadsRopeScaling) {
  auto m = Llama();
  m.Set("llama.rope.scaling.type", std::string("yarn"));
  m.Set("llama.rope.scaling.factor", 4.0);
  m.Set("llama.rope.scaling.original_context_length", std::int64_t{32});
  const auto config = ConfigFromMetadata(m);
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->rope.yarn);
  EXPECT_EQ(config->rope.freq_scale, 0.25);
  EXPECT_EQ(config->rope.original_context, 32);
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
  EXPECT_EQ(CodeAfter("llama.attention.head_count_kv", std::vector<std::int64_t>{8, 4}),
            ErrorCode::kUnsupported);
  EXPECT_EQ(CodeAfter("llama.expert_count", std::int64_t{8}), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace foretoken::model
