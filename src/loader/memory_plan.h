// SPDX-License-Identifier: Apache-2.0
// loader/memory_plan.h: whether the models of an engine fit memory, and what is done if they do not.
// It is decided before anything is loaded.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/machine/memory_limit.h"
#include "foretoken/options.h"
#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "loader/model_part.h"

namespace foretoken::loader {

// All but the scratch memory, which is small beside these. Where ranks share the network: of this one.
MemoryNeeds NeedsOf(const ModelPart& part, const formats::Checkpoint& checkpoint);

// What is asked of memory.
struct MemoryUse {
  MemoryNeeds needs;
  int positions = 0, sequences = 1;  // of the cache
  bool may_page = false;             // tiles may be kept in files
};

struct MemoryPlan {
  MemoryNeeds needs;
  std::int64_t available = 0;
  bool paged = false;  // the experts stay in a file, and passes read those that they need
  // Bytes of experts that memory has room for, if they are paged.
  std::int64_t resident_experts = 0;
  std::string notice = {};  // of memory that is short without harm so far; or ""
};

// What is known about memory.
struct MemoryFacts {
  std::span<const MemoryLimit> limits;
  std::int64_t available = 0;
};

// Experts are paged if they may be, and if all weights and the cache take more than nine tenths of what
// is available. Errors: kTooLarge: a limit leaves too little for what cannot be paged.
[[nodiscard]] Result<MemoryPlan> PlanMemory(const MemoryUse& use, const MemoryFacts& facts);
// PlanMemory with the limits of this process.
[[nodiscard]] Result<MemoryPlan> PlanMemory(const MemoryUse& use);

// What paging costs, for people. token_bytes: weights of the experts that one token uses, of all layers.
// bytes_per_second: the speed at which the file was read; 0: not known.
std::string PagingNotice(const MemoryPlan& plan, const std::string& file, std::int64_t token_bytes,
                         double bytes_per_second);

}  // namespace foretoken::loader
