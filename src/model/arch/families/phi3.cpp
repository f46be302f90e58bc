// SPDX-License-Identifier: Apache-2.0
// One matrix for queries, keys and values, one for gate and up. A part of each head rotates, with
// factors for short or for long contexts.
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status CompletePhi3(const MetadataReader&, ModelConfig& config) {
  for (LayerConfig& layer : config.layers) {
    RopeConfig& rope = *layer.attention().rope;
    rope.interleaved = false;
    rope.factors = "rope_factors_short";
    rope.long_factors = "rope_factors_long";
    layer.ffn().gate_in_up = true;
  }
  return {};
}

}  // namespace

extern const Architecture kPhi3 = {
    .info = {.name = "phi3",
             .networks = "Phi 3 and 3.5 (dense), Phi 4 mini",
             .traits =
                 "`attn_qkv` and `ffn_up` hold several matrices; `rope_factors_long` where the "
                 "context exceeds `rope.scaling.original_context_length`, else "
                 "`rope_factors_short`; NeoX rotation of `rope.dimension_count` dimensions; "
                 "`attention.sliding_window` is ignored"},
    .complete = CompletePhi3};

}  // namespace foretoken::model::arch
