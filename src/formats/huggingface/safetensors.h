// SPDX-License-Identifier: Apache-2.0
// formats/huggingface/safetensors.h: the safetensors file format.
//
// Layout: u64 (little-endian) size of the header; the header, a JSON object; the data.
//   { "__metadata__": {...strings},
//     NAME: { "dtype": "BF16", "shape": [rows, row length], "data_offsets": [begin, end] }, ... }
// Offsets count from the first byte after the header. The tensors cover the data without holes or
// overlaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::formats::huggingface {

struct SafeTensor {
  std::string name;
  std::string dtype;                // as the file spells it: "BF16"
  std::vector<std::int64_t> shape;  // the row length last
  std::span<const std::byte> data;  // of the parsed bytes

  std::int64_t n_values() const;
};

// Parses and validates a whole file in memory. The tensors come in the order of their data. `path`
// is only for messages. Errors: kInvalidFile, kUnsupported (a dtype that is not known).
[[nodiscard]] Result<std::vector<SafeTensor>> ParseSafetensors(std::span<const std::byte> bytes,
                                                               const std::string& path);

}  // namespace foretoken::formats::huggingface
