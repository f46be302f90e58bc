// SPDX-License-Identifier: Apache-2.0
// cli/report.h: how a verb ends.
#pragma once

#include "foretoken/result.h"

namespace foretoken::cli {

inline constexpr int kDone = 0, kFailed = 1, kBadUsage = 2, kInterrupted = 130;

// Prints "foretoken: <message>" on standard error, in one line whatever the message holds, and
// returns the exit code that belongs to it: 2 for bad usage, else 1.
int ReportError(const Error& error);

}  // namespace foretoken::cli
