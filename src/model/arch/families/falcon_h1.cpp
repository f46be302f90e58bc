// SPDX-License-Identifier: Apache-2.0
// Attention and Mamba-2 beside each other in every block: both read the same norm, and both join the
// residual stream.
#include "model/arch/mamba2_config.h"
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status CompleteFalconH1(const MetadataReader& read, ModelConfig& config) {
  FORETOKEN_TRY(Mamba2Config mamba, ReadMamba2(read));
  mamba.norm = "";
  for (LayerConfig& layer : config.layers) {
    layer.attention().rope->interleaved = false;
    layer.beside = mamba;
    layer.ffn().bare_norm = true;
  }
  return {};
}

}  // namespace

extern const Architecture kFalconH1 = {
    .info = {.name = "falcon-h1",
             .networks = "Falcon H1",
             .traits = "attention with NeoX rotation and Mamba-2 beside each other in every block"},
    .complete = CompleteFalconH1};

}  // namespace foretoken::model::arch
