// SPDX-License-Identifier: Apache-2.0
// cli/verb_flags.h: what verbs have in common: flags that are read or shown, and an error or an exit code.
#pragma once

#include <memory>
#include <optional>

#include "cli/report.h"
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

// With the settings that the arguments give.
template <typename Settings>
int Run(const Arguments& arguments, settings::FlagSet (*make)(Settings&),
        Result<int> (*work)(Settings&)) {
  Settings settings;
  if (const auto ended = ReadFlags(make(settings), arguments)) return *ended;
  const Result<int> code = work(settings);
  return code ? *code : ReportError(code.error());
}

// A verb whose flags write into its settings, and whose work gets these.
template <auto kFlags, auto kWork>
constexpr Verb MakeVerb(std::string_view name, std::string_view summary) {
  return {name, summary, [](const Arguments& arguments) { return Run(arguments, kFlags, kWork); },
          [] { return Described(kFlags); }};
}

}  // namespace foretoken::cli
