// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "cli/terminal.h"
#include "settings/option_flags.h"

namespace foretoken::cli {

void ReportNotice(const std::string& text) {
  const std::string line = "foretoken: " + OnOneLine(settings::InFlags(text)) + "\n";
  std::fputs(Fitted(line, STDERR_FILENO, 2).c_str(), stderr);
}

int ReportError(const Error& error) {
  ReportNotice(error.message);
  return error.code == ErrorCode::kInvalidArgument ? kBadUsage : kFailed;
}

int WriteOutput(std::string_view text, bool raw) {
  Output output(raw);
  output.Write(text);
  if (!output.failed() || output.closed_pipe()) return kDone;
  return ReportError(output.status().error());
}

int ReportNoMemory() noexcept {
  std::fputs(
      "foretoken: the system gives no more memory; free some, ask for less (a smaller context, "
      "fewer requests), or raise the limit\n",
      stderr);
  return kFailed;
}

}  // namespace foretoken::cli
