// SPDX-License-Identifier: Apache-2.0
// As llama.
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status CompleteErnie45(const MetadataReader&, ModelConfig&) {
  return {};
}

}  // namespace

extern const Architecture kErnie45 = {
    .info = {.name = "ernie4_5", .networks = "ERNIE 4.5 (dense)", .traits = "as llama"},
    .complete = CompleteErnie45};

}  // namespace foretoken::model::arch
