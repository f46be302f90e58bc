// SPDX-License-Identifier: Apache-2.0
// foretoken: the command line program.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "base/machine/standard_streams.h"
#include "cli/documents/help.h"
#include "cli/join_ranks.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "foretoken/result.h"
#include "settings/environment.h"

namespace foretoken::cli {
namespace {

// Typing errors in the environment.
void ReportUnknownVariables() {
  for (const std::string& line : settings::UnknownVariables(settings::ProcessVariables()))
    std::fprintf(stderr, "foretoken: %s\n", OnOneLine(line).c_str());
}

int Run(const Arguments& arguments) {
  const std::string first = arguments.empty() ? "--help" : arguments.front();
  const Arguments rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (first == "--help" || first == "-h" || first == "--help-all")
    return FindVerb("help")->run(rest);
  if (first == "--version" || first == "-V") return FindVerb("version")->run(rest);
  const Verb* const verb = FindVerb(first);
  if (verb == nullptr) return ReportError(NoSuchVerb(first));
  if (const auto ended = JoinRanks(arguments)) return *ended;
  const int code = verb->run(rest);
  LeaveRanks();
  return code;
}

}  // namespace
}  // namespace foretoken::cli

int main(int argc, char** argv) {
  foretoken::PrepareStandardStreams();
  try {
    foretoken::cli::ReportUnknownVariables();
    return foretoken::cli::Run({argv + std::min(argc, 1), argv + argc});
  } catch (const std::exception& error) {
    if (foretoken::SaysNoMemory(error)) return foretoken::cli::ReportNoMemory();
    return foretoken::cli::ReportError(
        {foretoken::ErrorCode::kIo,
         fmt::format("an error of the program itself: {}", error.what())});
  }
}
