// SPDX-License-Identifier: Apache-2.0
// foretoken completion: a script for the user's shell.
#include <fmt/format.h>

#include "cli/documents/shell_completion.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"
#include "settings/setters.h"

namespace foretoken::cli {
namespace {

struct CompletionSettings {
  std::string shell;
};

settings::FlagSet CompletionFlags(CompletionSettings& s) {
  settings::FlagSet flags("completion bash|zsh|fish",
                          "Prints a script with which a shell completes verbs, flags and their "
                          "values. cmake --install puts the scripts where shells look for them. "
                          "Otherwise source the script in the shell's start-up file.");
  flags.SetPositional("SHELL", settings::StoreText(s.shell), {"bash", "zsh", "fish"});
  flags.SetExamples({"source <(foretoken completion bash)", "source <(foretoken completion zsh)",
                     "foretoken completion fish | source"});
  return flags;
}

Result<int> RunCompletion(CompletionSettings& settings) {
  if (settings.shell == "bash") return WriteOutput(BashCompletion());
  if (settings.shell == "zsh") return WriteOutput(ZshCompletion());
  if (settings.shell == "fish") return WriteOutput(FishCompletion());
  return InvalidArgument(fmt::format(
      "completion: '{}' is not a known shell; give bash, zsh or fish", Shown(settings.shell)));
}

}  // namespace

extern const Verb kCompletionVerb = MakeVerb<CompletionFlags, RunCompletion>(
    "completion", "prints the completion for bash, zsh or fish");

}  // namespace foretoken::cli
