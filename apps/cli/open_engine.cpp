// SPDX-License-Identifier: Apache-2.0
#include "cli/open_engine.h"

#include <fmt/format.h>

#include "cli/input.h"
#include "cli/report.h"
#include "cli/terminal.h"

namespace foretoken::cli {

Result<std::unique_ptr<Engine>> OpenEngine(EngineOptions options, bool quiet) {
  std::unique_ptr<Engine> engine;
  {
    ProgressLine line(!quiet);
    options.on_load_progress = [&line](const LoadProgress& progress) {
      line.Show(
          fmt::format("loading {} {:.0f} %", FileName(progress.what), 100 * progress.fraction));
    };
    FORETOKEN_TRY(engine, Engine::Open(std::move(options)));
  }
  if (quiet) return engine;
  for (const std::string& notice : engine->summary().notices) ReportNotice(notice);
  return engine;
}

}  // namespace foretoken::cli
