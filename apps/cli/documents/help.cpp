// SPDX-License-Identifier: Apache-2.0
// foretoken help and foretoken version.
#include "cli/documents/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/documents/catalogue_json.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"
#include "config/nearest_name.h"
#include "foretoken/catalogue.h"
#include "settings/help_text.h"
#include "settings/setters.h"

namespace foretoken::cli {
namespace {

struct HelpSettings {
  std::string verb;
  bool all = false, json = false;
};

std::vector<std::string> VerbNames() {
  std::vector<std::string> names;
  for (const Verb* const verb : Verbs()) names.emplace_back(verb->name);
  return names;
}

settings::FlagSet HelpFlags(HelpSettings& s) {
  settings::FlagSet flags("help [VERB] [--all]",
                          "Explains a verb, or lists the verbs. It is the same as foretoken VERB "
                          "--help.");
  flags.SetPositional("VERB", settings::StoreText(s.verb), VerbNames());
  flags.Add({"Flags",
             {{{"--all"}, "", "list every flag of the verb", settings::StoreTrue(s.all)},
              {{"--json"},
               "",
               "what this build has, as one JSON object: verbs with their flags, drafters, "
               "strategies, controllers, "
               "architectures, number types, settings, the server's endpoints",
               settings::StoreTrue(s.json)}}});
  flags.SetExamples({"foretoken help generate", "foretoken help chat --all"});
  return flags;
}

}  // namespace

std::string Overview(std::size_t width) {
  std::string out = settings::Wrapped(
      "foretoken runs language models (GGUF files) on the CPU. A small, fast model drafts, and the "
      "large one checks several drafted tokens at a time: the same text, sooner.",
      width, 0);
  out += "\nusage: foretoken VERB [flags]\n\n";
  for (const Verb* const verb : Verbs())
    out += settings::Wrapped(fmt::format("  {:<10}  {}", verb->name, verb->summary), width, 14);
  return out +
         "\nTry:\n"
         "  foretoken generate -p \"Once upon a time\" --trace\n"
         "  foretoken inspect model.gguf\n\n" +
         settings::Wrapped("foretoken help VERB explains a verb; --all lists every flag.", width,
                           0);
}

Error NoSuchVerb(const std::string& name) {
  std::vector<std::string_view> names;
  std::string list;
  for (const Verb* const verb : Verbs()) {
    names.push_back(verb->name);
    list += fmt::format("{}{}", list.empty() ? "" : ", ", verb->name);
  }
  if (name.starts_with('-'))
    return {ErrorCode::kInvalidArgument,
            fmt::format("{}: a flag where the verb belongs; write foretoken generate {} ..., or "
                        "another of {}",
                        name, name, list)};
#ifndef FORETOKEN_SERVER
  if (name == "serve")
    return {ErrorCode::kInvalidArgument,
            "serve: this foretoken was built without the server; build it with "
            "-DFORETOKEN_SERVER=ON, which needs Boost and prometheus-cpp"};
#endif
  const std::string_view nearest = NearestName(name, names);
  return {ErrorCode::kInvalidArgument,
          nearest.empty() ? fmt::format("{}: no such verb; use one of {}", Shown(name), list)
                          : fmt::format("{}: no such verb; did you mean {}? There are {}",
                                        Shown(name), nearest, list)};
}

namespace {

settings::FlagSet DescribeHelp() {
  return Described(HelpFlags);
}

int RunHelp(const Arguments& given) {
  Arguments arguments = given;
  // --help-all belongs to the verb, not to help.
  if (!arguments.empty() && !arguments.front().starts_with('-'))
    std::replace(arguments.begin(), arguments.end(), std::string("--help-all"),
                 std::string("--all"));
  HelpSettings settings;
  const settings::FlagSet flags = HelpFlags(settings);
  if (const auto ended = ReadFlags(flags, arguments)) return *ended;
  if (settings.json) return WriteOutput(CatalogueJson());
  const std::size_t width = TerminalWidth();
  if (settings.verb.empty()) return WriteOutput(Overview(width));
  const Verb* const verb = FindVerb(settings.verb);
  if (verb == nullptr) return ReportError(NoSuchVerb(settings.verb));
  return WriteOutput(settings::HelpText(verb->describe(), {.width = width, .all = settings.all}));
}

settings::FlagSet DescribeVersion() {
  return {"version", "Prints the version. It is the same as foretoken --version, or -V."};
}

int RunVersion(const Arguments& arguments) {
  if (const auto ended = ReadFlags(DescribeVersion(), arguments)) return *ended;
  return WriteOutput(fmt::format("foretoken {}\n", kVersion));
}

}  // namespace

extern const Verb kHelpVerb = {"help", "explains the program or a verb", RunHelp, DescribeHelp};
extern const Verb kVersionVerb = {"version", "prints the version", RunVersion, DescribeVersion};

}  // namespace foretoken::cli
