// SPDX-License-Identifier: Apache-2.0
// engine/sequence.h: one running request.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/emitter.h"
#include "engine/lookahead.h"
#include "foretoken/engine.h"
#include "sampling/sampler.h"
#include "verify/verifier.h"

namespace foretoken::engine {

struct Sequence {
  const Request* request = nullptr;
  std::size_t index = 0;      // among the requests of the call
  sampling::Sampler sampler;  // its text is the sequence's: prompt and committed tokens
  Emitter emitter;
  const verify::Verifier* verifier = nullptr;
  int k_ceiling = 0;                     // 0: this request decodes plainly
  std::unique_ptr<Lookahead> lookahead;  // null where it does
  Completion completion;

  bool uses_drafter() const { return k_ceiling > 0; }
};

}  // namespace foretoken::engine
