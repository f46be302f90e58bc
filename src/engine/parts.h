// SPDX-License-Identifier: Apache-2.0
// engine/parts.h: gives the components access to an engine's parts.
#pragma once

#include "engine/impl.h"
#include "foretoken/drafts.h"

namespace foretoken {

class EngineParts {
 public:
  using Impl = Engine::Impl;
  static Impl& Of(const std::unique_ptr<Engine>& engine) noexcept { return *engine->impl_; }
  // Errors: kInvalidArgument.
  [[nodiscard]] static Result<engine::DraftWants> WantsOf(const DraftOptions& options);
};

}  // namespace foretoken
