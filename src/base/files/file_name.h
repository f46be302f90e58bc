// SPDX-License-Identifier: Apache-2.0
// The parts of a path.
#pragma once

#include <cstddef>
#include <string_view>

namespace foretoken {

#if defined(_WIN32)
inline constexpr std::string_view kFolderEnds = "/\\:";
#else
inline constexpr std::string_view kFolderEnds = "/";
#endif

// Where the name of the file begins, behind its folders; 0: it names none.
constexpr std::size_t NameStart(std::string_view path) {
  return path.find_last_of(kFolderEnds) + 1;
}

}  // namespace foretoken
