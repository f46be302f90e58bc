// SPDX-License-Identifier: Apache-2.0
// The attention of qwen3 and a mixture of experts in every layer: softmax over all experts, the
// weights of a row divided by their sum.
#include "model/arch/experts_config.h"
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status CompleteQwen3Moe(const MetadataReader& read, ModelConfig& config) {
  for (LayerConfig& layer : config.layers) {
    layer.attention().rope->interleaved = false;
    layer.attention().qk_norm = QkNorm::kHead;
  }
  FORETOKEN_TRY(ExpertsConfig experts, ReadExperts(read, config));
  experts.normalised = true;
  return UseExperts(read, experts, config);
}

}  // namespace

extern const Architecture kQwen3Moe = {
    .info = {.name = "qwen3moe",
             .networks = "Qwen 3 mixtures (30B-A3B, 235B-A22B, Coder)",
             .traits = "the attention of qwen3; experts chosen by softmax, their weights divided "
                       "by the sum"},
    .complete = CompleteQwen3Moe};

}  // namespace foretoken::model::arch
