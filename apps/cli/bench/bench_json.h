// SPDX-License-Identifier: Apache-2.0
// cli/bench/bench_json.h: the JSON that `bench` reads and writes.
#pragma once

#include <string>

#include "base/json/json.h"
#include "cli/bench/bench_prompts.h"
#include "cli/bench/bench_report.h"
#include "foretoken/result.h"

namespace foretoken::cli {

// One line of a prompts file, without its origin. Errors: kInvalidFile.
[[nodiscard]] Result<BenchPrompt> PromptOfLine(const std::string& line);

// One JSON object: rates, speed-up and acceptance at K drafts.
Json BenchRowJson(const BenchRow& row, int k);

// Ends with a newline. What was not measured is absent or null.
std::string BenchJson(const Bench& bench);

}  // namespace foretoken::cli
