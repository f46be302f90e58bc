// SPDX-License-Identifier: Apache-2.0
// Gated delta nets, and in every fourth block attention with an output gate, a norm on each query and
// key head, and NeoX rotation of a part of a head. The feed-forward part is dense or a mixture of
// experts, chosen by softmax, with a shared part that has a gate.
#include <fmt/format.h>

#include "model/arch/experts_config.h"
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

// Texts have one position for all sections. A pair that no section covers would not be rotated.
Status CheckSections(const MetadataReader& read, const RopeConfig& rope) {
  const auto* sections = read.Ints("rope.dimension_sections");
  if (sections == nullptr) {
    if (!read.Int("rope.dimension_sections")) return {};
    return Fail(ErrorCode::kInvalidFile, fmt::format("{}: one number is not a list of sections",
                                                     read.Key("rope.dimension_sections")));
  }
  for (int pair = 0; pair < rope.n_rot / 2; ++pair) {
    const auto section = static_cast<std::size_t>(pair % 3);
    if (section >= sections->size() || (*sections)[section] <= pair / 3)
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("{}: no section covers pair {} of {}, which is not supported",
                              read.Key("rope.dimension_sections"), pair, rope.n_rot / 2));
  }
  return {};
}

Result<DeltaNetConfig> ReadDeltaNet(const MetadataReader& read) {
  DeltaNetConfig delta;
  FORETOKEN_TRY(delta.taps, read.Size("ssm.conv_kernel", kMostTaps));
  FORETOKEN_TRY(delta.head_dim, read.Size("ssm.state_size", 256));
  FORETOKEN_TRY(delta.n_key_heads, read.Size("ssm.group_count", 1 << 10));
  FORETOKEN_TRY(delta.n_value_heads, read.Size("ssm.time_step_rank", 1 << 10));
  FORETOKEN_TRY(const int values, read.Size("ssm.inner_size", 1 << 18));
  if (delta.head_dim % 32 != 0)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: {} is not a multiple of 32, which is not supported",
                            read.Key("ssm.state_size"), delta.head_dim));
  if (delta.n_value_heads % delta.n_key_heads != 0)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} value heads cannot share {} key heads",
                            read.Key("ssm.group_count"), delta.n_value_heads, delta.n_key_heads));
  if (values != delta.value_dim())
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("{}: {} is not {} heads of {}, which is not supported",
                    read.Key("ssm.inner_size"), values, delta.n_value_heads, delta.head_dim));
  return delta;
}

// The blocks of an MTP head have attention.
Status CompleteLayers(const MetadataReader& read, bool grouped, ModelConfig& config) {
  FORETOKEN_TRY(DeltaNetConfig delta, ReadDeltaNet(read));
  delta.grouped = grouped;
  FORETOKEN_TRY(const int interval, read.Size("full_attention_interval", 1024, 4));
  FORETOKEN_CHECK_OK(CheckSections(read, *config.layers.front().attention().rope));
  for (int i = 0; i < config.n_layers(); ++i) {
    LayerConfig& layer = config.layers[static_cast<std::size_t>(i)];
    layer.ffn().norm = "post_attention_norm";
    if (i < config.n_layers() - config.n_next_layers && (i + 1) % interval != 0) {
      layer.mixer = delta;
      continue;
    }
    AttentionConfig& attention = layer.attention();
    attention.rope->interleaved = false;
    attention.qk_norm = QkNorm::kHead;
    attention.output_gate = true;
  }
  return {};
}

Status CompleteExperts(const MetadataReader& read, ModelConfig& config) {
  FORETOKEN_TRY(ExpertsConfig experts, ReadExperts(read, config));
  experts.normalised = true;
  experts.norm = "post_attention_norm";
  FORETOKEN_TRY(experts.shared_width, read.Size("expert_shared_feed_forward_length", 1 << 19,
                                                config.layers.front().ffn().width));
  experts.shared_gate = true;
  return UseExperts(read, experts, config);
}

Status CompleteQwen35(const MetadataReader& read, ModelConfig& config) {
  return CompleteLayers(read, false, config);
}

Status CompleteQwen35Moe(const MetadataReader& read, ModelConfig& config) {
  FORETOKEN_CHECK_OK(CompleteLayers(read, false, config));
  return CompleteExperts(read, config);
}

Status CompleteQwen3Next(const MetadataReader& read, ModelConfig& config) {
  FORETOKEN_CHECK_OK(CompleteLayers(read, true, config));
  return CompleteExperts(read, config);
}

}  // namespace

extern const Architecture kQwen35 = {
    .info = {.name = "qwen35",
             .networks = "Qwen 3.5 and 3.6 (dense)",
             .traits = "gated delta nets; in every fourth block attention with an output gate, a "
                       "norm on each query and key head and NeoX rotation of "
                       "`rope.dimension_count` dimensions; `post_attention_norm` stands before the "
                       "feed-forward part"},
    .complete = CompleteQwen35};

extern const Architecture kQwen35Moe = {
    .info = {.name = "qwen35moe",
             .networks = "Qwen 3.5 and 3.6 mixtures (35B-A3B, 122B-A10B)",
             .traits =
                 "as qwen35; experts chosen by softmax, their weights divided by the sum, and "
                 "a shared part that is multiplied by a sigmoid"},
    .complete = CompleteQwen35Moe};

extern const Architecture kQwen3Next = {
    .info = {.name = "qwen3next",
             .networks = "Qwen 3 Next (80B-A3B)",
             .traits =
                 "as qwen35moe; neighbouring value heads share a key head, and `ssm_ba` holds "
                 "the rows of beta and alpha"},
    .complete = CompleteQwen3Next};

}  // namespace foretoken::model::arch
