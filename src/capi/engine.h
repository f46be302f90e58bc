// SPDX-License-Identifier: Apache-2.0
// capi/engine.h: an engine of foretoken.h: one with a thread of its own.
#pragma once

#include <memory>

#include "capi/options.h"
#include "foretoken/async_engine.h"

struct foretoken_engine {
  std::unique_ptr<foretoken::AsyncEngine> engine;
};

namespace foretoken::capi {

// What an engine or a scorer opens. An object of the caller's drafter is new with each call.
EngineOptions EngineOptionsOf(const foretoken_options& options);

// The request of options. `fault` is set when one of its processors fails.
Request RequestOf(const foretoken_options& options, const ProcessorFault& fault);

}  // namespace foretoken::capi
