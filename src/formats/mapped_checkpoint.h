// SPDX-License-Identifier: Apache-2.0
// formats/mapped_checkpoint.h: a checkpoint over mapped files, whatever their format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/files/mapped_file.h"
#include "formats/checkpoint.h"

namespace foretoken::formats {

// A format fills it before it hands it out: files, metadata, tensors, and last Index.
class MappedCheckpoint : public Checkpoint {
 public:
  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const TensorView* Find(std::string_view name) const override;
  void Release(std::span<const std::byte> bytes) const noexcept override;
  const std::string& path() const override { return path_; }
  std::vector<std::string> files() const override;
  std::size_t file_bytes() const override;
  const std::string& PathOf(const TensorView& tensor) const override;
  std::uint64_t ContentHash() const override;
  std::uint64_t Fingerprint() const override;
  Status Check() const override;

 protected:
  explicit MappedCheckpoint(std::string path) : path_(std::move(path)) {}
  // Error: two tensors have one name.
  Status Index();
  // The file that holds these bytes; null for bytes in memory of the checkpoint's own.
  const MappedFile* FileOf(const std::byte* at) const noexcept;

  std::string path_;
  std::vector<MappedFile> files_;
  Metadata metadata_;
  std::vector<TensorView> tensors_;

 private:
  std::vector<std::size_t> by_name_;
};

}  // namespace foretoken::formats
