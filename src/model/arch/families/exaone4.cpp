// SPDX-License-Identifier: Apache-2.0
// Norms only behind the parts, and a norm on each query and key head. The large network has a window
// in three of four layers; its other layers encode no positions.
#include "model/arch/registry.h"
#include "model/arch/windows.h"

namespace foretoken::model::arch {
namespace {

constexpr int kLarge = 64;  // layers of EXAONE 4 32B

Status CompleteExaone4(const MetadataReader& read, ModelConfig& config) {
  if (config.n_layers() == kLarge) FORETOKEN_CHECK_OK(ReadWindows(read, 4, config));
  for (LayerConfig& layer : config.layers) {
    AttentionConfig& attention = layer.attention();
    attention.norm = layer.ffn().norm = "";
    attention.post_norm = "post_attention_norm";
    layer.ffn().post_norm = "post_ffw_norm";
    attention.qk_norm = QkNorm::kHead;
    attention.rope->interleaved = false;
    if (config.n_layers() == kLarge && attention.window == 0) attention.rope.reset();
  }
  return {};
}

}  // namespace

extern const Architecture kExaone4 = {
    .info = {.name = "exaone4",
             .networks = "EXAONE 4",
             .traits = "norms behind the parts only; a norm on each query and key head; with 64 "
                       "layers a window in three of four, and no rotation in the others; NeoX "
                       "rotation"},
    .complete = CompleteExaone4};

}  // namespace foretoken::model::arch
