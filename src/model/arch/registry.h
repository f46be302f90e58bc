// SPDX-License-Identifier: Apache-2.0
// model/arch/registry.h: from a file's metadata to a ModelConfig, by architecture name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "formats/metadata.h"
#include "model/config.h"

namespace foretoken::model {

// Errors: kUnsupported (an architecture nobody here knows; the message lists those there are),
// kInvalidFile (a key that is missing or out of range).
[[nodiscard]] Result<ModelConfig> ConfigFromMetadata(const formats::Metadata& metadata);
std::vector<std::string_view> ArchitectureNames();

// What a file can serve as in speculation.
enum class DraftFile { kModel, kEagleHead, kMtpHead, kModelWithMtpHead };
DraftFile KindOfDraft(const formats::Checkpoint& checkpoint);

// The head in a file of kind kEagleHead, kMtpHead or kModelWithMtpHead. `vocabulary` of an MTP head
// is 0: it is the target's. Errors: as above; kUnsupported (several next-n blocks).
[[nodiscard]] Result<ModelConfig> HeadConfigFromFile(const formats::Checkpoint& checkpoint);

namespace arch {

// One row per architecture: what its files leave unsaid.
using Adjust = Status (*)(const formats::Metadata& metadata, ModelConfig& config);
Status Llama(const formats::Metadata& metadata, ModelConfig& config);
Status Qwen2(const formats::Metadata& metadata, ModelConfig& config);
Status Qwen3(const formats::Metadata& metadata, ModelConfig& config);

}  // namespace arch
}  // namespace foretoken::model
