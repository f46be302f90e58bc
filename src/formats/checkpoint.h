// SPDX-License-Identifier: Apache-2.0
// formats/checkpoint.h: a model file: metadata and named tensors, read-only and mapped.
//
// Everything is validated at Open: counts, sizes, offsets, alignment, types, strings. Later access
// cannot fail, reads nothing beyond the file, and costs no copy. Immutable after Open, so any
// thread may read it. The file itself can change meanwhile, and what is read with it: Check tells.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "formats/metadata.h"
#include "tensor/dtype.h"

namespace foretoken::formats {

struct TensorView {
  std::string name;
  std::uint32_t ggml_type =
      0;  // tensor::FindDType(ggml_type) is null for a type foretoken cannot compute with
  int n_dims = 0;
  std::array<std::int64_t, 4>
      shape{};  // ggml's order: shape[0] is the row length (k), shape[1] the number of rows; rest 1
  std::span<const std::byte> data;  // exactly the tensor's bytes
  int file = 0;                     // which part of a split file holds it

  std::int64_t n_values() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  virtual const Metadata& metadata() const = 0;
  virtual std::span<const TensorView> tensors() const = 0;          // in file order
  virtual const TensorView* Find(std::string_view name) const = 0;  // null if there is none
  // The tensor's pages may leave resident memory; they come back when read again.
  virtual void Release(const TensorView& tensor) const noexcept = 0;
  virtual const std::string& path() const = 0;
  virtual std::size_t file_bytes() const = 0;  // of all parts
  virtual std::string format() const = 0;      // "GGUF v3", "GGUF v3, 2 files"
  virtual const std::string& PathOf(const TensorView& tensor) const = 0;  // of its part
  // A hash of each part's size, time of change and header (all before the tensors' data), and of
  // samples of every tensor's data (all of a small one, else its ends and two places between): what
  // is derived from the file may be kept under it. A change beside the samples that keeps the
  // file's time is not seen.
  virtual std::uint64_t Fingerprint() const = 0;

  // Whether all parts are still as they were when they were opened; see MappedFile. Any thread.
  // Error: kIo, with the part's name.
  [[nodiscard]] virtual Status Check() const = 0;
};

// Opens a model file by its magic bytes; a split GGUF ("...-00001-of-00003.gguf") by its first
// part. Errors: kNotFound, kInvalidFile (names the place and the reason), kUnsupported (a GGUF
// version, big-endian files), kIo.
[[nodiscard]] Result<std::unique_ptr<Checkpoint>> OpenCheckpoint(const std::string& path);

}  // namespace foretoken::formats
