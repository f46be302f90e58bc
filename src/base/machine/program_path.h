// SPDX-License-Identifier: Apache-2.0
// base/machine/program_path.h: where the running program lies.
#pragma once

#include <filesystem>

namespace foretoken {

// "": the system does not tell.
std::filesystem::path ProgramPath();

}  // namespace foretoken
