// SPDX-License-Identifier: Apache-2.0
#include "server/overload.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <array>

#include "base/machine/memory_limit.h"

namespace foretoken::server {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kLeastRoom = 32 * kMiB;  // left beside the model
constexpr std::int64_t kUsualRequests = 256 * kMiB, kUsualConversation = 256 * kMiB,
                       kUsualGrammars = 256 * kMiB, kUsualResponses = 64 * kMiB;

// The fill level at which a state begins; it ends kSlack below that.
constexpr std::array kBegins = {0.0, 0.6, 0.8, 0.92};
constexpr double kSlack = 0.1;

// Larger buffers go back to the system at once. Smaller ones stay with the allocator, because
// requesting them again costs more than filling them.
constexpr int kLargeBuffer = 2 << 20, kKeptFree = 16 << 20;
constexpr std::int64_t kWorthTrimming = 32 * kMiB;
constexpr std::chrono::seconds kLeastTrimPause{1}, kMostTrimPause{30};

// The system drops pages of files when it needs room, so they are no sign of shortage, unless they are
// weights that every pass reads. (Of experts that do not fit memory, it keeps as many as there is room.)
std::int64_t ResidentBytes(std::int64_t weights) {
  const ProcessMemory now = ReadProcessMemory();
  return now.resident_bytes - std::max<std::int64_t>(0, now.file_bytes - weights);
}

std::int64_t DefaultCeiling(std::int64_t resident) {
  const MemoryLimit limit = TightestMemoryLimit();
  const std::int64_t all = limit.used_bytes > 0 ? resident + limit.left() : limit.bytes;
  return all - all / 10;
}

}  // namespace

Result<MemoryPlan> PlanMemory(const EngineSummary& engine, std::int64_t ceiling,
                              std::int64_t max_body_bytes, int n_workers) {
  MemoryPlan plan{.weights = engine.target.weight_bytes, .cache = engine.target.cache_bytes};
  for (const DrafterSummary& draft : engine.drafters) {
    plan.weights += draft.model.weight_bytes;
    plan.cache += draft.model.cache_bytes;
  }
  const std::int64_t resident = ResidentBytes(plan.weights);
  plan.base = std::max(resident, plan.weights) + plan.cache;
  plan.ceiling = ceiling > 0 ? ceiling : DefaultCeiling(resident);
  const std::int64_t room = plan.ceiling - plan.base;
  if (room < kLeastRoom)
    return Fail(ErrorCode::kTooLarge,
                fmt::format("max-memory: the program, weights and cache take {} MiB of {}, and "
                            "requests need {} at least; raise it, or lower --ctx-size or "
                            "--parallel",
                            plan.base / kMiB, plan.ceiling / kMiB, kLeastRoom / kMiB));
  plan.work = std::min(kWorkPerBodyByte * max_body_bytes, room * 2 / 5);
  plan.requests = std::min(std::max(kUsualRequests, 4 * max_body_bytes), room / 4);
  plan.grammars = std::min(kUsualGrammars, room / 8);
  plan.responses = std::min(kUsualResponses, room / 64);
  const std::int64_t taken = plan.work + plan.requests + plan.grammars + plan.responses;
  plan.conversation = std::min(kUsualConversation, (room - taken) / (n_workers + 1));
  return plan;
}

Overload::Overload(const MemoryPlan& plan, const ByteLedger& bytes) : plan_(plan), bytes_(bytes) {
  Look();
}

double Overload::Fill() const {
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(whole, 1));
  };
  return std::max(share(held(), plan_.requests),
                  share(resident() - plan_.base, plan_.ceiling - plan_.base));
}

Overload::State Overload::state() const {
  const double fill = Fill();
  State state = state_.load(std::memory_order_relaxed);
  for (int i = static_cast<int>(state) + 1; i < static_cast<int>(kBegins.size()); ++i)
    if (fill >= kBegins[static_cast<std::size_t>(i)]) state = static_cast<State>(i);
  return state;
}

void Overload::Look() {
  resident_.store(ResidentBytes(plan_.weights), std::memory_order_relaxed);
  int now = static_cast<int>(state());
  const double fill = Fill();
  while (now > 0 && fill < kBegins[static_cast<std::size_t>(now)] - kSlack) --now;
  state_.store(static_cast<State>(now), std::memory_order_relaxed);
}

bool Overload::full() const {
  return held() > plan_.requests;
}

std::size_t Overload::Excess() const {
  if (state() != State::kDroppingLargest) return 0;
  const auto enough = [](std::int64_t bytes) {
    return static_cast<std::int64_t>((kBegins.back() - kSlack) * static_cast<double>(bytes));
  };
  const std::int64_t room = plan_.ceiling - plan_.base;
  return static_cast<std::size_t>(
      std::max({std::int64_t{0}, held() - enough(plan_.requests),
                std::min(held(), resident() - plan_.base - enough(room))}));
}

bool Overload::WantsTrim(Clock::time_point now) {
  const std::int64_t kept = resident() - held();
  least_kept_ = std::min(least_kept_, kept);
  if (kept - least_kept_ < kWorthTrimming) {
    trim_pause_ = kLeastTrimPause;
    return false;
  }
  if (now - trimmed_ < trim_pause_) return false;
  trim_pause_ = std::min<Clock::duration>(2 * trim_pause_,
                                          kMostTrimPause);  // it may be in use, and not come back
  trimmed_ = now;
  return true;
}

std::string_view Name(Overload::State state) {
  constexpr std::array<std::string_view, 4> kNames = {"none", "ending_connections",
                                                      "refusing_requests", "dropping_largest"};
  return kNames[static_cast<std::size_t>(state)];
}

void ReturnLargeBuffers() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, kLargeBuffer);  // also after a large buffer was freed
  mallopt(M_TRIM_THRESHOLD, kKeptFree);
#endif
}

void TrimMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace foretoken::server
