// SPDX-License-Identifier: Apache-2.0
// Biases on queries, keys and values, NeoX rotation.
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status CompleteQwen2(const MetadataReader&, ModelConfig& config) {
  for (LayerConfig& layer : config.layers) {
    layer.attention().rope->interleaved = false;
    layer.attention().qkv_bias = true;
  }
  return {};
}

}  // namespace

extern const Architecture kQwen2 = {
    .info = {.name = "qwen2",
             .networks = "Qwen 2 and 2.5",
             .traits = "biases of queries, keys and values; NeoX rotation"},
    .complete = CompleteQwen2};

}  // namespace foretoken::model::arch
