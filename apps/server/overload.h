// SPDX-License-Identifier: Apache-2.0
// server/overload.h: one ceiling for the memory of the process, and what the server gives up, in
// which order, before it is reached.
//
// What requests hold is counted (byte_ledger.h) against what they may hold; what the process really
// has is read from the system against what the ceiling leaves beside the model. The fuller of the
// two says how full the server is. As it fills, connections end after their answers, then new
// requests are refused, then the largest of those that wait; each state is left somewhat below
// where it was entered. Paths that tell of the server's health are answered in all of them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "foretoken/engine.h"
#include "foretoken/result.h"
#include "server/byte_ledger.h"

namespace foretoken::server {

// Bytes.
struct MemoryPlan {
  std::int64_t ceiling = 0;  // of all that the process has in memory
  std::int64_t weights = 0, cache = 0;
  std::int64_t base = 0;      // the process without requests, with the whole cache in use
  std::int64_t requests = 0;  // that requests may hold
  std::int64_t work = 0;      // that reading large bodies may take beside
};

// A byte of a body is at most so many in memory while a worker reads it: as a value of JSON (28),
// or as a piece of text that becomes tokens (45).
inline constexpr std::int64_t kWorkPerBodyByte = 48;

// ceiling: 0: nine tenths of what the machine, its control group or a resource limit allows.
// REQUIRES: the engine is open and has run. Errors: kTooLarge: too little is left beside the model.
[[nodiscard]] Result<MemoryPlan> PlanMemory(const EngineSummary& engine, std::int64_t ceiling,
                                            std::int64_t max_body_bytes);

class Overload {
 public:
  enum class State { kNone, kEndingConnections, kRefusingRequests, kDroppingLargest };
  using Clock = std::chrono::steady_clock;

  // `bytes` must outlive it.
  Overload(const MemoryPlan& plan, const ByteLedger& bytes);

  // Reads what the process has; the thread of all connections, every few milliseconds.
  void Look();
  // Any thread; as of the last look, or what is held by now if that says more.
  State state() const;
  bool ends_connections() const { return state() >= State::kEndingConnections; }
  bool refuses_requests() const { return state() >= State::kRefusingRequests; }
  // Requests hold all that they may.
  bool full() const;
  // How much the largest are to give back; 0: nothing. The thread of all connections.
  std::size_t Excess() const;
  // The allocator seems to keep much that nobody holds: TrimMemory is to be called, by a thread
  // that may wait.
  bool WantsTrim(Clock::time_point now);

  const MemoryPlan& plan() const { return plan_; }
  std::int64_t resident() const { return resident_.load(std::memory_order_relaxed); }
  std::int64_t held() const { return static_cast<std::int64_t>(bytes_.held()); }

 private:
  double Fill() const;

  const MemoryPlan plan_;
  const ByteLedger& bytes_;
  std::atomic<std::int64_t> resident_ = 0;
  std::atomic<State> state_ = State::kNone;
  std::int64_t least_kept_ = INT64_MAX;  // by the process, beside what requests hold
  Clock::time_point trimmed_;
  Clock::duration trim_pause_ = {};
};

std::string_view Name(Overload::State state);

// Before the first request: large buffers go back to the system as soon as they are free.
void ReturnLargeBuffers();
// What nobody uses goes back to the system. It takes milliseconds.
void TrimMemory();

}  // namespace foretoken::server
