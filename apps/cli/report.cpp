// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"

#include <cstdio>
#include <string>

#include "cli/terminal.h"

namespace foretoken::cli {

int ReportError(const Error& error) {
  const std::string line = "foretoken: " + OnOneLine(error.message) + "\n";
  std::fputs(line.c_str(), stderr);
  return error.code == ErrorCode::kInvalidArgument ? kBadUsage : kFailed;
}

}  // namespace foretoken::cli
