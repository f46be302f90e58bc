// SPDX-License-Identifier: Apache-2.0
// Biases on queries, keys and values; the norm before the feed-forward part has a name of its own.
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status CompleteSeedOss(const MetadataReader&, ModelConfig& config) {
  for (LayerConfig& layer : config.layers) {
    layer.attention().rope->interleaved = false;
    layer.ffn().norm = "post_attention_norm";
  }
  return {};
}

}  // namespace

extern const Architecture kSeedOss = {
    .info = {.name = "seed_oss",
             .networks = "Seed-OSS",
             .traits =
                 "biases of queries, keys and values; `post_attention_norm` stands before the "
                 "feed-forward part; NeoX rotation"},
    .complete = CompleteSeedOss};

}  // namespace foretoken::model::arch
