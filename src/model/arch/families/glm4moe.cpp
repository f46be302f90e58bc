// SPDX-License-Identifier: Apache-2.0
// Biases on queries, keys and values, NeoX rotation of a part of a head, a norm on each query and
// key head in some files; the first layers are dense, the others mixtures of experts that are chosen
// by sigmoids with a bias, with a shared part.
#include "model/arch/experts_config.h"
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status CompleteGlm4Moe(const MetadataReader& read, ModelConfig& config) {
  for (LayerConfig& layer : config.layers) {
    AttentionConfig& attention = layer.attention();
    attention.rope->interleaved = false;
    attention.qkv_bias = true;
    attention.qk_norm = QkNorm::kHead;
    attention.qk_norm_optional = true;
    layer.ffn().norm = "post_attention_norm";
  }
  FORETOKEN_TRY(ExpertsConfig experts, ReadExperts(read, config));
  experts.gating = ExpertGating::kSigmoid;
  experts.selection_bias = true;
  experts.norm = "post_attention_norm";
  FORETOKEN_CHECK_OK(ReadRouter(read, experts));
  FORETOKEN_TRY(const int shared, read.Size("expert_shared_count", 64, 1));
  experts.shared_width = shared * experts.width;
  return UseExperts(read, experts, config);
}

}  // namespace

extern const Architecture kGlm4Moe = {
    .info = {.name = "glm4moe",
             .networks = "GLM 4.5, 4.6 and 4.7 (mixtures)",
             .traits = "biases of queries, keys and values; NeoX rotation; the first blocks dense; "
                       "experts chosen by sigmoids and a bias, and a shared part"},
    .complete = CompleteGlm4Moe};

}  // namespace foretoken::model::arch
