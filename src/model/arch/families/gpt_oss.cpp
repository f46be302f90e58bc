// SPDX-License-Identifier: Apache-2.0
// Sinks and biases in the attention, windows in every second layer, NeoX rotation, and a mixture of
// experts with biases in every layer, whose weights are the softmax over the chosen ones.
#include "model/arch/experts_config.h"
#include "model/arch/registry.h"
#include "model/arch/windows.h"

namespace foretoken::model::arch {
namespace {

Status CompleteGptOss(const MetadataReader& read, ModelConfig& config) {
  for (LayerConfig& layer : config.layers) {
    AttentionConfig& attention = layer.attention();
    attention.rope->interleaved = false;
    attention.sinks = attention.qkv_bias = attention.output_bias = true;
  }
  FORETOKEN_CHECK_OK(ReadWindows(read, 2, config));
  FORETOKEN_TRY(ExpertsConfig experts, ReadExperts(read, config));
  experts.gating = ExpertGating::kChosenSoftmax;
  experts.function = GateFunction::kLimitedSwiglu;
  experts.biases = true;
  experts.norm = "post_attention_norm";
  return UseExperts(read, experts, config);
}

}  // namespace

extern const Architecture kGptOss = {
    .info = {.name = "gpt-oss",
             .networks = "gpt-oss (20B, 120B)",
             .traits = "attention sinks, biases everywhere, a window in every second layer, NeoX "
                       "rotation; experts chosen by their logits, weights by softmax over the "
                       "chosen; SwiGLU with limits"},
    .complete = CompleteGptOss};

}  // namespace foretoken::model::arch
