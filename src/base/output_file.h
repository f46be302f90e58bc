// SPDX-License-Identifier: Apache-2.0
// base/output_file.h: the one way in which foretoken writes a file. Others see whole parts only:
// the file gets its name with the first Publish, and whatever fails afterwards leaves it as the
// last Publish left it.
//
// Until it has its name it has none at all (O_TMPFILE), so that a kill leaves nothing behind;
// where the file system knows no such files, it is a new file PATH.PID-N.part (O_EXCL, O_NOFOLLOW)
// that vanishes with this object. A link or a file that someone put there before is never written
// through. A limit on file sizes (RLIMIT_FSIZE) and a reader that left a pipe are errors here, not
// signals, whatever the program does with SIGXFSZ and SIGPIPE.
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
    unsigned mode = 0666;   // less the umask
    bool devices = false;   // a device or a pipe of that name is written to as it is
    bool readable = false;  // the descriptor can be mapped for reading and writing
  };
  // Errors: kIo.
  [[nodiscard]] static Result<OutputFile> Create(const std::string& path, const Options& options);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // what was not published vanishes

  // Takes the space of the whole file, where the file system can; it goes with the file.
  [[nodiscard]] Status Reserve(std::uint64_t bytes);
  // The same on every file system, so that a mapping of the file can be written without a fault.
  [[nodiscard]] Status ReserveForMapping(std::uint64_t bytes);
  [[nodiscard]] Status Append(std::span<const std::byte> bytes);
  [[nodiscard]] Status Append(std::string_view text) {
    return Append(std::as_bytes(std::span(text)));
  }
  // The first time the file is put on the disk, gets its name, and its folder is put on the disk.
  // What later times add is put on the disk at the latest when this object ends.
  // `synced` false: that is left to the system, for what can be made again.
  [[nodiscard]] Status Publish(bool synced = true);

  int descriptor() const noexcept { return fd_; }

 private:
  OutputFile() = default;
  [[nodiscard]] Status Open(const Options& options);
  bool OpenNameless(const Options& options);
  bool OpenNamed(const Options& options);
  std::string NameOfDescriptor() const;
  Error IoError(std::string_view what) const;
  Status GiveName(bool synced);

  std::string path_, temporary_;
  int fd_ = -1;
  bool temporary_exists_ = false, has_name_ = false, regular_ = true, synced_ = false;
  std::int64_t written_ = 0, published_ = 0, published_first_ = 0;  // bytes
};

}  // namespace foretoken
