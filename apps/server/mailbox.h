// SPDX-License-Identifier: Apache-2.0
// server/mailbox.h: what the engine's thread tells of a request, for the thread of all connections.
//
// The engine never waits for a reader. A slow one cannot make it hold much: a choice gives one
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
#include "server/byte_ledger.h"

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

// A choice's end: its completion and what the server measured of it.
struct ChoiceEnd {
  Completion completion;
  DrafterCounts drafters;
  double queue_ms = 0, first_token_ms = 0, total_ms = 0;  // since the request's arrival
  double actual_ms = 0, plain_ms = 0;  // decoding, and what it would have taken without drafts
};

struct Event {
  enum class Kind { kBegun, kRound, kEnd, kError };
  Kind kind = Kind::kBegun;
  int choice = 0;  // among the request's
  RoundRecord round = {};
  std::optional<ChoiceEnd> end = {};
  Error error = {};
  ByteLedger::Hold held = {};  // for all of this
};

class Mailbox {
 public:
  explicit Mailbox(std::shared_ptr<ByteLedger::Account> account) : account_(std::move(account)) {}

  // The engine's thread. Where memory for an event is refused, the reader gets an error after what
  // came before, and nothing more is wanted.
  void Push(Event event) noexcept;
  void FailForMemory() noexcept;
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // The reader's. The oldest event that it has not had.
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
  // `ready` is called by the engine's thread after each event, and must be quick; null: no more.
  void Watch(std::function<void()> ready) {
    const std::lock_guard lock(mutex_);
    ready_ = std::move(ready);
  }
  // No more of it is wanted: its choices end at their next step.
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
