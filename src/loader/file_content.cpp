// SPDX-License-Identifier: Apache-2.0
#include "loader/file_content.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/files/mapped_file.h"
#include "base/hash.h"
#include "formats/huggingface/weight_files.h"

namespace foretoken::loader {

Result<FileContent> ContentOf(const std::string& path) {
  std::string weights = path;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    FORETOKEN_TRY(const auto files, formats::huggingface::FindWeightFiles(path));
    weights = files.paths.front();
  }
  FORETOKEN_TRY(const MappedFile file, MappedFile::Open(weights));
  constexpr std::size_t kPart = 1 << 20;
  const auto bytes = file.bytes();
  const std::size_t n = bytes.size(), part = std::min(n, kPart);
  // A fine-tuned model differs from its base only in its tensors, so those are hashed too.
  const std::array<std::uint64_t, 3> hashes = {
      Hash(bytes.first(part)), Hash(bytes.subspan((n - part) / 2, part)), Hash(bytes.last(part))};
  return FileContent{.bytes = static_cast<std::int64_t>(n), .hash = HashOf(hashes)};
}

}  // namespace foretoken::loader
