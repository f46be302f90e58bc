// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "cli/generation.h"
#include "foretoken/engine.h"
#include "foretoken/request.h"

namespace foretoken::cli {

// Decodes the request with and without speculation, in turn, three times each, on one engine.
// Drafters forget between the runs what earlier ones taught them. What stays warm is what the
// engine measured: the costs of passes, and how often drafts were accepted.
// on_run gets the number of the run that begins, from 1, and how many there will be; where it or
// Ctrl-C says stop, or nothing was decoded, the result is absent.
[[nodiscard]] Result<std::optional<Comparison>> Compare(
    Engine& engine, const Request& request, const std::function<void(int run, int runs)>& on_run);

}  // namespace foretoken::cli
