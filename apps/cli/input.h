// SPDX-License-Identifier: Apache-2.0
// cli/input.h: texts from files.
#pragma once

#include <string>

#include "foretoken/result.h"

namespace foretoken {
struct EngineSummary;
}

namespace foretoken::cli {

// All bytes of a file, or of standard input for "-". At most 1 GiB.
[[nodiscard]] Result<std::string> ReadText(const std::string& path);

// Standard input is a pipe, a file or a socket: neither a terminal nor /dev/null.
bool StandardInputHoldsText();

// "dir/target.gguf" -> "target.gguf"
std::string FileName(const std::string& path);
// The file names of all models and heads that draft, or the types of a copy of the model, separated by
// commas.
std::string DraftFileNames(const EngineSummary& engine);

}  // namespace foretoken::cli
