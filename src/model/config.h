// SPDX-License-Identifier: Apache-2.0
// model/config.h: a network as data: a list of layers, what stands before them, and what stands
// behind them. Networks differ in these fields and in the names of their tensors, not in code.
//
// A layer is a mixer, which lets positions see each other, and a feed-forward part. Layers may
// differ from each other in every number.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace foretoken::model {

struct RopeConfig {
  bool interleaved = true;  // rotates pairs (2i, 2i + 1); else (i, i + n_rot / 2), the NeoX layout
  int n_rot = 0;            // rotated dimensions of a head, even
  double freq_base = 10000;
  double freq_scale = 1;  // linear and yarn scaling: 1 / factor
  bool yarn = false;      // Peng et al. 2023, "YaRN": interpolates slow dimensions, keeps fast ones
  int original_context = 0;  // yarn: the length the model was trained for
  double yarn_beta_fast = 32, yarn_beta_slow = 1;
  double yarn_ext_factor = 1;
  double attention_factor = 1;

  bool operator==(const RopeConfig&) const = default;
};

// Grouped-query attention over the positions up to the row's own.
struct AttentionConfig {
  int n_heads = 0, n_kv_heads = 0, head_dim = 0;
  std::optional<RopeConfig> rope;  // none: the layer does not encode positions
  int window = 0;  // positions that a row sees, its own included; 0: all. Others are refused.
  bool qkv_bias = false;  // the file must have biases of q, k and v; it may have them in any case
  bool qk_norm = false;   // an RMS norm of each query and key head before the rotation
  float scale = 0;        // of the scores; 0: 1 / sqrt(head_dim)
  std::string_view norm = "attn_norm";  // name of the norm before it; empty: the input is normed

  bool operator==(const AttentionConfig&) const = default;
};

// silu(Wgate h) * (Wup h), then Wdown.
struct GatedFfnConfig {
  int width = 0;
  std::string_view norm = "ffn_norm";  // name of the norm before it

  bool operator==(const GatedFfnConfig&) const = default;
};

using MixerConfig = std::variant<AttentionConfig>;
using FeedForwardConfig = std::variant<GatedFfnConfig>;

struct LayerConfig {
  int block = 0;  // its tensors' names begin with "blk.<block>."
  MixerConfig mixer;
  FeedForwardConfig feed_forward;
  float residual_scale = 1;  // what both parts add to the residual stream is multiplied by this

  // REQUIRES: the part is of this kind.
  AttentionConfig& attention() { return std::get<AttentionConfig>(mixer); }
  const AttentionConfig& attention() const { return std::get<AttentionConfig>(mixer); }
  GatedFfnConfig& ffn() { return std::get<GatedFfnConfig>(feed_forward); }
  const GatedFfnConfig& ffn() const { return std::get<GatedFfnConfig>(feed_forward); }
};

// A drafter of one layer that reads its target's hidden states (its features).
//   kEagle: EAGLE-3 (Li et al. 2025): the residual stream before some of the target's layers, mixed
//           by `fc`, stands beside the token's embedding in the input of the layer's attention.
//   kMtp: next-n prediction (DeepSeek-AI 2024, "DeepSeek-V3"): `eh_proj` mixes the target's normed
//         last state with the embedding, and an ordinary layer follows.
enum class HeadKind { kEagle, kMtp };

struct HeadConfig {
  HeadKind kind = HeadKind::kEagle;
  int target_dim = 0;                 // width of the target's residual stream
  int target_layers = 0;              // layers of the target; 0: the file does not say
  std::vector<int> feature_layers;    // kEagle: the layers of the target whose input is read; the
                                      // number of layers stands for the last one's output
  bool norm_before_residual = false;  // kEagle: the residual stream begins with the normed feature
  bool norm_before_fc = false;        // kEagle: the features are normed before they are mixed
};

struct ModelConfig {
  std::string architecture;
  std::vector<LayerConfig> layers;  // without those of an MTP head
  int n_next_layers = 0;            // the layers of an MTP head behind them
  int dim = 0;                      // width of the residual stream
  int vocabulary = 0;               // rows of the embedding and of the output head
  int context_length = 0;
  float norm_eps = 1e-5f;
  float embedding_scale = 1;       // embeddings are multiplied by this
  float logit_scale = 1;           // logits are multiplied by this
  std::optional<HeadConfig> head;  // this is not a whole model but a head with one layer

  int n_layers() const { return static_cast<int>(layers.size()); }
};

}  // namespace foretoken::model
