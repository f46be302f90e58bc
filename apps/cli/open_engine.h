// SPDX-License-Identifier: Apache-2.0
// cli/open_engine.h: an engine for a verb: progress on a terminal, notices on standard error.
#pragma once

#include <memory>

#include "foretoken/engine.h"

namespace foretoken::cli {

// quiet: neither progress nor notices. logs: where standard error is no terminal, it gets a line of the
// progress every few seconds, and before the first one a line about memory. details: notices follow
// about files beside the model that do not draft for it. Errors: Engine::Open's.
[[nodiscard]] Result<std::unique_ptr<Engine>> OpenEngine(EngineOptions options, bool quiet,
                                                         bool logs = false, bool details = false);

// For verbs that examine drafts: a copy of the model that nobody asked for, and that would be made while the
// engine works, is asked for by name, so that it drafts from the first text on. Errors: those of the model's
// file.
[[nodiscard]] Status AskForOwnCopy(EngineOptions& options);

}  // namespace foretoken::cli
