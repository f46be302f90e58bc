// SPDX-License-Identifier: Apache-2.0
#include "cli/idle_report.h"

#include <cstdio>

#include "cli/terminal.h"

namespace foretoken::cli {

void ReportIdleSettings(const settings::GenerateSettings& settings, const SpeculativeUse& use,
                        std::vector<settings::IdleSetting> more) {
  if (settings.quiet) return;
  const std::string notice = settings::IdleNotice(settings, use, std::move(more));
  if (!notice.empty()) std::fprintf(stderr, "foretoken: %s\n", OnOneLine(notice).c_str());
}

}  // namespace foretoken::cli
