// SPDX-License-Identifier: Apache-2.0
#include "train/networks/network_config.h"

#include <fmt/format.h>

#include <algorithm>

namespace foretoken::train {
namespace {

// The largest usual size of a head that divides the width.
int HeadSize(int dim) {
  for (const int size : {128, 64, 32, 16})
    if (dim % size == 0 && dim / size >= 2) return size;
  return 8;
}

int WidthOfFeedForward(const model::LayerConfig& layer, int dim) {
  if (const model::ExpertsConfig* experts = layer.experts())
    return experts->n_used * experts->width + experts->shared_width;
  const auto* dense = std::get_if<model::GatedFfnConfig>(&layer.feed_forward);
  return dense != nullptr ? dense->width : 3 * dim;
}

// What the trainer's block knows of attention; the rest must be as in these.
model::AttentionConfig KnownPart(const model::AttentionConfig& a) {
  model::AttentionConfig known = {.n_heads = a.n_heads,
                                  .n_kv_heads = a.n_kv_heads,
                                  .head_dim = a.head_dim,
                                  .rope = a.rope,
                                  .window = a.window,
                                  .qkv_bias = a.qkv_bias,
                                  .qk_norm_optional = a.qk_norm_optional,
                                  .scale = a.scale,
                                  .output_gate = a.output_gate,
                                  .post_norm = a.post_norm};
  if (a.qk_norm == model::QkNorm::kHead) known.qk_norm = a.qk_norm;
  return known;
}

bool IsKnownMixer(const model::MixerConfig& mixer) {
  if (std::holds_alternative<model::LatentAttentionConfig>(mixer)) return true;
  const auto* a = std::get_if<model::AttentionConfig>(&mixer);
  return a != nullptr && *a == KnownPart(*a) && a->rope;
}

bool IsKnown(const model::LayerConfig& layer) {
  const auto* f = std::get_if<model::GatedFfnConfig>(&layer.feed_forward);
  if (f == nullptr || !IsKnownMixer(layer.mixer)) return false;
  if (layer.beside || layer.dense_part || layer.output_scale) return false;
  return (f->function == model::GateFunction::kSilu || f->function == model::GateFunction::kGelu) &&
         f->gated && !f->gate_in_up && !f->bare_norm && !f->norm.empty();
}

}  // namespace

bool NetworkConfig::Convolves(int layer) const {
  return std::find(convolutions.begin(), convolutions.end(), layer) != convolutions.end();
}

std::optional<int> LastAttention(const model::ModelConfig& target) {
  for (int i = target.n_layers() - 1; i >= 0; --i) {
    const auto* a =
        std::get_if<model::AttentionConfig>(&target.layers[static_cast<std::size_t>(i)].mixer);
    if (a != nullptr && a->n_kv_heads > 0) return i;
  }
  return {};
}

NetworkConfig BlockLike(const model::ModelConfig& target, bool interleaved) {
  NetworkConfig c{.n_layers = 1,
                  .dim = target.dim,
                  .vocabulary = target.vocabulary,
                  .context_length = target.context_length,
                  .norm_eps = target.norm_eps};
  const auto last = LastAttention(target);
  const model::LayerConfig& layer =
      target.layers[static_cast<std::size_t>(last.value_or(target.n_layers() - 1))];
  c.ff = WidthOfFeedForward(layer, c.dim);
  c.head_dim = c.rope.n_rot = HeadSize(c.dim);
  c.n_heads = c.n_kv_heads = c.dim / c.head_dim;
  if (last) {
    const model::AttentionConfig& a = layer.attention();
    c.n_heads = a.n_heads, c.n_kv_heads = a.n_kv_heads;
    c.head_dim = c.rope.n_rot = a.head_dim;
    if (a.rope) c.rope.n_rot = a.rope->n_rot, c.rope.freq_base = a.rope->freq_base;
  }
  c.rope.interleaved = interleaved;
  return c;
}

Result<NetworkConfig> NextBlock(const model::ModelConfig& next) {
  const model::LayerConfig& layer = next.layers.front();
  if (!IsKnown(layer) || next.layer_input != 0)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("architecture '{}': an MTP head has a block like the model's own, and "
                            "training does not know one of its parts; train an EAGLE-3 head or a "
                            "block drafter",
                            next.architecture));
  const model::GatedFfnConfig& f = layer.ffn();
  NetworkConfig c{.architecture = next.architecture,
                  .n_layers = 1,
                  .dim = next.dim,
                  .ff = f.width,
                  .vocabulary = next.vocabulary,
                  .context_length = next.context_length,
                  .norm_eps = next.norm_eps,
                  .rope = *layer.rope(),
                  .function = f.function,
                  .residual_scale = layer.residual_scale,
                  .ffn_norm = std::string(f.norm),
                  .ffn_post_norm = std::string(f.post_norm)};
  if (const auto* latent = std::get_if<model::LatentAttentionConfig>(&layer.mixer)) {
    c.n_heads = latent->n_heads, c.n_kv_heads = 1, c.head_dim = latent->key_dim();
    c.attention_scale = latent->scale;
    c.latent = *latent;
    return c;
  }
  const model::AttentionConfig& a = layer.attention();
  c.n_heads = a.n_heads, c.n_kv_heads = a.n_kv_heads, c.head_dim = a.head_dim;
  c.qk_norm = a.qk_norm == model::QkNorm::kHead;
  c.qkv_bias = a.qkv_bias, c.output_gate = a.output_gate;
  c.attention_scale = a.scale;
  c.attention_post_norm = std::string(a.post_norm);
  c.window = a.window;
  return c;
}

}  // namespace foretoken::train
