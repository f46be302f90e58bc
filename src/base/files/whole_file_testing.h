// SPDX-License-Identifier: Apache-2.0
// base/files/whole_file_testing.h: the bytes of a small file, for tests.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace foretoken {

// Nothing, if it cannot be read.
inline std::string WholeFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace foretoken
