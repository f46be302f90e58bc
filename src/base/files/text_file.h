// SPDX-License-Identifier: Apache-2.0
// base/files/text_file.h: small files that are read or written as a whole.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "foretoken/result.h"

namespace foretoken {

struct ReadLimits {
  std::size_t most_bytes = std::size_t{1} << 30;
  // True: reads from pipes too, such as a shell's process substitution, and from a terminal;
  // reading then waits for the writer. False: only regular files are read, and nothing waits.
  bool pipes = false;
  // True: a file that other users may write, or that belongs to another user than this one and root,
  // is refused. It holds what only its owner should decide.
  bool trusted = false;
};

// All bytes of a file. Folders, devices and sockets are refused without waiting. Errors: kNotFound,
// kInvalidFile (not a kind of file that can be read, or not a trusted one), kTooLarge, kIo.
[[nodiscard]] Result<std::string> ReadTextFile(const std::string& path,
                                               const ReadLimits& limits = {});
// All bytes of an open descriptor, which stays open; `name` is for messages.
[[nodiscard]] Result<std::string> ReadDescriptor(int descriptor, std::string_view name,
                                                 const ReadLimits& limits = {});

// Replaces or creates the file: either the text is complete and on the disk under that name, or
// nothing has changed. Errors: kIo.
[[nodiscard]] Status WriteTextFile(const std::string& path, std::string_view text);

}  // namespace foretoken
