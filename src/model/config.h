// SPDX-License-Identifier: Apache-2.0
// model/config.h: a network as data. Architectures differ in these fields and in their tensor
// names, not in code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
};

// A drafter of one block that is fed by its target's hidden states (its features).
//   kEagle: EAGLE-3 (Li et al. 2025): the residual stream before some of the target's blocks, mixed
//           by `fc`, beside the token's embedding in the block's queries, keys and values.
//   kMtp: next-n prediction (DeepSeek-AI 2024, "DeepSeek-V3"): the target's normed last state and
//         the embedding, mixed by `eh_proj`, through an ordinary block.
enum class HeadKind { kEagle, kMtp };

struct HeadConfig {
  HeadKind kind = HeadKind::kEagle;
  int block = 0;                      // index of its block in the file
  int target_dim = 0;                 // width of the target's residual stream
  int target_layers = 0;              // blocks of the target; 0: the file does not say
  std::vector<int> feature_layers;    // kEagle: the target's blocks whose input is read; n_layers
                                      // stands for the last block's output
  bool norm_before_residual = false;  // kEagle: the residual stream begins with the normed feature
  bool norm_before_fc = false;        // kEagle: the features are normed before they are mixed
};

struct ModelConfig {
  std::string architecture;
  int n_layers = 0;       // without next-n blocks
  int n_next_layers = 0;  // blocks of an MTP head behind them
  int dim = 0;            // width of the residual stream
  int ff = 0;             // width of the gated feed-forward layer
  int n_heads = 0, n_kv_heads = 0, head_dim = 0;
  int vocabulary = 0;  // rows of the embedding and of the output head
  int context_length = 0;
  float norm_eps = 1e-5f;
  RopeConfig rope;
  bool qkv_bias = false;           // qwen2; optional in llama files
  bool qk_norm = false;            // qwen3: RMS norm of each query and key head before the rotation
  std::optional<HeadConfig> head;  // this is no whole model but a head: n_layers is 1
};

}  // namespace foretoken::model
