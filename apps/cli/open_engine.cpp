// SPDX-License-Identifier: Apache-2.0
#include "cli/open_engine.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "cli/input.h"
#include "cli/report.h"
#include "cli/terminal.h"

namespace foretoken::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kQuick{1};     // loading that takes less shows nothing
constexpr std::chrono::seconds kLogPause{5};  // between lines of a log
constexpr std::chrono::milliseconds kRedraw{100};

// What is shown while models are loaded, one after another.
class LoadingDisplay {
 public:
  LoadingDisplay(bool quiet, bool logs)
      : line_(!quiet), logs_(!quiet && logs && !StandardErrorIsTerminal()) {}

  void Show(const LoadProgress& progress) {
    const auto now = Clock::now();
    if (progress.what != model_) Begin(progress.what);
    last_ = now;
    const Clock::duration pause = logs_ ? Clock::duration(kLogPause) : kRedraw;
    if (now - begin_ < kQuick || now - shown_ < pause) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - model_begin_).count();
    std::string text =
        fmt::format("loading {} {:.0f} %", FileName(progress.what), 100 * progress.fraction);
    if (file_bytes_ > 0 && seconds > 0)
      text += fmt::format(", {:.2f} of {:.2f} GiB, {:.2f} GiB/s", GiB(progress.fraction), GiB(1),
                          GiB(progress.fraction) / seconds);
    if (logs_)
      std::fprintf(stderr, "foretoken: %s\n", OnOneLine(text).c_str());
    else
      line_.Show(text);
  }

 private:
  void Begin(const std::string& model) {
    model_ = model;
    model_begin_ = last_;
    std::error_code error;
    const auto bytes = std::filesystem::file_size(model_, error);  // an error for folders
    file_bytes_ = error ? 0 : static_cast<double>(bytes);
  }
  double GiB(double fraction) const { return fraction * file_bytes_ / (1 << 30); }

  ProgressLine line_;
  const bool logs_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point model_begin_ = begin_, last_ = begin_, shown_ = begin_;
  std::string model_;
  double file_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<Engine>> OpenEngine(EngineOptions options, bool quiet, bool logs) {
  std::unique_ptr<Engine> engine;
  {
    LoadingDisplay display(quiet, logs);
    options.on_load_progress = [&display](const LoadProgress& progress) { display.Show(progress); };
    FORETOKEN_TRY(engine, Engine::Open(std::move(options)));
  }
  if (quiet) return engine;
  for (const std::string& notice : engine->summary().notices) ReportNotice(notice);
  return engine;
}

}  // namespace foretoken::cli
