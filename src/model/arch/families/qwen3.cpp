// SPDX-License-Identifier: Apache-2.0
// A norm on each query and key head, NeoX rotation, a head size of its own.
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status CompleteQwen3(const MetadataReader&, ModelConfig& config) {
  for (LayerConfig& layer : config.layers) {
    layer.attention().rope->interleaved = false;
    layer.attention().qk_norm = QkNorm::kHead;
  }
  return {};
}

}  // namespace

extern const Architecture kQwen3 = {
    .info = {.name = "qwen3",
             .networks = "Qwen 3 (dense)",
             .traits = "a norm on each query and key head; NeoX rotation"},
    .complete = CompleteQwen3};

}  // namespace foretoken::model::arch
