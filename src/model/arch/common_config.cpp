// SPDX-License-Identifier: Apache-2.0
#include "model/arch/common_config.h"

#include <fmt/format.h>

#include "foretoken/options.h"

namespace foretoken::model {
namespace {

Status ReadScaling(const MetadataReader& read, RopeConfig& rope) {
  FORETOKEN_TRY(const double old_linear, read.Positive("rope.scale_linear", 1));
  FORETOKEN_TRY(const double factor, read.Positive("rope.scaling.factor", old_linear));
  const std::string* kind = read.String("rope.scaling.type");
  const std::string type = kind != nullptr ? *kind : (factor != 1 ? "linear" : "none");
  // longrope: the factors are in tensors.
  if (type != "none" && type != "linear" && type != "yarn" && type != "longrope")
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: '{}' is not supported; known are none, linear, yarn, longrope",
                            Shown(read.Key("rope.scaling.type")), Shown(type)));
  if (type != "none") rope.freq_scale = 1 / factor;
  rope.yarn = type == "yarn";
  return {};
}

Result<RopeConfig> ReadRope(const MetadataReader& read, int head_dim, int context_length) {
  RopeConfig rope;
  FORETOKEN_TRY(rope.n_rot, read.Size("rope.dimension_count", head_dim, head_dim));
  if (rope.n_rot % 2 != 0)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} is odd", read.Key("rope.dimension_count"), rope.n_rot));
  FORETOKEN_TRY(rope.freq_base, read.Positive("rope.freq_base", 10000));
  FORETOKEN_CHECK_OK(ReadScaling(read, rope));
  FORETOKEN_TRY(rope.original_context,
                read.Size("rope.scaling.original_context_length", 1 << 30, context_length));
  FORETOKEN_TRY(rope.attention_factor, read.Positive("rope.scaling.attn_factor", 1));
  FORETOKEN_TRY(rope.yarn_beta_fast, read.Positive("rope.scaling.yarn_beta_fast", 32));
  FORETOKEN_TRY(rope.yarn_beta_slow, read.Positive("rope.scaling.yarn_beta_slow", 1));
  FORETOKEN_TRY(rope.yarn_log_multiplier, read.NotNegative("rope.scaling.yarn_log_multiplier", 0));
  FORETOKEN_TRY(rope.yarn_ext_factor, read.Positive("rope.scaling.yarn_ext_factor", 1));
  return rope;
}

// REQUIRES: the numbers of heads are set.
Status ReadHeadSize(const MetadataReader& read, int dim, bool latent, AttentionConfig& attention) {
  if (attention.n_heads % attention.n_kv_heads != 0)
    return Fail(ErrorCode::kInvalidFile, fmt::format("{}: {} heads cannot share {} key-value heads",
                                                     read.Key("attention.head_count"),
                                                     attention.n_heads, attention.n_kv_heads));
  if (!read.Int("attention.key_length") && dim % attention.n_heads != 0)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} is not a multiple of {} heads", read.Key("embedding_length"),
                            dim, attention.n_heads));
  FORETOKEN_TRY(attention.head_dim,
                read.Size("attention.key_length", 1024, dim / attention.n_heads));
  FORETOKEN_TRY(const int value_length,
                read.Size("attention.value_length", 1024, attention.head_dim));
  if (value_length != attention.head_dim && !latent)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: {} differs from the key length {}, which is not supported",
                            read.Key("attention.value_length"), value_length, attention.head_dim));
  if (attention.head_dim % 8 != 0)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("head size {}: not a multiple of 8, which is not supported",
                            attention.head_dim));
  return {};
}

Status ReadLayers(const MetadataReader& read, int blocks, MixerKinds kinds, ModelConfig& c) {
  FORETOKEN_TRY(const auto widths, read.SizesByLayer("feed_forward_length", blocks, 1 << 19, {},
                                                     kinds.single_parts ? 0 : 1));
  FORETOKEN_TRY(const auto heads, read.SizesByLayer("attention.head_count", blocks, 1 << 12));
  FORETOKEN_TRY(const auto kv_heads, read.SizesByLayer("attention.head_count_kv", blocks, 1 << 12,
                                                       heads, kinds.recurrent ? 0 : 1));
  FORETOKEN_TRY(c.context_length, read.Size("context_length", kMaxTextTokens));
  for (std::size_t i = 0; i < widths.size(); ++i) {
    AttentionConfig attention = {.n_heads = heads[i], .n_kv_heads = kv_heads[i]};
    if (kv_heads[i] != 0) {
      FORETOKEN_CHECK_OK(ReadHeadSize(read, c.dim, kinds.latent, attention));
      FORETOKEN_TRY(attention.rope, ReadRope(read, attention.head_dim, c.context_length));
    }
    c.layers.push_back({.block = static_cast<int>(i),
                        .mixer = std::move(attention),
                        .feed_forward = GatedFfnConfig{.width = widths[i]}});
  }
  return {};
}

}  // namespace

Result<ModelConfig> ReadCommonConfig(const MetadataReader& read, MixerKinds kinds) {
  ModelConfig c;
  c.architecture = read.architecture();
  FORETOKEN_TRY(const int blocks, read.Size("block_count", 1024));
  const std::int64_t next = kinds.next_alone ? 0 : read.Int("nextn_predict_layers").value_or(0);
  if (next < 0 || next >= blocks)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} is out of range (0 to {})", read.Key("nextn_predict_layers"),
                            next, blocks - 1));
  c.n_next_layers = static_cast<int>(next);
  FORETOKEN_TRY(c.dim, read.Size("embedding_length", 1 << 17));
  FORETOKEN_CHECK_OK(ReadLayers(read, blocks, kinds, c));
  FORETOKEN_TRY(const double eps, read.Positive("attention.layer_norm_rms_epsilon", 1e-5));
  c.norm_eps = static_cast<float>(eps);
  return c;
}

}  // namespace foretoken::model
