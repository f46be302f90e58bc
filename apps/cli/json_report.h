// SPDX-License-Identifier: Apache-2.0
// cli/json_report.h: the JSON objects of the verbs, as text with a newline at the end. A rate
// without a denominator is absent. Bytes that are not UTF-8 become U+FFFD.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/files/inspection.h"
#include "cli/generate/generation.h"

namespace foretoken::cli {

std::string GenerationJson(const Generation& generation);
std::string InspectionJson(const Inspection& inspection, bool with_tensors, bool with_metadata);
std::string TokensJson(std::span<const std::int32_t> ids, const std::vector<std::string>& pieces);
std::string TextJson(const std::string& text, std::span<const std::int32_t> ids);

}  // namespace foretoken::cli
