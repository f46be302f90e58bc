// SPDX-License-Identifier: Apache-2.0
// base/files/output_file.h: the only way in which foretoken writes a file. Others see complete parts
// only: the file gets its name with the first Publish, and later failures leave it as the last
// Publish left it.
//
// Before that it has no name (O_TMPFILE), so a kill leaves nothing behind. If the file system does
// not support that, it is a new file PATH.PID-N.part (O_EXCL, O_NOFOLLOW) that this object removes. A
// complete file, too, has that name for a moment before it replaces PATH: SIGKILL may leave it there.
// An existing link or file is never written through. A limit on file sizes (RLIMIT_FSIZE) and a
// closed pipe are errors here, not signals, whatever the program does with SIGXFSZ and SIGPIPE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "foretoken/result.h"

namespace foretoken {

class OutputFile {
 public:
  struct Options {
    unsigned mode = 0666;   // minus the umask
    bool devices = false;   // write to an existing device or pipe of that name
    bool readable = false;  // the descriptor can be mapped for reading and writing
  };
  // Errors: kIo.
  [[nodiscard]] static Result<OutputFile> Create(const std::string& path, const Options& options);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // removes what was not published

  // Reserves space for the whole file if the file system can. Where there is less, nothing is taken.
  [[nodiscard]] Status Reserve(std::uint64_t bytes);
  // Reserves it on every file system, so that a mapping of the file can be written without a fault.
  [[nodiscard]] Status ReserveForMapping(std::uint64_t bytes);
  [[nodiscard]] Status Append(std::span<const std::byte> bytes);
  [[nodiscard]] Status Append(std::string_view text) {
    return Append(std::as_bytes(std::span(text)));
  }
  // The first call flushes the file to the disk, gives it its name, and flushes its folder. What
  // later calls add is flushed at the latest when this object ends. `synced` false leaves flushing
  // to the system, for files that can be made again.
  [[nodiscard]] Status Publish(bool synced = true);

  int descriptor() const noexcept { return fd_; }

 private:
  OutputFile() = default;
  [[nodiscard]] Status Open(const Options& options);
  bool OpenNameless(const Options& options);
  bool OpenNamed(const Options& options);
  std::string NameOfDescriptor() const;
  Error IoError(std::string_view what) const;
  Status NoRoom(int error, std::uint64_t bytes) const;
  Status GiveName(bool synced);

  std::string path_, temporary_;
  int fd_ = -1;
  bool temporary_exists_ = false, has_name_ = false, regular_ = true, synced_ = false;
  std::int64_t written_ = 0, published_ = 0, published_first_ = 0;  // bytes
};

}  // namespace foretoken
