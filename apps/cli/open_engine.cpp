// SPDX-License-Identifier: Apache-2.0
#include "cli/open_engine.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "cli/input.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "foretoken/catalogue.h"
#include "foretoken/tools/model_file.h"

namespace foretoken::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kQuick{1};      // loading that takes less shows nothing
constexpr std::chrono::seconds kLinePause{5};  // between lines of a log
constexpr std::chrono::milliseconds kRedraw{100};

std::string Gigabytes(std::int64_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string MemoryLine(const LoadProgress& progress) {
  const MemoryNeeds& needs = progress.memory;
  const std::string experts =
      needs.experts == 0 ? "" : fmt::format(" ({} of experts)", Gigabytes(needs.experts));
  return fmt::format("memory: weights {}{}, cache {}, {} available{}",
                     Gigabytes(needs.dense + needs.experts), experts, Gigabytes(needs.cache),
                     Gigabytes(progress.available_bytes),
                     progress.experts_paged ? "; experts stay in a file" : "");
}

// What is shown while an engine opens.
class LoadingDisplay {
 public:
  LoadingDisplay(bool quiet, bool logs)
      : line_(!quiet), logs_(!quiet && logs && !StandardErrorIsTerminal()) {}

  void Show(const LoadProgress& progress) {
    const auto now = Clock::now();
    if (progress.step == "planning") {
      memory_ = MemoryLine(progress);
      last_ = now;
      return;
    }
    if (progress.step != step_ || progress.bytes < bytes_) {
      step_ = progress.step;
      step_begin_ = last_;
    }
    bytes_ = progress.bytes;
    last_ = now;
    if (now - begin_ < kQuick || now - shown_ < (logs_ ? Clock::duration(kLinePause) : kRedraw))
      return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - step_begin_).count();
    const std::string text = fmt::format(
        "loading {}: {} {:.0f} %, {} of {}, {:.2f} GiB/s", FileName(progress.what), progress.step,
        100 * progress.fraction, Gigabytes(progress.bytes), Gigabytes(progress.total_bytes),
        static_cast<double>(progress.bytes) / seconds / (1 << 30));
    if (!logs_) return line_.Show(text);
    if (!memory_.empty()) Log(std::exchange(memory_, ""));
    Log(text);
  }

 private:
  static void Log(const std::string& text) {
    std::fprintf(stderr, "foretoken: %s\n", OnOneLine(text).c_str());
  }

  ProgressLine line_;
  const bool logs_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point step_begin_ = begin_, last_ = begin_, shown_ = begin_;
  std::string step_, memory_;
  std::int64_t bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<Engine>> OpenEngine(EngineOptions options, bool quiet, bool logs,
                                           bool details) {
  std::unique_ptr<Engine> engine;
  {
    LoadingDisplay display(quiet, logs);
    options.on_load_progress = [&display](const LoadProgress& progress) {
      display.Show(progress);
      return true;
    };
    FORETOKEN_TRY(engine, Engine::Open(std::move(options)));
  }
  if (quiet) return engine;
  for (const std::string& notice : engine->summary().notices) ReportNotice(notice);
  if (details)
    for (const std::string& detail : engine->summary().details) ReportNotice(detail);
  return engine;
}

Status AskForOwnCopy(EngineOptions& options) {
  SpeculativeOptions& o = options.speculative;
  // A profile may recommend something else.
  if (!o.method.empty() || !o.profile.empty() || !options.DraftFiles().empty() || options.drafter)
    return {};
  FORETOKEN_TRY(const FoundDrafters found, FindDrafters(options));
  for (const FoundDrafters::Drafter& drafter : found.drafters)
    if (const DrafterInfo* const row = FindDrafter(drafter.method); row && row->copies_target)
      o.method = drafter.method + ",ngram";
  return {};
}

}  // namespace foretoken::cli
