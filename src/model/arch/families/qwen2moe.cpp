// SPDX-License-Identifier: Apache-2.0
// The attention of qwen2 and a mixture of experts in every layer: softmax over all experts, weights
// as they are, and a shared part with a gate.
#include "model/arch/experts_config.h"
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status CompleteQwen2Moe(const MetadataReader& read, ModelConfig& config) {
  for (LayerConfig& layer : config.layers) {
    layer.attention().rope->interleaved = false;
    layer.attention().qkv_bias = true;
  }
  FORETOKEN_TRY(ExpertsConfig experts, ReadExperts(read, config));
  FORETOKEN_TRY(experts.shared_width, read.Size("expert_shared_feed_forward_length", 1 << 19,
                                                config.layers.front().ffn().width));
  experts.shared_gate = true;
  return UseExperts(read, experts, config);
}

}  // namespace

extern const Architecture kQwen2Moe = {
    .info = {.name = "qwen2moe",
             .networks = "Qwen 1.5 and 2 mixtures",
             .traits = "the attention of qwen2; experts chosen by softmax, and a shared part that "
                       "is multiplied by a sigmoid"},
    .complete = CompleteQwen2Moe};

}  // namespace foretoken::model::arch
