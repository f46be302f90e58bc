// SPDX-License-Identifier: Apache-2.0
#include "loader/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/local_runner.h"
#include "model/weights/weights.h"

namespace foretoken::loader {
namespace {

double GiB(std::int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 30);
}

std::string Parts(const MemoryUse& use, std::int64_t bytes) {
  const std::string copies =
      use.needs.checkpoints == 0
          ? ""
          : fmt::format(", {:.2f} GiB of it for checkpoints of states", GiB(use.needs.checkpoints));
  return fmt::format(
      "weights and a cache of {} positions for {} sequence(s) need {:.2f} GiB (the cache {:.2f} "
      "GiB{})",
      use.positions, use.sequences, GiB(bytes), GiB(use.needs.cache), copies);
}

// What to do where memory is short.
std::string Advice(const MemoryUse& use, bool paging_helps) {
  if (paging_helps)
    return "leave EngineOptions::repack_cache on, so that experts can be read from a file, or "
           "lower EngineOptions::context_size";
  if (2 * use.needs.checkpoints > use.needs.cache)
    return "raise EngineOptions::state_checkpoint_tokens (0: no checkpoints), or lower "
           "EngineOptions::context_size";
  return "lower EngineOptions::context_size, or take a smaller number type (foretoken quantize)";
}

// Pages of a file count in the address space, but can leave memory.
bool LimitsAddresses(const MemoryLimit& limit) {
  return limit.used_bytes > 0;
}

Status CheckLimit(const MemoryUse& use, bool may_page, const MemoryLimit& limit) {
  const MemoryNeeds& needs = use.needs;
  const bool addresses = LimitsAddresses(limit);
  const std::int64_t bytes = may_page && !addresses ? needs.Least() : needs.All();
  if (bytes <= limit.left()) return {};
  const bool paging_helps = !may_page && !addresses && needs.Least() <= limit.left();
  return Fail(ErrorCode::kTooLarge,
              fmt::format("memory: {}, and {} {:.2f} GiB; {}", Parts(use, bytes), limit.who,
                          GiB(limit.left()), Advice(use, paging_helps)));
}

}  // namespace

MemoryNeeds NeedsOf(const ModelPart& part, const formats::Checkpoint& checkpoint) {
  if (part.copy) return {.dense = part.copy_size.own};
  const model::WeightBytes weights = model::WeightBytesOf(checkpoint).PartOf(part.options.division);
  return {.dense = weights.dense + part.options.division.PartOf(part.reduced_output_bytes),
          .experts = weights.experts,
          .cache = model::CacheBytes(part.config, part.options),
          .checkpoints = model::CheckpointBytes(part.config, part.options),
          .embedding = weights.embedding};
}

Result<MemoryPlan> PlanMemory(const MemoryUse& use, const MemoryFacts& facts) {
  const MemoryNeeds& needs = use.needs;
  MemoryPlan plan{.needs = needs, .available = facts.available};
  const bool may_page = use.may_page && needs.experts > 0;
  for (const MemoryLimit& limit : facts.limits)
    FORETOKEN_CHECK_OK(CheckLimit(use, may_page, limit));
  const std::int64_t room = facts.available - facts.available / 10;
  plan.paged = may_page && needs.All() > room;
  if (plan.paged)
    plan.resident_experts = std::clamp<std::int64_t>(room - needs.Least(), 0, needs.experts);
  const std::int64_t least = plan.paged ? needs.Least() : needs.All();
  if (least > facts.available)
    plan.notice = fmt::format(
        "memory: {}, and {:.2f} GiB are available now; end other programs or lower "
        "EngineOptions::context_size, or "
        "passes may wait for the disk",
        Parts(use, least), GiB(facts.available));
  return plan;
}

Result<MemoryPlan> PlanMemory(const MemoryUse& use) {
  const std::vector<MemoryLimit> limits = MemoryLimits();
  return PlanMemory(use, {.limits = limits, .available = AvailableMemory()});
}

std::string PagingNotice(const MemoryPlan& plan, const std::string& file, std::int64_t token_bytes,
                         double bytes_per_second) {
  const MemoryNeeds& needs = plan.needs;
  const double absent = 1 - static_cast<double>(plan.resident_experts) /
                                static_cast<double>(std::max<std::int64_t>(1, needs.experts));
  const double bytes = absent * static_cast<double>(token_bytes);
  const std::string cost =
      bytes_per_second > 0
          ? fmt::format(", which takes {:.2f} s at the {:.2f} GB/s that were measured",
                        bytes / bytes_per_second, bytes_per_second / 1e9)
          : "";
  return fmt::format(
      "memory: the experts take {:.2f} GiB, and {:.2f} of {:.2f} GiB are left for them; the others "
      "are read from {} when a token needs them: about {:.0f} MiB a token{}. A smaller number "
      "type, "
      "a smaller EngineOptions::context_size or more memory makes it faster",
      GiB(needs.experts), GiB(plan.resident_experts), GiB(plan.available), file, bytes / (1 << 20),
      cost);
}

}  // namespace foretoken::loader
