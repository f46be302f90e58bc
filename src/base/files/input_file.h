// SPDX-License-Identifier: Apache-2.0
// base/files/input_file.h: a file that is open for reading. Opening never waits, even for a pipe without
// a writer, a device or a folder.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "foretoken/result.h"

namespace foretoken {

// Identifies a file and its state. A write moves `changed_ns`, which nobody can set; `modified_ns`
// can be set back.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0;
  std::int64_t size = 0, modified_ns = 0, changed_ns = 0;

  static FileIdentity Of(const struct stat& status) noexcept;
  bool operator==(const FileIdentity&) const = default;
  // Compares everything but changed_ns, which also moves when a file gets another name, owner or
  // mode, or loses its last name.
  bool SameContentAs(const FileIdentity& other) const noexcept;
};

class InputFile {
 public:
  struct Options {
    bool pipes = false;                          // accept pipes and terminals too
    bool links = true;                           // the last part of the path may be a symbolic link
    std::string_view wanted = "a regular file";  // for the message: "... name a model file"
  };
  // Errors: kNotFound, kInvalidFile (a folder, device, socket; a pipe where none is wanted), kIo.
  [[nodiscard]] static Result<InputFile> Open(const std::string& path, const Options& options);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  int descriptor() const noexcept { return fd_; }
  const struct stat& status() const noexcept { return status_; }
  // Gives the descriptor away.
  int Take() noexcept;

 private:
  InputFile() = default;

  int fd_ = -1;
  struct stat status_ {};
};

}  // namespace foretoken
