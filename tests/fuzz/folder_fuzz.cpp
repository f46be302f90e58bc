// SPDX-License-Identifier: Apache-2.0
// Files of a model folder: the input as a safetensors file, as the header of one, and as config.json.
// What is accepted is consistent and lies inside the input.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "formats/huggingface/family.h"
#include "formats/huggingface/safetensors.h"
#include "formats/huggingface/tensor_map.h"
#include "fuzz/json_seeds.h"

namespace {

using namespace foretoken;  // NOLINT: a program of its own
using namespace foretoken::formats::huggingface;

volatile std::uint64_t sink = 0;

constexpr std::string_view kSeeds[] = {
    R"({"__metadata__": {"format": "pt"}, "model.embed_tokens.weight": {"dtype": "F32", "shape": [4, 4],
"data_offsets": [0, 64]}})",
    R"({"model.layers.0.self_attn.q_proj.weight": {"dtype": "BF16", "shape": [4, 4], "data_offsets": [0, 32]},
"model.layers.1.mlp.experts.1.gate_proj.weight": {"dtype": "F16", "shape": [2, 4], "data_offsets": [32, 48]},
"model.layers.0.input_layernorm.weight": {"dtype": "F32", "shape": [4], "data_offsets": [48, 64]}})",
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 96,
"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 320,
"max_position_embeddings": 256, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "hidden_act": "silu",
"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
"original_max_position_embeddings": 64}, "tie_word_embeddings": false, "attention_bias": false})",
    R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "num_hidden_layers": 6,
"hidden_size": 64, "intermediate_size": 96, "sliding_window": 16, "sliding_window_pattern": 6,
"query_pre_attn_scalar": 16, "head_dim": 16, "num_attention_heads": 4, "rope_local_base_freq": 1e4,
"rope_scaling": {"factor": 8.0, "rope_type": "linear"}}})",
    R"({"model_type": "qwen3_moe", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
"head_dim": 16, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
"norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": [], "rope_parameters":
{"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e6, "original_max_position_embeddings": 64},
"use_sliding_window": false, "max_window_layers": 2})"};

void CheckLine(const Error& error) {
  FORETOKEN_CHECK(error.message.find('\n') == std::string::npos);
}

void ReadFile(std::span<const std::byte> bytes, const Configuration& configuration) {
  const auto tensors = ParseSafetensors(bytes, "fuzz.safetensors");
  if (!tensors) return CheckLine(tensors.error());
  TensorMap map(configuration, "fuzz");
  bool added = true;
  for (const SafeTensor& tensor : *tensors) {
    for (const std::byte b : tensor.data) sink = sink + std::to_integer<std::uint64_t>(b);
    if (const auto status = map.Add(tensor); !status) CheckLine(status.error()), added = false;
  }
  const auto views = map.Take();
  if (!views) return CheckLine(views.error());
  if (!added) return;
  for (const formats::TensorView& view : views->tensors)
    for (std::int64_t row = 0; row < view.n_rows(); ++row)
      for (std::size_t i = 0; i < view.row_bytes(); ++i)
        sink = sink + std::to_integer<std::uint64_t>(view.Row(row)[i]);
}

void ReadConfig(std::string_view text) {
  const auto config = ParseObject(text, "config.json");
  if (!config) return CheckLine(config.error());
  formats::Metadata metadata;
  const auto configuration = ReadConfiguration(*config, "config.json", metadata);
  if (!configuration) return CheckLine(configuration.error());
  FORETOKEN_CHECK(configuration->blocks >= 1 && configuration->head_dim >= 1);
}

Configuration Fixed(const char* model_type) {
  formats::Metadata metadata;
  const Json config =
      *ParseObject(std::string(R"({"num_hidden_layers": 2, "hidden_size": 4, "intermediate_size": 4,
        "num_attention_heads": 1, "head_dim": 4, "vocab_size": 4, "num_experts": 2,
        "num_experts_per_tok": 1, "moe_intermediate_size": 4, "norm_topk_prob": true,
        "query_pre_attn_scalar": 4, "max_position_embeddings": 8, "model_type": ")") +
                       model_type + "\"}",
                   "config.json");
  return *ReadConfiguration(config, "config.json", metadata);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return MutateJson(kSeeds, data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Configuration kNetworks[] = {Fixed("llama"), Fixed("qwen3_moe"),
                                            Fixed("gemma3_text")};
  const std::string input(reinterpret_cast<const char*>(data), size);
  const auto header_bytes = static_cast<std::uint64_t>(size);
  std::string file(sizeof header_bytes, '\0');
  std::memcpy(file.data(), &header_bytes, sizeof header_bytes);
  file += input + std::string(64, '\1');
  for (const Configuration& network : kNetworks) {
    ReadFile(std::as_bytes(std::span(input)), network);
    ReadFile(std::as_bytes(std::span(file)), network);
  }
  ReadConfig(input);
  return 0;
}
