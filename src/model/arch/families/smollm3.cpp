// SPDX-License-Identifier: Apache-2.0
// Every fourth layer encodes no positions.
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status CompleteSmolLm3(const MetadataReader&, ModelConfig& config) {
  for (std::size_t i = 3; i < config.layers.size(); i += 4)
    config.layers[i].attention().rope.reset();
  return {};
}

}  // namespace

extern const Architecture kSmolLm3 = {.info = {.name = "smollm3",
                                               .networks = "SmolLM 3",
                                               .traits = "no rotation in every fourth layer"},
                                      .complete = CompleteSmolLm3};

}  // namespace foretoken::model::arch
