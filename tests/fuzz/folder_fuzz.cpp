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

namespace {

using namespace foretoken;  // NOLINT: a program of its own
using namespace foretoken::formats::huggingface;

volatile std::uint64_t sink = 0;

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
