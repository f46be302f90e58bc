// SPDX-License-Identifier: Apache-2.0
// model/arch/families/granite.h: the scales that all networks of the Granite family have.
#pragma once

#include "foretoken/result.h"
#include "model/arch/metadata_reader.h"
#include "model/config.h"

namespace foretoken::model::arch {

// Errors: kInvalidFile.
[[nodiscard]] Status ReadGraniteScales(const MetadataReader& read, ModelConfig& config);
// Gives all layers their experts.
[[nodiscard]] Status UseGraniteExperts(const MetadataReader& read, ModelConfig& config);

}  // namespace foretoken::model::arch
