// SPDX-License-Identifier: Apache-2.0
// base/mapped_file.h: a read-only, memory-mapped file. Movable; unmapped on destruction.
//
// The file can change while it is mapped, and the mapping with it; whoever reads from it asks
// Check() before the result counts. A file that is cut short reads as zeros (base/guarded_range.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/guarded_range.h"
#include "base/input_file.h"
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
  // When the file was last changed, in nanoseconds since 1970.
  std::int64_t modified_ns() const noexcept { return identity_.modified_ns; }

  // Whether all that was read so far was read from the file as it was when it was opened: not
  // where it was cut short or cannot be read, nor where its size or its time of change are others.
  // (A time that was set back is not seen; the hashes of model/embedding_table.h are for that.)
  // A few hundred nanoseconds. Any thread. Error: kIo, with the file's name.
  [[nodiscard]] Status Check() const;

  // Tells the system that [offset, offset + size) will not be read again soon: its pages leave
  // resident memory.
  void Release(std::size_t offset, std::size_t size) const noexcept;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int fd_ = -1;  // stays open: Check asks for the mapped file, not for its name
  FileIdentity identity_;
  GuardedRange guard_;
  std::string path_;
};

// What Check says of a file that changed; also for other mappings.
Error ChangedInUse(std::string_view path, bool faulted);

}  // namespace foretoken
