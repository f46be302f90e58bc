// SPDX-License-Identifier: Apache-2.0
// As gemma.h says, with windows in every second layer and soft caps of scores and logits.
#include "model/arch/families/gemma.h"

#include <cmath>

#include "model/arch/registry.h"
#include "model/arch/windows.h"

namespace foretoken::model::arch {

void SetGemma(ModelConfig& config) {
  config.embedding_scale = std::sqrt(static_cast<float>(config.dim));
  for (LayerConfig& layer : config.layers) {
    if (layer.attention().rope) layer.attention().rope->interleaved = false;
    layer.attention().post_norm = "post_attention_norm";
    layer.ffn().post_norm = "post_ffw_norm";
    layer.ffn().function = GateFunction::kGelu;
  }
}

void ScaleAsWidth(int n_layers, ModelConfig& config) {
  if (config.n_layers() != n_layers) return;
  for (LayerConfig& layer : config.layers) {
    const double size = static_cast<double>(config.dim) / layer.attention().n_heads;
    layer.attention().scale = static_cast<float>(1 / std::sqrt(size));
  }
}

namespace {

constexpr int kLargestGemma2 = 46;  // layers of Gemma 2 27B

Status CompleteGemma2(const MetadataReader& read, ModelConfig& config) {
  SetGemma(config);
  ScaleAsWidth(kLargestGemma2, config);
  FORETOKEN_TRY(const double scores, read.NotNegative("attn_logit_softcapping", 50));
  FORETOKEN_TRY(const double logits, read.NotNegative("final_logit_softcapping", 30));
  config.logit_soft_cap = static_cast<float>(logits);
  for (LayerConfig& layer : config.layers) layer.attention().soft_cap = static_cast<float>(scores);
  return ReadWindows(read, 2, config);
}

}  // namespace

extern const Architecture kGemma2 = {
    .info = {.name = "gemma2",
             .networks = "Gemma 2",
             .traits = "the embedding times sqrt(width), norms before and after both parts, GELU, "
                       "soft caps of scores and logits; a window in every second layer; NeoX "
                       "rotation"},
    .complete = CompleteGemma2};

}  // namespace foretoken::model::arch
