// SPDX-License-Identifier: Apache-2.0
// Scales of the embedding, of what layers add to the residual stream, of the attention's scores and
// of the logits. A file says with rope.scaling.finetuned = false that no layer encodes positions.
#include "model/arch/families/granite.h"

#include <cmath>

#include "model/arch/registry.h"

namespace foretoken::model::arch {

Status ReadGraniteScales(const MetadataReader& read, ModelConfig& config) {
  FORETOKEN_TRY(const double embedding, read.Positive("embedding_scale", 1));
  FORETOKEN_TRY(const double residual, read.Positive("residual_scale", 1));
  FORETOKEN_TRY(const double logits, read.Positive("logit_scale", 1));
  config.embedding_scale = static_cast<float>(embedding);
  config.logit_scale = 1 / static_cast<float>(logits);
  const bool rotates = read.Bool("rope.scaling.finetuned").value_or(true);
  for (LayerConfig& layer : config.layers) {
    layer.residual_scale = static_cast<float>(residual);
    AttentionConfig& attention = layer.attention();
    if (attention.n_kv_heads == 0) continue;  // a recurrent layer
    FORETOKEN_TRY(
        const double scale,
        read.Positive("attention.scale", 1 / std::sqrt(static_cast<double>(attention.head_dim))));
    attention.scale = static_cast<float>(scale);
    if (!rotates) attention.rope.reset();
  }
  return {};
}

extern const Architecture kGranite = {
    .info = {.name = "granite",
             .networks = "Granite 3 and 4 (dense)",
             .traits = "`embedding_scale`, `residual_scale`, `attention.scale`, `logit_scale` (the "
                       "logits are divided by it); `rope.scaling.finetuned` = false: no rotation"},
    .complete = ReadGraniteScales};

}  // namespace foretoken::model::arch
