// SPDX-License-Identifier: Apache-2.0
// As llama, with queries that grow with the position.
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status CompleteMistral3(const MetadataReader& read, ModelConfig& config) {
  FORETOKEN_TRY(const double scale, read.NotNegative("attention.temperature_scale", 0));
  for (LayerConfig& layer : config.layers) {
    AttentionConfig& attention = layer.attention();
    attention.temperature_scale = scale;
    attention.temperature_length = attention.rope->original_context;
  }
  return {};
}

}  // namespace

extern const Architecture kMistral3 = {
    .info = {.name = "mistral3",
             .networks = "Ministral 3, Mistral 3 (text)",
             .traits = "yarn with `rope.scaling.yarn_log_multiplier`; queries times 1 + "
                       "`attention.temperature_scale` ln(1 + floor(position / "
                       "`rope.scaling.original_context_length`))"},
    .complete = CompleteMistral3};

}  // namespace foretoken::model::arch
