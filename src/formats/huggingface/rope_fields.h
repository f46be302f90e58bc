// SPDX-License-Identifier: Apache-2.0
// formats/huggingface/rope_fields.h: how config.json says that positions are encoded.
#pragma once

#include <cstdint>
#include <vector>

#include "foretoken/result.h"
#include "formats/huggingface/family.h"
#include "formats/huggingface/json_file.h"
#include "formats/metadata.h"

namespace foretoken::formats::huggingface {

// Fills in ARCHITECTURE.rope.*, and the factors that divide the frequencies where the folder asks
// for Llama 3's scaling. Errors: kInvalidFile, kUnsupported (another scaling).
[[nodiscard]] Status ReadRope(const JsonFields& fields, const Family& family, std::int64_t head_dim,
                              Metadata& metadata, std::vector<float>& factors);

}  // namespace foretoken::formats::huggingface
