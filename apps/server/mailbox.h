// SPDX-License-Identifier: Apache-2.0
// server/mailbox.h: what the engine's thread reports about a request, for the thread of all
// connections.
//
// The engine never waits for a reader. A slow reader cannot make it hold much: a choice has one
// event for each round, of which there are no more than tokens, and one for its end.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretoken/engine.h"
#include "foretoken/no_memory.h"
#include "server/net/byte_ledger.h"

namespace foretoken::server {

struct RoundToken {
  std::int32_t id = 0;
  TokenOrigin origin = TokenOrigin::kPlain;
  std::optional<TokenLogprobs> logprobs;
};

// RoundEvent, with everything it points to.
struct RoundRecord {
  std::string text;  // whole characters
  std::vector<RoundToken> tokens;
  std::vector<std::int32_t> rejected;
  int drafted = 0;
  std::string drafter;
  std::vector<TokenLogprobs> prompt_logprobs;
};

struct DrafterCount {
  std::int64_t rounds = 0, drafted = 0, accepted = 0;
};
using DrafterCounts = std::map<std::string, DrafterCount, std::less<>>;

// The end of a choice: its completion and the server's measurements.
struct ChoiceEnd {
  Completion completion;
  DrafterCounts drafters;
  double queue_ms = 0, first_token_ms = 0, total_ms = 0;  // since the request's arrival
  double actual_ms = 0, plain_ms = 0;                     // decoding, and its time without drafts
};

struct Event {
  enum class Kind { kBegun, kRound, kEnd, kError };
  Kind kind = Kind::kBegun;
  int choice = 0;  // index among the request's choices
  RoundRecord round = {};
  std::optional<ChoiceEnd> end = {};
  Error error = {};
  ByteLedger::Hold held = {};  // for all of this
};

class Mailbox {
 public:
  explicit Mailbox(std::shared_ptr<ByteLedger::Account> account) : account_(std::move(account)) {}

  // For the engine's thread. If memory for an event is refused, the reader gets an error after the
  // earlier events, and nothing more is wanted.
  void Push(Event event) noexcept;
  void FailForMemory() noexcept;
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // For the reader: the oldest event that it has not read.
  std::optional<Event> Take() {
    const std::lock_guard lock(mutex_);
    if (events_.empty()) {
      if (!std::exchange(no_memory_, false)) return std::nullopt;
      return Event{.kind = Event::Kind::kError, .error = foretoken::NoMemory("request")};
    }
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }
  // The engine's thread calls `ready` after each event; it must be quick. Null: no more calls.
  void Watch(std::function<void()> ready) {
    const std::lock_guard lock(mutex_);
    ready_ = std::move(ready);
  }
  // Nothing more is wanted: its choices end at their next step.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }

 private:
  const std::shared_ptr<ByteLedger::Account> account_;
  std::mutex mutex_;
  std::deque<Event> events_;     // guarded
  bool no_memory_ = false;       // guarded
  std::function<void()> ready_;  // guarded
  std::atomic<bool> cancelled_ = false;
};

}  // namespace foretoken::server
