// SPDX-License-Identifier: Apache-2.0
// config.json as published folders have it.
#include "formats/huggingface/family.h"

#include <gtest/gtest.h>

#include "formats/huggingface/pre_tokenizer.h"

namespace foretoken::formats::huggingface {
namespace {

struct Outcome {
  Configuration configuration;
  Metadata metadata;
  std::string error;

  std::int64_t Int(const char* key) const { return metadata.Int(key).value_or(-1); }
  double Number(const char* key) const { return metadata.Float(key).value_or(-1); }
};

Outcome Read(const std::string& text) {
  Outcome outcome;
  const Json config = *ParseObject(text, "config.json");
  auto configuration = ReadConfiguration(config, "config.json", outcome.metadata);
  if (configuration)
    outcome.configuration = std::move(*configuration);
  else
    outcome.error = configuration.error().message;
  return outcome;
}

// Sizes that all networks have, and more fields.
Outcome ReadSmall(const std::string& model_type, const std::string& more) {
  return Read(R"({"num_hidden_layers": 4, "hidden_size": 64, "intermediate_size": 96,
                  "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300,
                  "max_position_embeddings": 4096, "model_type": ")" +
              model_type + "\"" + (more.empty() ? "" : ", ") + more + "}");
}

TEST(Family, LlamaThreePointTwo) {
  const Outcome o = Read(R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
    "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "head_dim": 64,
    "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192,
    "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0,
    "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "rope_theta": 500000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "vocab_size": 128256})");
  ASSERT_EQ(o.error, "");
  EXPECT_EQ(*o.metadata.String("general.architecture"), "llama");
  EXPECT_EQ(o.Int("llama.block_count"), 16);
  EXPECT_EQ(o.Int("llama.attention.head_count_kv"), 8);
  EXPECT_EQ(o.Int("llama.rope.dimension_count"), 64);
  EXPECT_EQ(o.Number("llama.rope.freq_base"), 500000);
  EXPECT_EQ(o.metadata.Find("llama.rope.scaling.type"), nullptr);
  EXPECT_TRUE(o.configuration.tied);
  ASSERT_EQ(o.configuration.rope_factors.size(), 32u);
  // Waves of dimension 2i have the length 2 pi 500000^(2i/64): below 8192 / 4 they stay, above 8192
  // they are 32 times as long.
  EXPECT_EQ(o.configuration.rope_factors[0], 1);
  EXPECT_EQ(o.configuration.rope_factors[14], 1);   // 1,954 positions
  EXPECT_GT(o.configuration.rope_factors[15], 1);   // 2,945
  EXPECT_LT(o.configuration.rope_factors[17], 32);  // 6,689
  EXPECT_EQ(o.configuration.rope_factors[18], 32);  // 10,080
}

TEST(Family, QwenThreeWithYarn) {
  const Outcome o = ReadSmall("qwen3", R"("rope_theta": 1000000, "sliding_window": null,
    "use_sliding_window": false, "max_window_layers": 28, "rope_scaling": {"rope_type": "yarn",
    "factor": 4.0, "original_max_position_embeddings": 1024})");
  ASSERT_EQ(o.error, "");
  EXPECT_EQ(o.Int("qwen3.attention.key_length"), 128);  // the default of the family
  EXPECT_EQ(*o.metadata.String("qwen3.rope.scaling.type"), "yarn");
  EXPECT_EQ(o.Number("qwen3.rope.scaling.factor"), 4);
  EXPECT_EQ(o.Int("qwen3.rope.scaling.original_context_length"), 1024);
  EXPECT_EQ(o.metadata.Find("qwen3.rope.scaling.attn_factor"), nullptr);
  EXPECT_EQ(o.Int("qwen3.context_length"), 4096);
}

TEST(Family, GemmaThreeOfPicturesAndText) {
  const Outcome o = Read(R"({"architectures": ["Gemma3ForConditionalGeneration"],
    "eos_token_id": [1, 106], "image_token_index": 262144, "model_type": "gemma3",
    "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
    "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
    "sliding_window": 1024}, "vision_config": {"hidden_size": 1152}})");
  ASSERT_EQ(o.error, "");
  EXPECT_EQ(*o.metadata.String("general.architecture"), "gemma3");
  EXPECT_EQ(o.Int("gemma3.attention.head_count"), 8);
  EXPECT_EQ(o.Int("gemma3.attention.head_count_kv"), 4);
  EXPECT_EQ(o.Int("gemma3.attention.key_length"), 256);
  EXPECT_EQ(o.Int("gemma3.attention.sliding_window"), 1024);
  EXPECT_EQ(o.Int("gemma3.attention.sliding_window_pattern"), -1);  // 6, the architecture's own
  EXPECT_EQ(o.Number("gemma3.rope.freq_base"), 1000000);
  EXPECT_EQ(o.Number("gemma3.rope.freq_base_swa"), 10000);
  EXPECT_EQ(o.Number("gemma3.rope.scaling.factor"), 8);
  EXPECT_EQ(o.configuration.vocabulary, 262208);
  EXPECT_TRUE(o.configuration.tied);
}

TEST(Family, GemmaThreeAsNewerFoldersSayIt) {
  const std::string layers = R"("layer_types": ["sliding_attention", "sliding_attention",
    "full_attention", "sliding_attention"], "head_dim": 256, "rope_parameters": {
    "full_attention": {"rope_type": "linear", "factor": 8, "rope_theta": 500000},
    "sliding_attention": {"rope_type": "default", "rope_theta": 20000}})";
  const Outcome o = ReadSmall("gemma3_text", layers);
  ASSERT_EQ(o.error, "");
  EXPECT_EQ(o.Int("gemma3.attention.sliding_window_pattern"), 3);
  EXPECT_EQ(o.Number("gemma3.rope.freq_base"), 500000);
  EXPECT_EQ(o.Number("gemma3.rope.freq_base_swa"), 20000);
  EXPECT_EQ(o.Number("gemma3.rope.scaling.factor"), 8);
  const Outcome uneven = ReadSmall("gemma3_text", R"("layer_types": ["full_attention",
    "sliding_attention", "sliding_attention", "full_attention"])");
  EXPECT_NE(uneven.error.find("layer_types"), std::string::npos);
  const Outcome scaled = ReadSmall("gemma3_text", R"("query_pre_attn_scalar": 144)");
  EXPECT_NE(scaled.error.find("query_pre_attn_scalar"), std::string::npos);
}

TEST(Family, MixturesOfQwenThree) {
  const std::string mixture = R"("num_experts": 128, "num_experts_per_tok": 8,
    "moe_intermediate_size": 768, "decoder_sparse_step": 1, "mlp_only_layers": [])";
  const Outcome o = ReadSmall("qwen3_moe", mixture + R"(, "norm_topk_prob": true)");
  ASSERT_EQ(o.error, "");
  EXPECT_EQ(o.Int("qwen3moe.expert_count"), 128);
  EXPECT_EQ(o.Int("qwen3moe.expert_used_count"), 8);
  EXPECT_EQ(o.Int("qwen3moe.expert_feed_forward_length"), 768);
  EXPECT_NE(ReadSmall("qwen3_moe", mixture).error.find("norm_topk_prob"), std::string::npos);
  EXPECT_NE(ReadSmall("qwen3_moe", R"("num_experts": 4, "num_experts_per_tok": 8)")
                .error.find("num_experts_per_tok: 8 is out of range"),
            std::string::npos);
}

TEST(Family, TheContextEndsAtTheWindowOfOlderNetworks) {
  EXPECT_EQ(ReadSmall("mistral", R"("sliding_window": 1000)").Int("llama.context_length"), 1000);
  EXPECT_EQ(ReadSmall("mistral", R"("sliding_window": null)").Int("llama.context_length"), 4096);
  const std::string window = R"("sliding_window": 1000, "max_window_layers": )";
  EXPECT_EQ(ReadSmall("qwen2", window + "2").Int("qwen2.context_length"), 4096);
  const std::string used = R"("use_sliding_window": true, )";
  EXPECT_EQ(ReadSmall("qwen2", used + window + "2").Int("qwen2.context_length"), 1000);
  EXPECT_EQ(ReadSmall("qwen2", used + window + "4").Int("qwen2.context_length"), 4096);
}

// ---- Pre-tokenizers -----------------------------------------------------------------------------

std::string NameOf(const std::string& pre_tokenizer, bool ignores_merges = false) {
  const Json file = *ParseObject("{\"pre_tokenizer\": " + pre_tokenizer + "}", "tokenizer.json");
  const auto words = ReadPreTokenizer(JsonFields(file, "tokenizer.json"), ignores_merges);
  return words ? words->name : words.error().message;
}

TEST(PreTokenizer, IsKnownByItsExpressions) {
  const std::string bytes = R"({"type": "ByteLevel", "use_regex": false})";
  const auto sequence = [](const std::string& parts) {
    return R"({"type": "Sequence", "pretokenizers": [)" + parts + "]}";
  };
  const std::string llama3 =
      R"({"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
          "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}})";
  EXPECT_EQ(NameOf(R"({"type": "ByteLevel"})"), "gpt-2");
  EXPECT_EQ(NameOf(sequence(R"({"type": "Digits", "individual_digits": true},
                               {"type": "ByteLevel"})")),
            "smollm");
  EXPECT_EQ(NameOf(sequence(llama3 + "," + bytes), true), "llama-bpe");
  EXPECT_EQ(NameOf(sequence(llama3 + "," + bytes), false), "dbrx");
  for (const std::string& unknown :
       {sequence(llama3 + "," + llama3 + "," + bytes), sequence("5," + bytes), bytes,
        sequence(R"({"type": "Punctuation"},)" + bytes),
        std::string(R"({"type": "ByteLevel", "add_prefix_space": true})")})
    EXPECT_NE(NameOf(unknown).find("not known"), std::string::npos) << unknown;
}

}  // namespace
}  // namespace foretoken::formats::huggingface
