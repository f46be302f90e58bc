// SPDX-License-Identifier: Apache-2.0
// server/overload.h: one ceiling for the memory of the process, and what the server gives up, in
// which order, before it is reached.
//
// Memory of requests is counted (byte_ledger.h) against their limit. The real memory of the process
// is read from the system and compared with what the ceiling leaves beside the model. The fuller of
// the two decides. As it fills, first connections end after their answers, then new requests are
// refused, then the largest waiting requests are dropped. Each state ends somewhat below where it
// began. Paths that report the server's health are always answered.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "foretoken/engine.h"
#include "foretoken/result.h"
#include "server/net/byte_ledger.h"

namespace foretoken::server {

// In bytes.
struct MemoryPlan {
  std::int64_t ceiling = 0;  // for all memory of the process
  std::int64_t weights = 0, cache = 0;
  std::int64_t base = 0;          // the process without requests, with the whole cache in use
  std::int64_t requests = 0;      // the limit for requests
  std::int64_t work = 0;          // for reading large bodies, besides
  std::int64_t grammars = 0;      // for compiled grammars, besides
  std::int64_t responses = 0;     // for responses that clients may continue or read again, besides
  std::int64_t conversation = 0;  // the most that a worker takes to write one, besides
};

// The most memory for a byte of a body while a worker reads it: as a JSON value (28), or as a piece
// of text that becomes tokens (45).
inline constexpr std::int64_t kWorkPerBodyByte = 48;

// requests, work, grammars, responses and the conversations of all workers fit beside the base.
// ceiling: 0: nine tenths of what the machine, its control group or a resource limit allows.
// REQUIRES: the engine is open and has run. Errors: kTooLarge: the model leaves too little memory.
[[nodiscard]] Result<MemoryPlan> PlanMemory(const EngineSummary& engine, std::int64_t ceiling,
                                            std::int64_t max_body_bytes, int n_workers);

class Overload {
 public:
  enum class State { kNone, kEndingConnections, kRefusingRequests, kDroppingLargest };
  using Clock = std::chrono::steady_clock;

  // `bytes` must outlive it.
  Overload(const MemoryPlan& plan, const ByteLedger& bytes);

  // Reads the memory of the process. Called by the thread of all connections, every few
  // milliseconds.
  void Look();
  // Any thread. The state at the last look, or by the present bytes of requests if they are more.
  State state() const;
  bool ends_connections() const { return state() >= State::kEndingConnections; }
  bool refuses_requests() const { return state() >= State::kRefusingRequests; }
  // Requests hold all that they may hold.
  bool full() const;
  // How many bytes the largest requests must release; 0: none. For the thread of all connections.
  std::size_t Excess() const;
  // The allocator seems to keep much unused memory: a thread that may wait should call TrimMemory.
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
  std::int64_t least_kept_ = INT64_MAX;  // by the process, besides the bytes of requests
  Clock::time_point trimmed_;
  Clock::duration trim_pause_ = {};
};

std::string_view Name(Overload::State state);

// Call before the first request: large buffers then go back to the system as soon as they are free.
void ReturnLargeBuffers();
// Returns unused memory to the system. It takes milliseconds.
void TrimMemory();

}  // namespace foretoken::server
