// SPDX-License-Identifier: Apache-2.0
// formats/checkpoint.h: a model file: metadata and named tensors, read-only and mapped.
//
// Open validates everything: counts, sizes, offsets, alignment, types, strings. Later access cannot
// fail, reads nothing beyond the file, and copies nothing. Immutable after Open, so any thread may
// read it. The file itself, and so the data, can change meanwhile: call Check.
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
  // tensor::FindDType(ggml_type) is null for a type foretoken cannot compute with.
  std::uint32_t ggml_type = 0;
  int n_dims = 0;
  // In ggml's order: shape[0] is the row length (k), shape[1] the number of rows; rest 1.
  std::array<std::int64_t, 4> shape{};
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
  // The tensor's pages may leave resident memory; they return when they are read again.
  virtual void Release(const TensorView& tensor) const noexcept = 0;
  virtual const std::string& path() const = 0;
  virtual std::size_t file_bytes() const = 0;  // all parts together
  virtual std::string format() const = 0;      // "GGUF v3", "GGUF v3, 2 files"
  virtual const std::string& PathOf(const TensorView& tensor) const = 0;  // the part that has it
  // A hash of each part's size, time of change and header (all before the tensors' data), and of
  // samples of every tensor's data (all of a small one, else its ends and two places between).
  // Derived data may be kept under this key. It does not notice a change outside the samples that
  // keeps the file's time.
  virtual std::uint64_t Fingerprint() const = 0;

  // Whether all parts are as they were when they were opened; see MappedFile. Any thread. Error:
  // kIo, with the part's name.
  [[nodiscard]] virtual Status Check() const = 0;
};

// Opens a model file by its magic bytes; a split GGUF ("...-00001-of-00003.gguf") by its first
// part. Errors: kNotFound, kInvalidFile (with the place and the reason), kUnsupported (a GGUF
// version, big-endian files), kIo.
[[nodiscard]] Result<std::unique_ptr<Checkpoint>> OpenCheckpoint(const std::string& path);

}  // namespace foretoken::formats
