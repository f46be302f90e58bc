// SPDX-License-Identifier: Apache-2.0
// Tensors that are missing or do not fit, family by family: each is an error with its name.
#include "model/weights/weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "fixtures/tiny_model.h"
#include "model/arch/registry.h"

namespace foretoken::model {
namespace {

// A file whose bytes are changed before it is opened.
Result<std::unique_ptr<formats::Checkpoint>> Open(const std::vector<std::byte>& bytes) {
  static int count = 0;
  static const std::string folder = fixtures::TemporaryFolder();
  const std::string path = folder + "/" + std::to_string(count++) + ".gguf";
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  EXPECT_TRUE(out.good()) << path << " cannot be written";
  return formats::OpenCheckpoint(path);
}

fixtures::TinyModelOptions Tiny(const std::string& arch) {
  return {.arch = arch, .n_layers = 3, .head_dim = 16, .window = 8};
}

// What loading says, where the configuration is changed after it was read.
template <typename Change>
std::string ErrorAfter(const std::vector<std::byte>& bytes, Change&& change) {
  const auto checkpoint = Open(bytes);
  if (!checkpoint) return checkpoint.error().message;
  auto config = ConfigFromMetadata((*checkpoint)->metadata());
  if (!config) return config.error().message;
  config->vocabulary = *VocabularyRows(**checkpoint);
  change(*config);
  const Status status = Weights::Check(**checkpoint, *config);
  return status ? "" : status.error().message;
}

// The bytes with another name of the same length for a tensor.
std::vector<std::byte> Renamed(std::vector<std::byte> bytes, std::string_view name) {
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  const auto at = std::string_view(text, bytes.size()).find(name);
  EXPECT_NE(at, std::string_view::npos) << name;
  if (at != std::string_view::npos) bytes[at + name.size() - 1] = std::byte{'#'};
  return bytes;
}

const auto kAsItIs = [](ModelConfig&) {};

std::vector<std::byte> LatentFile() {
  return fixtures::TinyModelBytes({.arch = "deepseek2",
                                   .n_layers = 2,
                                   .n_kv_heads = 1,
                                   .head_dim = 24,
                                   .q_rank = 16,
                                   .n_experts = 4,
                                   .shared_ff = 32,
                                   .n_dense = 1,
                                   .rope_dimensions = 8});
}

// Gemma 4 with shared caches, inputs of layers, and experts beside the dense part.
fixtures::TinyModelOptions Gemma4WithAll() {
  auto options = Tiny("gemma4");
  options.n_layers = 6, options.shared_caches = 3, options.layer_input = 8;
  options.n_experts = 4;
  return options;
}

TEST(Weights, OfTinyFilesAreComplete) {
  for (const char* arch : {"ernie4_5", "exaone4", "gemma2", "gemma3", "gemma4", "glm4", "granite",
                           "llama", "mistral3", "olmo2", "phi3", "qwen2", "qwen3", "seed_oss"})
    EXPECT_EQ(ErrorAfter(fixtures::TinyModelBytes(Tiny(arch)), kAsItIs), "") << arch;
}

TEST(Weights, NameTheTensorThatIsMissing) {
  const std::pair<const char*, const char*> cases[] = {
      {"gemma2", "blk.1.post_attention_norm.weight"},
      {"gemma2", "blk.2.post_ffw_norm.weight"},
      {"gemma3", "blk.0.attn_q_norm.weight"},
      {"gemma4", "blk.1.layer_output_scale.weight"},
      {"gemma4", "blk.0.attn_k.weight"},
      {"olmo2", "blk.1.attn_k_norm.weight"},
      {"olmo2", "blk.0.post_attention_norm.weight"},
      {"glm4", "blk.2.ffn_up.weight"},
      {"seed_oss", "blk.0.post_attention_norm.weight"}};
  for (const auto& [arch, tensor] : cases) {
    const auto bytes = Renamed(fixtures::TinyModelBytes(Tiny(arch)), tensor);
    EXPECT_EQ(ErrorAfter(bytes, kAsItIs),
              "tensor " + std::string(tensor) + ": missing; this is not a complete model file");
  }
}

TEST(Weights, NameTheTensorThatDoesNotFit) {
  const auto error = [](const char* arch, auto&& change) {
    const std::string message = ErrorAfter(fixtures::TinyModelBytes(Tiny(arch)), change);
    return message.substr(0, message.find(':'));
  };
  EXPECT_EQ(error("phi3", [](ModelConfig& c) { c.layers[1].attention().n_kv_heads = 4; }),
            "tensor blk.1.attn_qkv.weight");
  EXPECT_EQ(error("phi3", [](ModelConfig& c) { c.layers[2].ffn().width = 48; }),
            "tensor blk.2.ffn_up.weight");
  EXPECT_EQ(error("phi3", [](ModelConfig& c) { c.layers[0].attention().rope->n_rot = 8; }),
            "tensor rope_factors_short.weight");
  EXPECT_EQ(error("olmo2", [](ModelConfig& c) { c.layers[0].attention().qk_norm = QkNorm::kHead; }),
            "tensor blk.0.attn_q_norm.weight");
  EXPECT_EQ(error("gemma3", [](ModelConfig& c) { c.layers[0].attention().sinks = true; }),
            "tensor blk.0.attn_sinks.weight");
  EXPECT_EQ(error("llama", [](ModelConfig& c) { c.layers[1].attention().output_bias = true; }),
            "tensor blk.1.attn_output.bias");
}

TEST(Weights, OfLatentAttentionAreNamedWhereTheyAreMissing) {
  EXPECT_EQ(ErrorAfter(LatentFile(), kAsItIs), "");
  for (const std::string tensor :
       {"attn_q_a.weight", "attn_q_a_norm.weight", "attn_q_b.weight", "attn_kv_a_mqa.weight",
        "attn_kv_a_norm.weight", "attn_k_b.weight", "attn_v_b.weight", "attn_output.weight",
        "ffn_gate_shexp.weight"})
    EXPECT_EQ(ErrorAfter(Renamed(LatentFile(), "blk.1." + tensor), kAsItIs),
              "tensor blk.1." + tensor + ": missing; this is not a complete model file");
}

TEST(Weights, OfLatentAttentionAreNamedWhereTheyDoNotFit) {
  using Change = void (*)(LatentAttentionConfig&);
  const std::pair<const char*, Change> cases[] = {
      {"attn_q_a.weight", [](LatentAttentionConfig& c) { c.q_rank = 8; }},
      {"attn_q.weight", [](LatentAttentionConfig& c) { c.q_rank = 0; }},
      {"attn_q_b.weight", [](LatentAttentionConfig& c) { c.head_dim = 32; }},
      {"attn_q_b.weight", [](LatentAttentionConfig& c) { c.n_heads = 5; }},
      {"attn_kv_a_mqa.weight", [](LatentAttentionConfig& c) { c.rank = 64; }},
      {"attn_output.weight", [](LatentAttentionConfig& c) { c.value_dim = 32; }}};
  for (const auto& [tensor, change] : cases) {
    const std::string message = ErrorAfter(LatentFile(), [&](ModelConfig& c) {
      change(std::get<LatentAttentionConfig>(c.layers[0].mixer));
    });
    EXPECT_EQ(message.substr(0, message.find(':')), std::string("tensor blk.0.") + tensor);
  }
}

TEST(Weights, OfGemma4HaveNoKeysInLayersThatReadAnotherCache) {
  const auto bytes = fixtures::TinyModelBytes(Gemma4WithAll());
  EXPECT_EQ(ErrorAfter(bytes, kAsItIs), "");
  EXPECT_EQ(ErrorAfter(bytes, [](ModelConfig& c) { c.layers[4].attention().cache_layer = -1; }),
            "tensor blk.4.attn_k.weight: missing; this is not a complete model file");
}

TEST(Weights, NameTheTensorOfGemma4ThatIsMissing) {
  const auto bytes = fixtures::TinyModelBytes(Gemma4WithAll());
  for (const std::string tensor :
       {"per_layer_token_embd.weight", "per_layer_model_proj.weight", "per_layer_proj_norm.weight",
        "blk.0.inp_gate.weight", "blk.5.proj.weight", "blk.2.post_norm.weight",
        "blk.3.attn_q_norm.weight", "blk.1.ffn_gate_inp.scale", "blk.1.ffn_down_exps.scale",
        "blk.1.pre_ffw_norm_2.weight", "blk.4.post_ffw_norm_1.weight",
        "blk.4.post_ffw_norm_2.weight", "blk.4.post_ffw_norm.weight", "blk.0.ffn_gate.weight"})
    EXPECT_EQ(ErrorAfter(Renamed(bytes, tensor), kAsItIs),
              "tensor " + tensor + ": missing; this is not a complete model file");
}

TEST(Weights, NameTheTensorOfGemma4ThatDoesNotFit) {
  const auto error = [](auto&& change) {
    const std::string message = ErrorAfter(fixtures::TinyModelBytes(Gemma4WithAll()), change);
    return message.substr(0, message.find(':'));
  };
  EXPECT_EQ(error([](ModelConfig& c) { c.layer_input = 16; }),
            "tensor per_layer_token_embd.weight");
  EXPECT_EQ(error([](ModelConfig& c) { c.layers[3].dense_part->width = 48; }),
            "tensor blk.3.ffn_gate.weight");
  EXPECT_EQ(
      error([](ModelConfig& c) { std::get<ExpertsConfig>(c.layers[0].feed_forward).width = 8; }),
      "tensor blk.0.ffn_gate_up_exps.weight");
}

TEST(Weights, CountTheEmbeddingOfLayersAmongWhatStaysInTheFile) {
  auto options = Tiny("gemma4");
  const auto bytes_with = [&](int layer_input) {
    options.layer_input = layer_input;
    return WeightBytesOf(**Open(fixtures::TinyModelBytes(options)));
  };
  const WeightBytes none = bytes_with(0), more = bytes_with(1024);
  const std::int64_t table = std::int64_t{1024} * options.n_layers * options.vocab * 4;
  EXPECT_EQ(more.embedding - none.embedding, table);
  EXPECT_LT(more.tiles() - none.tiles(), table);
}

TEST(Weights, RefuseFactorsThatAreNotPositive) {
  auto options = Tiny("llama");
  options.rope_dimensions = 4, options.rope_freqs = true;  // the factors 1 and 4
  auto bytes = fixtures::TinyModelBytes(options);
  const float factors[] = {1, 4}, zero = 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto at = text.find({reinterpret_cast<const char*>(factors), sizeof factors});
  ASSERT_NE(at, std::string_view::npos);
  std::memcpy(bytes.data() + at, &zero, sizeof zero);
  EXPECT_EQ(ErrorAfter(bytes, [](ModelConfig&) {}), "tensor rope_freqs.weight: 0 is not positive");
}

}  // namespace
}  // namespace foretoken::model
