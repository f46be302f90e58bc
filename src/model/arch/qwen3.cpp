// SPDX-License-Identifier: Apache-2.0
// Qwen 3 (dense): a norm on each query and key head, NeoX rotation, a head size of its own.
#include "model/arch/registry.h"

namespace foretoken::model::arch {

Status Qwen3(const formats::Metadata&, ModelConfig& config) {
  config.rope.interleaved = false;
  config.qk_norm = true;
  return {};
}

}  // namespace foretoken::model::arch
