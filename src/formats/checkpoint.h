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

class GgufWriter;

struct TensorView {
  std::string name;
  // tensor::FindDType(ggml_type) is null for a type foretoken cannot compute with.
  std::uint32_t ggml_type = 0;
  int n_dims = 0;
  // In ggml's order: shape[0] is the row length (k), shape[1] the number of rows; rest 1.
  std::array<std::int64_t, 4> shape{};
  // The tensor's bytes, if its rows lie one after another; else empty, and Row finds a row.
  std::span<const std::byte> data;
  // Where rows lie in several places, or in another order: these, of equal length, hold them all.
  std::vector<std::span<const std::byte>> pieces = {};
  // Not 0: the rows come in heads of this many, and a head's first half lies before its second,
  // while the tensor has them alternate: row 2i of a head lies at i, row 2i + 1 half a head later.
  std::int64_t head_rows = 0;

  std::int64_t n_values() const { return n_rows() * shape[0]; }
  std::int64_t n_rows() const { return shape[1] * shape[2] * shape[3]; }
  std::size_t bytes() const {
    return pieces.empty() ? data.size() : pieces.size() * pieces[0].size();
  }
  std::size_t row_bytes() const { return bytes() / static_cast<std::size_t>(n_rows()); }
  // The places in the file that hold the tensor.
  std::span<const std::span<const std::byte>> places() const {
    return pieces.empty() ? std::span(&data, 1) : std::span(pieces);
  }
  // REQUIRES: 0 <= row < n_rows(). n_together() rows that follow lie behind it.
  const std::byte* Row(std::int64_t row) const noexcept;
  // The rows of each multiple of this number lie one after another.
  std::int64_t n_together() const {
    if (head_rows != 0) return 1;
    return n_rows() / static_cast<std::int64_t>(places().size());
  }
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  virtual const Metadata& metadata() const = 0;
  virtual std::span<const TensorView> tensors() const = 0;          // in file order
  virtual const TensorView* Find(std::string_view name) const = 0;  // null if there is none
  // The pages of these bytes, all of one tensor, may leave resident memory; they return when they
  // are read again.
  virtual void Release(std::span<const std::byte> bytes) const noexcept = 0;
  virtual const std::string& path() const = 0;
  virtual std::vector<std::string> files() const = 0;  // all that hold tensors
  virtual std::size_t file_bytes() const = 0;          // all parts together
  virtual std::string format() const = 0;              // "GGUF v3", "GGUF v3, 2 files"
  virtual const std::string& PathOf(const TensorView& tensor) const = 0;  // the part that has it
  // A hash of each part's size and header (all before the tensors' data), and of samples of every
  // tensor's data (all of a small one, else its ends and two places between). It is the same for
  // copies on other machines.
  virtual std::uint64_t ContentHash() const = 0;
  // A hash of that and of each part's time of change. Derived data may be kept under this key. It
  // does not notice a change outside the samples that keeps the file's time.
  virtual std::uint64_t Fingerprint() const = 0;

  // Gives the metadata to a writer, with the types that their values have in a GGUF file.
  virtual void CopyKeys(GgufWriter& writer) const = 0;

  // Whether all parts are as they were when they were opened; see MappedFile. Any thread. Error:
  // kIo, with the part's name.
  [[nodiscard]] virtual Status Check() const = 0;
};

// Opens a model: a folder as it is downloaded from Hugging Face (huggingface/model_folder.h), or a
// file by its magic bytes; a split GGUF ("...-00001-of-00003.gguf") by its first
// part. Errors: kNotFound, kInvalidFile (with the place and the reason), kUnsupported (a GGUF
// version, big-endian files), kIo.
[[nodiscard]] Result<std::unique_ptr<Checkpoint>> OpenCheckpoint(const std::string& path);

}  // namespace foretoken::formats
