// SPDX-License-Identifier: Apache-2.0
// Norms only behind the parts, and one norm for all heads of the queries, one for those of the keys.
// OLMo 3: a window in three of four layers, whose rotation is not scaled.
#include "model/arch/registry.h"
#include "model/arch/windows.h"

namespace foretoken::model::arch {
namespace {

Status CompleteOlmo2(const MetadataReader& read, ModelConfig& config) {
  FORETOKEN_CHECK_OK(ReadWindows(read, 4, config));
  for (LayerConfig& layer : config.layers) {
    AttentionConfig& attention = layer.attention();
    attention.norm = layer.ffn().norm = "";
    attention.post_norm = "post_attention_norm";
    layer.ffn().post_norm = "post_ffw_norm";
    attention.qk_norm = QkNorm::kRow;
    RopeConfig& rope = *attention.rope;
    rope.interleaved = false;
    if (attention.window != 0)
      rope = RopeConfig{.interleaved = false, .n_rot = rope.n_rot, .freq_base = rope.freq_base};
  }
  return {};
}

}  // namespace

extern const Architecture kOlmo2 = {
    .info = {.name = "olmo2",
             .networks = "OLMo 2 and 3",
             .traits = "norms behind the parts only; one norm for all query heads and one for all "
                       "key heads; OLMo 3: a window in three of four layers, yarn in the others; "
                       "NeoX rotation"},
    .complete = CompleteOlmo2};

}  // namespace foretoken::model::arch
