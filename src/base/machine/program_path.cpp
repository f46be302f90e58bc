// SPDX-License-Identifier: Apache-2.0
#include "base/machine/program_path.h"

#include <system_error>

namespace foretoken {

std::filesystem::path ProgramPath() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown);
}

}  // namespace foretoken
