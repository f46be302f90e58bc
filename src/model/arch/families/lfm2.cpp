// SPDX-License-Identifier: Apache-2.0
// Gated convolutions over a few positions, and between them layers of attention with a norm on each
// query and key head and NeoX rotation. In the mixtures, experts are chosen by sigmoids with a bias.
#include "model/arch/experts_config.h"
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status CompleteLfm2(const MetadataReader& read, ModelConfig& config) {
  ShortConvConfig conv;
  FORETOKEN_TRY(conv.taps, read.Size("shortconv.l_cache", kMostTaps));
  config.output_norm = "token_embd_norm";
  for (LayerConfig& layer : config.layers) {
    AttentionConfig& attention = layer.attention();
    if (attention.n_kv_heads == 0) {
      layer.mixer = conv;
      continue;
    }
    attention.rope->interleaved = false;
    attention.qk_norm = QkNorm::kHead;
  }
  return {};
}

Status CompleteMoe(const MetadataReader& read, ModelConfig& config) {
  FORETOKEN_CHECK_OK(CompleteLfm2(read, config));
  FORETOKEN_TRY(ExpertsConfig experts, ReadExperts(read, config));
  experts.gating = ExpertGating::kSigmoid;
  experts.selection_bias = true;
  experts.normalised = true;
  return UseExperts(read, experts, config);
}

}  // namespace

extern const Architecture kLfm2 = {
    .info = {.name = "lfm2",
             .networks = "LFM 2 (dense)",
             .traits = "gated convolutions over a few positions, and attention in some layers with "
                       "a norm on each query and key head; NeoX rotation"},
    .complete = CompleteLfm2,
    .recurrent = true};

extern const Architecture kLfm2Moe = {
    .info = {.name = "lfm2moe",
             .networks = "LFM 2 mixtures (8B-A1B)",
             .traits = "as lfm2; the first blocks dense; experts chosen by sigmoids and a bias, "
                       "their weights divided by the sum"},
    .complete = CompleteMoe,
    .recurrent = true};

}  // namespace foretoken::model::arch
