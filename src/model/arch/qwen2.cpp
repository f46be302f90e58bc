// SPDX-License-Identifier: Apache-2.0
// Qwen 2 and 2.5: biases on queries, keys and values, NeoX rotation.
#include "model/arch/registry.h"

namespace foretoken::model::arch {

Status Qwen2(const formats::Metadata&, ModelConfig& config) {
  config.rope.interleaved = false;
  config.qkv_bias = true;
  return {};
}

}  // namespace foretoken::model::arch
