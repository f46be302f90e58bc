// SPDX-License-Identifier: Apache-2.0
// As gemma.h says, with norms of query, key and value heads. Layers with a window have heads and a
// rotation of their own; the others may use keys as values.
#include <fmt/format.h>

#include "model/arch/families/gemma.h"
#include "model/arch/registry.h"
#include "model/arch/windows.h"

namespace foretoken::model::arch {
namespace {

Status Refuse(const MetadataReader& read, std::string_view key) {
  if (read.Int(key).value_or(0) == 0) return {};
  return Fail(ErrorCode::kUnsupported,
              fmt::format("{} = {}: layers that share a cache and embeddings of layers are not "
                          "supported yet; use a Gemma 4 model without them",
                          read.Key(key), *read.Int(key)));
}

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

Status Complete(const MetadataReader& read, ModelConfig& config) {
  FORETOKEN_CHECK_OK(Refuse(read, "attention.shared_kv_layers"));
  FORETOKEN_CHECK_OK(Refuse(read, "embedding_length_per_layer_input"));
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

}  // namespace

extern const Architecture kGemma4 = {
    .info = {.name = "gemma4",
             .networks = "Gemma 4 (dense, without embeddings of layers)",
             .traits = "as gemma3, with a norm of value heads, keys as values where `attn_v` is "
                       "missing, `layer_output_scale`, scores that are not scaled; layers with a "
                       "window have the head size `attention.key_length_swa`; `rope_freqs` in the "
                       "others"},
    .complete = Complete};

}  // namespace foretoken::model::arch
