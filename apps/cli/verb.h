// SPDX-License-Identifier: Apache-2.0
// cli/verb.h: the verbs of the program. Each is one file, which ends with its row, and
// one line in verbs.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "settings/flag_set.h"

namespace foretoken::cli {

using Arguments = std::vector<std::string>;

struct Verb {
  std::string_view name, summary;
  int (*run)(const Arguments& arguments);  // with the arguments after the verb; the exit code
  settings::FlagSet (*describe)();         // its flags, to be shown
};

// In the order of the overview.
std::span<const Verb* const> Verbs();
// Null if there is no verb of that name.
const Verb* FindVerb(std::string_view name);

}  // namespace foretoken::cli
