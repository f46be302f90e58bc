// SPDX-License-Identifier: Apache-2.0
// server/mailbox.h: what the engine's thread tells the thread that serves a request.
//
// The engine never waits for a reader. A slow one cannot make it hold much: a choice gives one
// event for each round, of which there are no more than tokens, and one for its end.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "foretoken/engine.h"

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
};

class Mailbox {
 public:
  // The engine's thread.
  void Push(Event event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    filled_.notify_one();
  }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // The reader's. Nothing: none came in that time.
  std::optional<Event> Wait(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    if (!filled_.wait_for(lock, time, [this] { return !events_.empty(); })) return std::nullopt;
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }
  // No more of it is wanted: its choices end at their next step.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Event> events_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace foretoken::server
