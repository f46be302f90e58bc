// SPDX-License-Identifier: Apache-2.0
// model/arch/registry.h: from a file's metadata to a ModelConfig, by architecture name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "formats/metadata.h"
#include "model/config.h"

namespace foretoken::model {

// Errors: kUnsupported (an architecture nobody here knows; the message lists those there are),
// kInvalidFile (a key that is missing or out of range).
[[nodiscard]] Result<ModelConfig> ConfigFromMetadata(const formats::Metadata& metadata);
std::vector<std::string_view> ArchitectureNames();

namespace arch {

// One row per architecture: what its files leave unsaid.
using Adjust = Status (*)(const formats::Metadata& metadata, ModelConfig& config);
Status Llama(const formats::Metadata& metadata, ModelConfig& config);
Status Qwen2(const formats::Metadata& metadata, ModelConfig& config);
Status Qwen3(const formats::Metadata& metadata, ModelConfig& config);

}  // namespace arch
}  // namespace foretoken::model
