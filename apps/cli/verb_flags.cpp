// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_flags.h"

#include "cli/report.h"
#include "cli/terminal.h"

namespace foretoken::cli {

std::optional<int> ReadFlags(const settings::FlagSet& flags, const Arguments& arguments) {
  const auto outcome = flags.Parse(arguments);
  if (!outcome) return ReportError(outcome.error());
  if (*outcome != settings::ParseOutcome::kHelp) return std::nullopt;
  Output().Write(flags.Help());
  return kDone;
}

}  // namespace foretoken::cli
