// SPDX-License-Identifier: Apache-2.0
// foretoken man: manual pages, printed or written into a folder.
#include <fmt/format.h>

#include "base/files/text_file.h"
#include "cli/documents/help.h"
#include "cli/documents/man_page.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"
#include "settings/setters.h"

namespace foretoken::cli {
namespace {

struct ManSettings {
  std::string verb, folder;
};

settings::FlagSet ManFlags(ManSettings& s) {
  settings::FlagSet flags(
      "man [VERB] [--output FOLDER]",
      "Prints the manual page of the program or of a verb, in roff. cmake --install puts the pages "
      "where man finds them: man foretoken, man foretoken-generate.");
  std::vector<std::string> names;
  for (const Verb* const verb : Verbs()) names.emplace_back(verb->name);
  flags.SetPositional("VERB", settings::StoreText(s.verb), std::move(names));
  flags.Add({"Flags",
             {{{"-o", "--output"},
               "FOLDER",
               "write all pages into this folder, which must be there",
               settings::StorePath(s.folder)}}});
  flags.SetExamples({"foretoken man generate | man -l -"});
  return flags;
}

Status WriteAll(const std::string& folder) {
  FORETOKEN_CHECK_OK(WriteTextFile(folder + "/foretoken.1", ProgramManPage()));
  for (const Verb* const verb : Verbs())
    FORETOKEN_CHECK_OK(
        WriteTextFile(fmt::format("{}/foretoken-{}.1", folder, verb->name), VerbManPage(*verb)));
  return {};
}

Result<int> RunMan(ManSettings& settings) {
  if (!settings.folder.empty()) {
    FORETOKEN_CHECK_OK(WriteAll(settings.folder));
    return kDone;
  }
  const Verb* const verb = FindVerb(settings.verb);
  if (verb == nullptr && !settings.verb.empty()) return Fail(NoSuchVerb(settings.verb));
  return WriteOutput(verb == nullptr ? ProgramManPage() : VerbManPage(*verb));
}

}  // namespace

extern const Verb kManVerb = MakeVerb<ManFlags, RunMan>("man", "prints manual pages");

}  // namespace foretoken::cli
