// SPDX-License-Identifier: Apache-2.0
// loader/file_content.h: which model a file holds, whatever its name and place: for what is kept of models
// between two starts.
#pragma once

#include <cstdint>
#include <string>

#include "foretoken/result.h"

namespace foretoken::loader {

struct FileContent {
  std::int64_t bytes = 0;
  std::uint64_t hash = 0;  // of its first, middle and last MiB
};

// The content of a model's file, or of a model folder, whose first file of weights stands for all. Errors:
// those of the file.
[[nodiscard]] Result<FileContent> ContentOf(const std::string& path);

}  // namespace foretoken::loader
