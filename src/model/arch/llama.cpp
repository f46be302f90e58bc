// SPDX-License-Identifier: Apache-2.0
// Llama 1/2/3.x, Mistral, TinyLlama, SmolLM: files convert queries and keys to the interleaved
// rotation.
#include <fmt/format.h>

#include "model/arch/registry.h"

namespace foretoken::model::arch {

Status Llama(const formats::Metadata& metadata, ModelConfig& config) {
  config.rope.interleaved = true;
  if (const auto experts = metadata.Int("llama.expert_count"); experts && *experts > 0)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("llama.expert_count = {}: mixture-of-experts models are not supported "
                            "yet; use a dense model",
                            *experts));
  return {};
}

}  // namespace foretoken::model::arch
