// SPDX-License-Identifier: Apache-2.0
// model/config.h: a network as data. Architectures differ in these fields and in their tensor
// names, not in code.
#pragma once

#include <cstdint>
#include <string>

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

struct ModelConfig {
  std::string architecture;
  int n_layers = 0;
  int dim = 0;  // width of the residual stream
  int ff = 0;   // width of the gated feed-forward layer
  int n_heads = 0, n_kv_heads = 0, head_dim = 0;
  int vocabulary = 0;  // rows of the embedding and of the output head
  int context_length = 0;
  float norm_eps = 1e-5f;
  RopeConfig rope;
  bool qkv_bias = false;  // qwen2; optional in llama files
  bool qk_norm = false;   // qwen3: RMS norm of each query and key head before the rotation
};

}  // namespace foretoken::model
