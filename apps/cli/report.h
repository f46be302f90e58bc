// SPDX-License-Identifier: Apache-2.0
// cli/report.h: how a verb ends.
#pragma once

#include <string>
#include <string_view>

#include "foretoken/result.h"

namespace foretoken::cli {

inline constexpr int kDone = 0, kFailed = 1, kBadUsage = 2, kInterrupted = 130;

// Prints "foretoken: <text>" on standard error: one line whatever the text contains, with flags where
// the library named options; a terminal shows it broken between words.
void ReportNotice(const std::string& text);

// Prints an error's message as a notice. Returns its exit code: 2 for wrong usage, else 1.
int ReportError(const Error& error);

// Writes a verb's whole output. raw: as in Output. Returns the exit code: an output that cannot be written is an
// error, a reader that closed the pipe is not.
int WriteOutput(std::string_view text, bool raw = false);

// Reports that memory is short, without needing any. Returns the exit code.
int ReportNoMemory() noexcept;

}  // namespace foretoken::cli
