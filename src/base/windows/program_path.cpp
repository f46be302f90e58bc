// SPDX-License-Identifier: Apache-2.0
#include "base/machine/program_path.h"

#include <string>

#include "base/windows/system_error.h"

namespace foretoken {

std::filesystem::path ProgramPath() {
  std::wstring path(32768, L'\0');  // the longest that there is
  path.resize(GetModuleFileNameW(nullptr, path.data(), static_cast<DWORD>(path.size())));
  return path;
}

}  // namespace foretoken
