// SPDX-License-Identifier: Apache-2.0
// base/files/mapped_file.h: a read-only, memory-mapped file. Movable; unmapped on destruction.
//
// The file, and with it the mapping, can change meanwhile. A reader calls Check() before it uses
// what it computed. A file that is cut short reads as zeros (base/files/guarded_range.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/files/guarded_range.h"
#include "base/files/input_file.h"
#include "foretoken/result.h"

namespace foretoken {

class MappedFile {
 public:
  MappedFile() = default;
  // Errors: kNotFound (no such file), kInvalidFile (a folder, pipe, device, socket; empty), kIo.
  [[nodiscard]] static Result<MappedFile> Open(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  const std::string& path() const noexcept { return path_; }
  // The time of the last change, in nanoseconds since 1970.
  std::int64_t modified_ns() const noexcept { return identity_.modified_ns; }

  // Whether everything that was read so far came from the file as it was when it was opened. An
  // error if the file was cut short or cannot be read, or if its size or time of change differ. (A
  // time that was set back is not noticed; the hashes of model/weights/embedding_table.h are for that.)
  // Takes a few hundred nanoseconds. Any thread. Error: kIo, with the file's name.
  [[nodiscard]] Status Check() const;

  // Tells the system that [offset, offset + size) will not be read soon: its pages leave resident
  // memory.
  void Release(std::size_t offset, std::size_t size) const noexcept;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int fd_ = -1;  // stays open: Check asks about the mapped file, not about its name
  FileIdentity identity_;
  GuardedRange guard_;
  std::string path_;
};

// The error of Check for a file that changed; also for other mappings.
Error ChangedInUse(std::string_view path, bool faulted);

}  // namespace foretoken
