// SPDX-License-Identifier: Apache-2.0
// As gemma.h says, with norms of query, key and value heads. Layers with a window have heads and a
// rotation of their own; the others may use keys as values. The last layers may share caches, and
// each layer may have an input of its own.
#include <fmt/format.h>

#include <cmath>

#include "model/arch/experts_config.h"
#include "model/arch/families/gemma.h"
#include "model/arch/registry.h"
#include "model/arch/windows.h"

namespace foretoken::model::arch {
namespace {

// The heads of a layer with a window.
Status SetLocal(const MetadataReader& read, AttentionConfig& attention) {
  constexpr int kMost = 1024;
  FORETOKEN_TRY(attention.head_dim,
                read.Size("attention.key_length_swa", kMost, attention.head_dim));
  FORETOKEN_TRY(const int values,
                read.Size("attention.value_length_swa", kMost, attention.head_dim));
  if (values != attention.head_dim || values % 8 != 0)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: heads of {} and values of {} are not supported",
                            read.Key("attention.value_length_swa"), attention.head_dim, values));
  RopeConfig rope{.interleaved = false, .factors = ""};
  FORETOKEN_TRY(rope.n_rot,
                read.Size("rope.dimension_count_swa", attention.head_dim, attention.head_dim));
  if (rope.n_rot % 2 != 0)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} is odd", read.Key("rope.dimension_count_swa"), rope.n_rot));
  FORETOKEN_TRY(rope.freq_base, read.Positive("rope.freq_base_swa", 10000));
  attention.rope = rope;
  return {};
}

constexpr std::string_view kShared = "attention.shared_kv_layers";

// The last layers read the cache of the last layer of their kind, with a window or without, that
// stands before all of them.
Status ShareCaches(const MetadataReader& read, ModelConfig& config) {
  const std::int64_t shared = read.Int(kShared).value_or(0);
  if (shared < 0 || shared >= config.n_layers())
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} is out of range (0 to {})", read.Key(kShared), shared,
                            config.n_layers() - 1));
  const int first = config.n_layers() - static_cast<int>(shared);
  for (int i = first; i < config.n_layers(); ++i) {
    const auto at = [&](int layer) -> AttentionConfig& {
      return config.layers[static_cast<std::size_t>(layer)].attention();
    };
    AttentionConfig& attention = at(i);
    int source = first - 1;
    while (source >= 0 && at(source).window != attention.window) --source;
    if (source < 0 || at(source).n_kv_heads != attention.n_kv_heads ||
        at(source).head_dim != attention.head_dim)
      return Fail(
          ErrorCode::kInvalidFile,
          fmt::format("{}: {}: no layer before layer {} has a cache that layer {} can read; "
                      "the file is damaged",
                      read.Key(kShared), shared, first, i));
    attention.cache_layer = source;
  }
  return {};
}

// Embeddings of layers.
Status SetLayerInput(const MetadataReader& read, ModelConfig& config) {
  constexpr std::string_view kWidth = "embedding_length_per_layer_input";
  if (read.Int(kWidth).value_or(0) == 0) return {};
  FORETOKEN_TRY(config.layer_input, read.Size(kWidth, 1 << 14));
  return {};
}

// Every layer has experts beside its dense part, each with norms of its own.
Status AddExperts(const MetadataReader& read, ModelConfig& config) {
  if (!HasExperts(read)) return {};
  FORETOKEN_TRY(ExpertsConfig experts, ReadExperts(read, config));
  experts.normalised = experts.router_norm = experts.scales = true;
  experts.function = GateFunction::kGelu;
  experts.norm = "pre_ffw_norm_2";
  experts.post_norm = "post_ffw_norm_2";
  for (LayerConfig& layer : config.layers) {
    layer.dense_part = layer.ffn();
    layer.dense_part->post_norm = "post_ffw_norm_1";
    layer.feed_forward = experts;
    layer.sum_norm = "post_ffw_norm";
  }
  return {};
}

// What a network and its assistant have in common.
Status CompleteBlocks(const MetadataReader& read, ModelConfig& config) {
  SetGemma(config);
  FORETOKEN_TRY(const double cap, read.NotNegative("final_logit_softcapping", 0));
  config.logit_soft_cap = static_cast<float>(cap);
  FORETOKEN_CHECK_OK(ReadWindows(read, 6, config));
  for (LayerConfig& layer : config.layers) {
    AttentionConfig& attention = layer.attention();
    attention.qk_norm = QkNorm::kHead;
    attention.v_norm = attention.keys_may_be_values = true;
    attention.scale = 1;
    layer.output_scale = true;
    if (attention.window != 0) FORETOKEN_CHECK_OK(SetLocal(read, attention));
  }
  return {};
}

Status CompleteGemma4(const MetadataReader& read, ModelConfig& config) {
  if (config.n_next_layers != 0)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: next-n blocks of this architecture are not supported",
                            read.Key("nextn_predict_layers")));
  FORETOKEN_CHECK_OK(CompleteBlocks(read, config));
  FORETOKEN_CHECK_OK(AddExperts(read, config));
  FORETOKEN_CHECK_OK(SetLayerInput(read, config));
  return ShareCaches(read, config);
}

}  // namespace

Status CompleteAssistant(const MetadataReader& read, ModelConfig& config) {
  FORETOKEN_CHECK_OK(CompleteBlocks(read, config));
  FORETOKEN_TRY(config.head->target_dim, read.Size("embedding_length_out", 1 << 17));
  config.embedding_scale = std::sqrt(static_cast<float>(config.head->target_dim));
  for (LayerConfig& layer : config.layers) {
    AttentionConfig& attention = layer.attention();
    attention.cache_layer = 0;
    if (attention.window == 0) continue;
    if (--attention.window == 0)
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("{}: a window of 1 position is not supported",
                              read.Key("attention.sliding_window")));
  }
  return {};
}

extern const Architecture kGemma4 = {
    .info = {.name = "gemma4",
             .networks = "Gemma 4 (dense, E2B, E4B, mixtures)",
             .traits = "as gemma3, with a norm of value heads, keys as values where `attn_v` is "
                       "missing, `layer_output_scale`, scores that are not scaled; layers with a "
                       "window have the head size `attention.key_length_swa`; `rope_freqs` in the "
                       "others; the last `attention.shared_kv_layers` layers read the cache of "
                       "an earlier one; `per_layer_token_embd` gives each layer an input of its "
                       "own; mixtures have experts beside the dense part"},
    .complete = CompleteGemma4};

}  // namespace foretoken::model::arch
