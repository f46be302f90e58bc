// SPDX-License-Identifier: Apache-2.0
// train/networks/network_config.h: the sizes of the networks that training makes: llama and
// LFM 2 models, and the blocks of heads and block drafters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "foretoken/result.h"
#include "model/config.h"

namespace foretoken::train {

struct NetworkConfig {
  std::string architecture;
  int n_layers = 0;
  int dim = 0;  // width of the residual stream
  int ff = 0;   // width of the gated feed-forward part
  int n_heads = 0, n_kv_heads = 0, head_dim = 0;
  int vocabulary = 0;  // rows of the embedding and of the output head
  int context_length = 0;
  float norm_eps = 1e-5f;
  model::RopeConfig rope;
  std::vector<float> rope_factors = {};  // divide the frequencies; empty: none
  bool qk_norm = false;                  // a norm on each query and key head
  std::string output_norm = "output_norm";
  // Layers with a gated convolution over the newest `taps` positions in place of attention (LFM 2).
  std::vector<int> convolutions = {};
  int taps = 0;

  // What only the blocks of MTP heads may have, because they are as their target's blocks.
  bool qkv_bias = false;
  bool output_gate = false;    // as of model::AttentionConfig
  double attention_scale = 0;  // of the scores; 0: 1 / sqrt(head_dim)
  model::GateFunction function = model::GateFunction::kSilu;  // or kGelu
  double residual_scale = 1;  // what both parts add to the residual stream is multiplied by this
  std::string ffn_norm = "ffn_norm";
  std::string attention_post_norm = "", ffn_post_norm = "";  // empty: none
  int window = 0;                                            // positions that a row sees; 0: all
  // In place of grouped heads. Then there is one key head, head_dim is the size of a key, and its
  // last n_rot numbers rotate.
  std::optional<model::LatentAttentionConfig> latent = {};

  bool Convolves(int layer) const;
};

// A block with attention that is as wide as the target's blocks, with as many heads and a
// feed-forward part of the width that a token uses there. Rotation as of `interleaved`.
NetworkConfig BlockLike(const model::ModelConfig& target, bool interleaved);

// The block of an MTP head, as the engine runs it (model::MtpConfigFromMetadata). Errors:
// kUnsupported (a part that training does not know).
[[nodiscard]] Result<NetworkConfig> NextBlock(const model::ModelConfig& next);

// The number of the target's last block whose attention has keys and values of its own for each
// head; none if there is no such block.
std::optional<int> LastAttention(const model::ModelConfig& target);

}  // namespace foretoken::train
