// SPDX-License-Identifier: Apache-2.0
// cli/documents/shell_completion.h: scripts that let shells complete verbs, flags and values, made
// from the flags of each verb. They contain all names, so that a Tab starts no program.
#pragma once

#include <string>

namespace foretoken::cli {

std::string BashCompletion();
std::string ZshCompletion();
std::string FishCompletion();

}  // namespace foretoken::cli
