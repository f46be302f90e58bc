// SPDX-License-Identifier: Apache-2.0
// Norms before and after both parts, one matrix for gate and up, biases, a rotation of a part of each
// head.
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status CompleteGlm4(const MetadataReader&, ModelConfig& config) {
  for (LayerConfig& layer : config.layers) {
    layer.attention().post_norm = "post_attention_norm";
    layer.ffn().post_norm = "post_ffw_norm";
    layer.ffn().gate_in_up = true;
  }
  return {};
}

}  // namespace

extern const Architecture kGlm4 = {
    .info = {.name = "glm4",
             .networks = "GLM 4 (0414, dense)",
             .traits = "norms before and after both parts; biases of queries, keys and values; "
                       "`ffn_up` holds gate and up; rotation of `rope.dimension_count` dimensions"},
    .complete = CompleteGlm4};

}  // namespace foretoken::model::arch
