// SPDX-License-Identifier: Apache-2.0
// formats/gguf.h: the GGUF file format, versions 2 and 3, little-endian.
//
// Layout (all integers little-endian; string = u64 length, bytes):
//
//   "GGUF"  u32 version  u64 n_tensors  u64 n_keys
//   n_keys x     { string key  u32 type  value }
//                an array value: u32 element type, u64 count, elements
//   n_tensors x  { string name  u32 n_dims  u64 dim[n_dims]  u32 ggml type  u64 offset }
//   padding to general.alignment (32 unless given)
//   data: each tensor at its offset from here, offsets multiples of the alignment
//
// The parser trusts nothing: before it reserves memory for a count, it checks the count against the
// bytes that are left. So it takes at most about 10 times the size of the header in memory,
// whatever the header claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/mapped_file.h"
#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "formats/metadata.h"

namespace foretoken::formats {

inline constexpr std::string_view kGgufMagic = "GGUF";
inline constexpr std::uint64_t kGgufDefaultAlignment = 32;
inline constexpr std::uint64_t kGgufMaxNameBytes = 65535;  // of keys and tensor names

// The type numbers of metadata values.
enum class GgufType : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// How many values a block of a ggml type holds, and in how many bytes. Also known for types that
// foretoken cannot compute with, so that their tensors can be listed. nullopt for a type number
// that ggml has not defined, or has withdrawn.
struct GgmlBlock {
  std::int64_t values = 1;
  std::int64_t bytes = 1;
};
std::optional<GgmlBlock> FindGgmlBlock(std::uint32_t ggml_type);

// Bytes of a tensor. Errors: an unknown type, a dimension below 1, a row that is not a multiple of
// the block, a size beyond 2^63; the message is only the reason ("row length 33 is not a multiple
// of ...").
[[nodiscard]] Result<std::int64_t> GgmlTensorBytes(std::uint32_t ggml_type,
                                                   std::span<const std::int64_t> shape);

// Why a key or tensor name is not acceptable ("is not valid UTF-8"), empty if it is.
std::string_view WhyBadName(std::string_view name);

// One parsed file. The tensors' data point into the parsed bytes.
struct GgufFile {
  std::uint32_t version = 0;
  Metadata metadata;
  std::vector<TensorView> tensors;  // in the order of the header
};

// Parses and validates a whole file in memory. `path` is only for messages.
[[nodiscard]] Result<GgufFile> ParseGguf(std::span<const std::byte> bytes, const std::string& path);

// Opens a mapped GGUF file, and the other parts if it is the first part of a split model.
[[nodiscard]] Result<std::unique_ptr<Checkpoint>> OpenGguf(MappedFile first);

}  // namespace foretoken::formats
