// SPDX-License-Identifier: Apache-2.0
// model/arch/block_config.h: the configuration of a drafter of whole blocks (DFlash, DFlash 2, DSpark).
#pragma once

#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "model/arch/metadata_reader.h"
#include "model/config.h"

namespace foretoken::model {

// Errors: those of ReadCommonConfig; kInvalidFile (a key that is missing or out of range).
[[nodiscard]] Result<ModelConfig> ReadBlockConfig(const MetadataReader& read,
                                                  const formats::Checkpoint& checkpoint);

}  // namespace foretoken::model
