// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/report.h"
#include "cli/terminal.h"
#include "settings/help_text.h"

namespace foretoken::cli {

std::optional<int> ReadFlags(const settings::FlagSet& flags, const Arguments& arguments) {
  using settings::ParseOutcome;
  const auto parsed = flags.Parse(arguments);
  if (!parsed) return ReportError(parsed.error());
  if (parsed->outcome != ParseOutcome::kRun) {
    return WriteOutput(settings::HelpText(
        flags, {.width = TerminalWidth(), .all = parsed->outcome == ParseOutcome::kHelpAll}));
  }
  if (!parsed->without_effect.empty()) {
    ReportNotice(fmt::format("{}: llama.cpp's, without effect here; leave {} out",
                             fmt::join(parsed->without_effect, ", "),
                             parsed->without_effect.size() == 1 ? "it" : "them"));
  }
  return std::nullopt;
}

}  // namespace foretoken::cli
