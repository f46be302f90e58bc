// SPDX-License-Identifier: Apache-2.0
// foretoken/event_stream.h: what an AsyncEngine reports about a request, in order: each choice
// begins, has rounds and ends.
//
// The engine never waits for a reader. A slow reader cannot make it hold much: a choice has at most
// one event for each token, one for its beginning and one for its end.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretoken/engine.h"
#include "foretoken/request.h"
#include "foretoken/result.h"

namespace foretoken {

namespace async {
class Mailbox;
}

// A count of bytes that wait between threads, which a program implements that bounds their memory.
class ByteCounter {
 public:
  virtual ~ByteCounter() = default;
  // Adds to the count, modulo 2^64: adding 0 - n takes n bytes off. Any thread, several at once.
  virtual void Add(std::size_t bytes) noexcept = 0;
};

// Bytes that a counter counts while this object lives. One thread at a time.
class ByteHold {
 public:
  ByteHold() = default;
  // A null counter counts nothing.
  explicit ByteHold(std::shared_ptr<ByteCounter> counter, std::size_t bytes = 0) noexcept
      : counter_(std::move(counter)) {
    Set(bytes);
  }
  ~ByteHold() { Set(0); }
  ByteHold(ByteHold&& other) noexcept
      : counter_(std::move(other.counter_)), bytes_(std::exchange(other.bytes_, 0)) {}
  ByteHold& operator=(ByteHold&& other) noexcept {
    std::swap(counter_, other.counter_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  void Set(std::size_t bytes) noexcept {
    if (counter_) counter_->Add(bytes - std::exchange(bytes_, bytes));
  }

 private:
  std::shared_ptr<ByteCounter> counter_;
  std::size_t bytes_ = 0;
};

struct RoundToken {
  std::int32_t id = 0;
  TokenOrigin origin = TokenOrigin::kPlain;
  std::optional<TokenLogprobs> logprobs;  // if asked for
};

// A RoundEvent, with everything that it points to.
struct RoundRecord {
  std::string text;  // whole characters
  std::vector<RoundToken> tokens;
  std::vector<std::int32_t> rejected;
  int drafted = 0;
  std::string drafter;                         // "ngram"; empty if nothing was drafted
  std::vector<TokenLogprobs> prompt_logprobs;  // with the first round, if asked for
};

struct DrafterCount {
  std::int64_t rounds = 0, drafted = 0, accepted = 0;

  DrafterCount& operator+=(const DrafterCount& more) {
    rounds += more.rounds, drafted += more.drafted, accepted += more.accepted;
    return *this;
  }
};
using DrafterCounts = std::map<std::string, DrafterCount, std::less<>>;

// The sums of the rounds that a choice reported. Its completion counts those too that came after
// the choice was cancelled.
struct RoundCounts {
  std::int64_t draft_rounds = 0, drafted = 0, verified = 0, accepted = 0;
  std::int64_t recovered = 0, bonus = 0, plain = 0;
};

// The result of a choice, and what the engine's thread measured.
struct ChoiceEnd {
  Completion completion;        // Completion::error: the other choices continue
  std::string method;           // what was to draft for it
  bool first_of_prompt = true;  // as it was submitted
  DrafterCounts drafters;
  RoundCounts reported;
  double queue_ms = 0, first_token_ms = 0, total_ms = 0;  // since the request's arrival
  // The time of its decoding, and an estimate of what that would have taken without drafts; 0: not
  // known.
  double actual_ms = 0, plain_ms = 0;
};

struct StreamEvent {
  enum class Kind {
    kBegun,  // the choice runs
    kRound,  // it has tokens: `round`
    kEnd,    // it has ended: `end`
    kFailed  // the request ends here, with all of its choices: `error`
  };
  Kind kind = Kind::kBegun;
  int choice = 0;  // index among the request's choices; -1 for kFailed
  RoundRecord round = {};
  std::optional<ChoiceEnd> end = {};
  // kDeadline: it did not end in time. kStopped: the engine was stopped. kNoMemory: there was none
  // for an event.
  Error error = {};
  ByteHold held = {};  // counts the memory of this event
};

// The events of one request. One thread at a time reads them. It may outlive the engine.
//
// When it is destroyed before its end, the request is cancelled.
class EventStream {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  EventStream(EventStream&& other) noexcept;
  EventStream& operator=(EventStream&& other) noexcept;
  ~EventStream();

  // The oldest event that was not read; waits for one. Nothing: all choices have ended, or the
  // request has failed.
  std::optional<StreamEvent> Next();
  // Next, which waits no longer than until then. Nothing: no event came in time, or it has ended.
  std::optional<StreamEvent> NextUntil(TimePoint until);
  // Next without waiting.
  std::optional<StreamEvent> TryNext();
  // The reader has got the end of every choice, or the failure of the request.
  bool ended() const;

  // Reads to the end and gives the completions, in the order of the choices. Errors: the request's
  // (StreamEvent::error), or the first Completion::error; the request is cancelled then. Choices
  // whose ends were read before are empty.
  [[nodiscard]] Result<std::vector<Completion>> Collect();

  // `ready` is called after each event that comes from now on, on the engine's thread or on the one
  // that stops the engine. It must be quick, must not throw, and must not use this stream. For
  // programs that wait for many things at once; they read what has come already, then wait. Null:
  // no more calls; none is under way when Watch returns.
  void Watch(std::function<void()> ready);

  // Any thread. Its choices end at their next step, or before they begin (finish reason
  // "cancelled").
  void Cancel() noexcept;

  // The time at which the request fails if it has not ended. Any thread.
  TimePoint deadline() const;

 private:
  friend class AsyncEngine;
  EventStream(std::shared_ptr<async::Mailbox> mailbox, int n_choices);
  void Close() noexcept;

  std::shared_ptr<async::Mailbox> mailbox_;  // null: moved from
  int n_choices_ = 0, n_ended_ = 0;
  bool failed_ = false;
};

}  // namespace foretoken
