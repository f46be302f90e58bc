// SPDX-License-Identifier: Apache-2.0
// Latent attention with an interleaved rotation; the first layers are dense, the others mixtures of
// experts with a shared part, which softmax or sigmoids choose, from groups and with a bias in some
// files.
#include <fmt/format.h>

#include <cmath>

#include "model/arch/experts_config.h"
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

// What kernels ask of the widths: results of heads lie side by side and are written 16 at a time,
// and each head's latent vectors are quantised by itself.
constexpr int kRankUnit = 32, kValueUnit = 16;

Status CheckUnit(const MetadataReader& read, const char* key, int size, int unit) {
  if (size % unit == 0) return {};
  return Fail(ErrorCode::kUnsupported,
              fmt::format("{}: {} is not a multiple of {}, which is not supported", read.Key(key),
                          size, unit));
}

// A length that holds `part` and more. Error: it does not.
Result<int> LengthBeside(const MetadataReader& read, const char* key, int part) {
  FORETOKEN_TRY(const int length, read.Size(key, 1024));
  if (length > part) return length - part;
  return Fail(ErrorCode::kInvalidFile,
              fmt::format("{}: {} does not hold the {} rotated dimensions and more", read.Key(key),
                          length, part));
}

// Where yarn stretches the positions, files say how far scores grow with it (for DeepSeek-V2 and
// later by the square of 1 + yarn_log_multiplier ln(factor)), and cosines and sines stay as they are.
// A file that does not say it has both: scores and cosines grow by 1 + 0.1 ln(factor).
float ScaleOfScores(RopeConfig& rope, int query_dim) {
  double magnitude = rope.attention_factor;
  if (rope.yarn) {
    const double log_factor = std::log(1 / rope.freq_scale);
    const bool says = rope.yarn_log_multiplier != 0;
    magnitude *= 1 + (says ? rope.yarn_log_multiplier : 0.1) * log_factor;
    if (says) rope.yarn_log_multiplier = 1;
  }
  return static_cast<float>(magnitude * magnitude / std::sqrt(static_cast<double>(query_dim)));
}

Result<LatentAttentionConfig> ReadLatent(const MetadataReader& read,
                                         const AttentionConfig& common) {
  LatentAttentionConfig latent = {.n_heads = common.n_heads, .rope = *common.rope};
  FORETOKEN_TRY(const int n_rot, read.Size("rope.dimension_count", latent.rope.n_rot));  // needed
  FORETOKEN_TRY(latent.rank, read.Size("attention.kv_lora_rank", 1024));
  // Older files hold the lengths of a head under the other keys; then no key has that of the latents.
  const bool older = !read.Int("attention.key_length_mla");
  FORETOKEN_TRY(latent.head_dim, older ? LengthBeside(read, "attention.key_length", n_rot)
                                       : LengthBeside(read, "attention.key_length_mla", n_rot));
  FORETOKEN_TRY(latent.value_dim, older ? read.Size("attention.value_length", 1024)
                                        : read.Size("attention.value_length_mla", 1024));
  if (!older && read.Int("attention.key_length") && common.head_dim != latent.key_dim())
    return Fail(
        ErrorCode::kInvalidFile,
        fmt::format("{}: {} and {} rotated dimensions are not the key length {}",
                    read.Key("attention.kv_lora_rank"), latent.rank, n_rot, common.head_dim));
  if (read.Int("attention.q_lora_rank").value_or(0) != 0) {
    FORETOKEN_TRY(latent.q_rank, read.Size("attention.q_lora_rank", 1 << 16));
  }
  FORETOKEN_CHECK_OK(CheckUnit(read, "attention.kv_lora_rank", latent.rank, kRankUnit));
  FORETOKEN_CHECK_OK(CheckUnit(read, "attention.value_length_mla", latent.value_dim, kValueUnit));
  latent.scale = ScaleOfScores(latent.rope, latent.query_dim());
  return latent;
}

Status CompleteDeepSeek2(const MetadataReader& read, ModelConfig& config) {
  for (LayerConfig& layer : config.layers) {
    FORETOKEN_TRY(layer.mixer, ReadLatent(read, layer.attention()));
  }
  FORETOKEN_TRY(ExpertsConfig experts, ReadExperts(read, config));
  experts.selection_bias = true;
  FORETOKEN_CHECK_OK(ReadRouter(read, experts));
  FORETOKEN_TRY(const int shared, read.Size("expert_shared_count", 64, 1));
  experts.shared_width = shared * experts.width;
  return UseExperts(read, experts, config);
}

}  // namespace

extern const Architecture kDeepSeek2 = {
    .info = {.name = "deepseek2",
             .networks = "DeepSeek V2, V2 Lite, V3, R1; Kimi K2; GLM 4.7 Flash (mixtures)",
             .traits = "latent attention, of which the cache keeps one short vector a position; "
                       "the first blocks dense; experts chosen by softmax or sigmoids, in groups "
                       "and with a bias where the file says so, and a shared part"},
    .complete = CompleteDeepSeek2,
    .latent = true};

}  // namespace foretoken::model::arch
