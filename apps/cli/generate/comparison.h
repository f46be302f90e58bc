// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "cli/generate/generation.h"
#include "foretoken/engine.h"
#include "foretoken/request.h"

namespace foretoken::cli {

// Decodes the request with and without speculation, in turn, three times each, on one engine.
// Between the runs drafters forget what earlier runs taught them. What the engine measured stays:
// the costs of passes, and how often drafts were accepted. on_run gets the number of the run that
// begins, from 1, and the total. The result is absent if on_run or Ctrl-C stopped it, or if nothing
// was decoded.
[[nodiscard]] Result<std::optional<Comparison>> Compare(
    Engine& engine, const Request& request, const std::function<void(int run, int runs)>& on_run);

}  // namespace foretoken::cli
