// SPDX-License-Identifier: Apache-2.0
// Its files convert queries and keys to the interleaved rotation.
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status Complete(const MetadataReader&, ModelConfig&) {
  return {};
}

}  // namespace

extern const Architecture kLlama = {
    .info = {.name = "llama",
             .networks = "Llama 1 to 3.x, Mistral, TinyLlama, SmolLM",
             .traits = ""},
    .complete = Complete};

}  // namespace foretoken::model::arch
