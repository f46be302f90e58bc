// SPDX-License-Identifier: Apache-2.0
// async/mailbox.h: the events of a request between the engine's thread and its reader.
//
// The engine's thread never waits for the reader.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "foretoken/event_stream.h"

namespace foretoken::async {

// Why a request ends before its choices do.
enum class Failure { kNone, kNoMemory, kDeadline, kStopped };

class Mailbox {
 public:
  using Clock = std::chrono::steady_clock;

  // counter: of the events that were not read; or null.
  Mailbox(std::shared_ptr<ByteCounter> counter, Clock::time_point deadline)
      : counter_(std::move(counter)), deadline_(deadline) {}

  // For the engine's thread. If there is no memory for the event, the request fails.
  void Push(StreamEvent event) noexcept;
  // Any thread. Nothing more is wanted; the reader gets an error after the events that are there.
  // The first failure stays.
  void Fail(Failure why) noexcept;

  // Any thread.
  void Cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_relaxed); }
  // Whether its choices are to run on. After its deadline the request fails.
  bool Wanted(Clock::time_point now) noexcept;
  Clock::time_point deadline() const { return deadline_; }

  // For the reader: the oldest event that it has not read, or the failure behind the last one.
  std::optional<StreamEvent> Take();
  // Returns when there is one, or at that time.
  void Await(Clock::time_point until);
  // As EventStream::Watch.
  void Watch(std::function<void()> ready);

 private:
  void Tell();

  const std::shared_ptr<ByteCounter> counter_;
  const Clock::time_point deadline_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<StreamEvent> events_;    // guarded
  Failure failure_ = Failure::kNone;  // guarded
  bool failure_was_read_ = false;     // guarded
  std::function<void()> ready_;       // guarded
  std::atomic<bool> cancelled_ = false;
};

}  // namespace foretoken::async
