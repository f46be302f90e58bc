// SPDX-License-Identifier: Apache-2.0
// base/mapped_file.h: a read-only, memory-mapped file. Movable; unmapped on destruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "foretoken/result.h"

namespace foretoken {

class MappedFile {
 public:
  MappedFile() = default;
  // Errors: kNotFound (no such file), kInvalidFile (a folder, empty), kIo.
  [[nodiscard]] static Result<MappedFile> Open(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  const std::string& path() const noexcept { return path_; }
  // When the file was last changed, in nanoseconds since 1970.
  std::int64_t modified_ns() const noexcept { return modified_ns_; }

  // Tells the system that [offset, offset + size) will not be read again soon: its pages leave
  // resident memory.
  void Release(std::size_t offset, std::size_t size) const noexcept;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::int64_t modified_ns_ = 0;
  std::string path_;
};

}  // namespace foretoken
