// SPDX-License-Identifier: Apache-2.0
// Blocks of one part each: Mamba-2, attention without rotation, or a feed-forward part without a gate,
// whose function is the square of max(x, 0). In the mixtures, experts are chosen by sigmoids with a
// bias, beside a shared part.
#include "model/arch/experts_config.h"
#include "model/arch/mamba2_config.h"
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

constexpr std::string_view kNorm = "attn_norm";

Status CompleteNemotronBlocks(const MetadataReader& read, const FeedForwardConfig& feed_forward,
                              ModelConfig& config) {
  FORETOKEN_TRY(const Mamba2Config mamba, ReadMamba2(read));
  for (LayerConfig& layer : config.layers) {
    const int width = layer.ffn().width;
    AttentionConfig& attention = layer.attention();
    attention.rope.reset();
    if (width == 0) {
      layer.feed_forward = NoPart{};
      if (attention.n_kv_heads == 0) layer.mixer = mamba;
      continue;
    }
    layer.mixer = NoPart{};
    layer.feed_forward = feed_forward;
    if (layer.experts() == nullptr) layer.ffn().width = width;
  }
  return {};
}

Status CompleteNemotronH(const MetadataReader& read, ModelConfig& config) {
  return CompleteNemotronBlocks(
      read, GatedFfnConfig{.function = GateFunction::kReluSquared, .gated = false, .norm = kNorm},
      config);
}

Status CompleteNemotronHMoe(const MetadataReader& read, ModelConfig& config) {
  FORETOKEN_TRY(ExpertsConfig experts, ReadExperts(read, config));
  experts.function = GateFunction::kReluSquared;
  experts.gated = false;
  experts.gating = ExpertGating::kSigmoid;
  experts.selection_bias = true;
  experts.normalised = true;
  experts.norm = kNorm;
  FORETOKEN_CHECK_OK(ReadRouter(read, experts));
  if (read.Int("expert_shared_feed_forward_length").value_or(0) != 0) {
    FORETOKEN_TRY(experts.shared_width, read.Size("expert_shared_feed_forward_length", 1 << 19));
  }
  return CompleteNemotronBlocks(read, experts, config);
}

}  // namespace

extern const Architecture kNemotronH = {
    .info = {.name = "nemotron_h",
             .networks = "Nemotron H, Nemotron Nano 2 (dense)",
             .traits = "blocks of one part: Mamba-2, attention without rotation, or a feed-forward "
                       "part of two matrices with the square of max(x, 0)"},
    .complete = CompleteNemotronH,
    .recurrent = true,
    .single_parts = true};

extern const Architecture kNemotronHMoe = {
    .info = {.name = "nemotron_h_moe",
             .networks = "Nemotron 3 Nano (30B-A3B)",
             .traits = "as nemotron_h; experts chosen by sigmoids and a bias, and a shared part"},
    .complete = CompleteNemotronHMoe,
    .recurrent = true,
    .single_parts = true};

}  // namespace foretoken::model::arch
