// SPDX-License-Identifier: Apache-2.0
// cli/verb_flags.h: what every verb does first: its flags are read, or its help is shown.
#pragma once

#include <optional>

#include "cli/verb.h"
#include "settings/flag_set.h"

namespace foretoken::cli {

// A value where the verb ends here: its exit code, after the help or a wrong flag was reported.
[[nodiscard]] std::optional<int> ReadFlags(const settings::FlagSet& flags,
                                           const Arguments& arguments);

}  // namespace foretoken::cli
