// SPDX-License-Identifier: Apache-2.0
// cli/verb_flags.h: the first step of every verb: reading its flags or showing its help.
#pragma once

#include <memory>
#include <optional>

#include "cli/verb.h"
#include "settings/flag_set.h"

namespace foretoken::cli {

// A value if the verb ends here: its exit code, after the help or an error was printed. One line on
// standard error names flags of other programs that were accepted without effect.
[[nodiscard]] std::optional<int> ReadFlags(const settings::FlagSet& flags,
                                           const Arguments& arguments);

// The flags of a verb with settings of their own.
template <typename Settings>
settings::FlagSet Described(settings::FlagSet (*make)(Settings&)) {
  auto kept = std::make_shared<Settings>();
  settings::FlagSet flags = make(*kept);
  flags.Keep(std::move(kept));
  return flags;
}

}  // namespace foretoken::cli
