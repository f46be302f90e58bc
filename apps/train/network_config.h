// SPDX-License-Identifier: Apache-2.0
// train/network_config.h: a network as the trainer knows it: llama-like, and all layers are alike.
#pragma once

#include <string>

#include "foretoken/result.h"
#include "model/config.h"

namespace foretoken::train {

struct NetworkConfig {
  std::string architecture;
  int n_layers = 0;  // without next-n layers
  int n_next_layers = 0;
  int dim = 0;  // width of the residual stream
  int ff = 0;   // width of the gated feed-forward part
  int n_heads = 0, n_kv_heads = 0, head_dim = 0;
  int vocabulary = 0;  // rows of the embedding and of the output head
  int context_length = 0;
  float norm_eps = 1e-5f;
  model::RopeConfig rope;
  bool qkv_bias = false, qk_norm = false;
};

// Errors: kUnsupported (layers that differ, a layer that does not rotate, scales).
[[nodiscard]] Result<NetworkConfig> NetworkConfigOf(const model::ModelConfig& model);

}  // namespace foretoken::train
