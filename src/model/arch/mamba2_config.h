// SPDX-License-Identifier: Apache-2.0
// model/arch/mamba2_config.h: the keys of Mamba-2.
#pragma once

#include "foretoken/result.h"
#include "model/arch/metadata_reader.h"
#include "model/config.h"

namespace foretoken::model {

// Errors: kInvalidFile, kUnsupported.
[[nodiscard]] Result<Mamba2Config> ReadMamba2(const MetadataReader& read);

}  // namespace foretoken::model
