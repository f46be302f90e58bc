// SPDX-License-Identifier: Apache-2.0
#include "train/network_config.h"

#include <fmt/format.h>

#include <algorithm>

namespace foretoken::train {

Result<NetworkConfig> NetworkConfigOf(const model::ModelConfig& model) {
  const model::LayerConfig& first = model.layers.front();
  const auto* grouped = std::get_if<model::AttentionConfig>(&first.mixer);
  const model::AttentionConfig attention = grouped == nullptr ? model::AttentionConfig{} : *grouped;
  const bool alike = std::all_of(model.layers.begin(), model.layers.end(), [&](const auto& layer) {
    return layer.mixer == first.mixer && layer.feed_forward == first.feed_forward &&
           layer.residual_scale == 1;
  });
  // What the trainer's own network has; the rest must be as in these.
  model::AttentionConfig known = {.n_heads = attention.n_heads,
                                  .n_kv_heads = attention.n_kv_heads,
                                  .head_dim = attention.head_dim,
                                  .rope = attention.rope,
                                  .qkv_bias = attention.qkv_bias};
  if (attention.qk_norm == model::QkNorm::kHead) known.qk_norm = attention.qk_norm;
  if (!alike || first.experts() != nullptr || !attention.rope || attention != known ||
      first.ffn() != model::GatedFfnConfig{.width = first.ffn().width} ||
      model.embedding_scale != 1 || model.logit_scale != 1 || model.logit_soft_cap != 0 ||
      model.layer_input != 0)
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format(
            "architecture '{}': training does not know layers that differ from "
            "each other, experts, layers without rotation, windows, or scales; use a llama, qwen2 "
            "or qwen3 model",
            model.architecture));
  return NetworkConfig{.architecture = model.architecture,
                       .n_layers = model.n_layers(),
                       .n_next_layers = model.n_next_layers,
                       .dim = model.dim,
                       .ff = first.ffn().width,
                       .n_heads = attention.n_heads,
                       .n_kv_heads = attention.n_kv_heads,
                       .head_dim = attention.head_dim,
                       .vocabulary = model.vocabulary,
                       .context_length = model.context_length,
                       .norm_eps = model.norm_eps,
                       .rope = *attention.rope,
                       .qkv_bias = attention.qkv_bias,
                       .qk_norm = attention.qk_norm == model::QkNorm::kHead};
}

}  // namespace foretoken::train
