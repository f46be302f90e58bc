// SPDX-License-Identifier: Apache-2.0
#include "async/mailbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace foretoken::async {
namespace {

using Kind = StreamEvent::Kind;
using std::chrono::milliseconds;

constexpr auto kNever = Mailbox::Clock::time_point::max();

class EventCounter final : public ByteCounter {
 public:
  void Add(std::size_t bytes) noexcept override { held += bytes; }
  std::atomic<std::size_t> held = 0;
};

StreamEvent Round(std::string text) {
  return {.kind = Kind::kRound, .round = {.text = std::move(text)}};
}

TEST(Mailbox, GivesEventsInOrderAndThenNothing) {
  Mailbox mailbox(nullptr, kNever);
  mailbox.Push({.kind = Kind::kBegun});
  mailbox.Push(Round("a"));
  EXPECT_EQ(mailbox.Take()->kind, Kind::kBegun);
  EXPECT_EQ(mailbox.Take()->round.text, "a");
  EXPECT_FALSE(mailbox.Take());
}

TEST(Mailbox, AFailureComesOnceBehindTheEventsThatAreThere) {
  Mailbox mailbox(nullptr, kNever);
  mailbox.Push(Round("a"));
  mailbox.Fail(Failure::kStopped);
  mailbox.Fail(Failure::kDeadline);  // the first one stays
  mailbox.Push(Round("b"));          // and nothing comes behind it
  EXPECT_TRUE(mailbox.cancelled());
  EXPECT_EQ(mailbox.Take()->round.text, "a");
  const auto failed = mailbox.Take();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->kind, Kind::kFailed);
  EXPECT_EQ(failed->error.code, ErrorCode::kStopped);
  EXPECT_FALSE(mailbox.Take());
}

TEST(Mailbox, EachFailureHasItsCode) {
  const std::pair<Failure, ErrorCode> codes[] = {{Failure::kNoMemory, ErrorCode::kNoMemory},
                                                 {Failure::kDeadline, ErrorCode::kDeadline},
                                                 {Failure::kStopped, ErrorCode::kStopped}};
  for (const auto& [failure, code] : codes) {
    Mailbox mailbox(nullptr, kNever);
    mailbox.Fail(failure);
    const auto failed = mailbox.Take();
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->error.code, code);
    EXPECT_NE(failed->error.message.find("request: "), std::string::npos);
  }
}

TEST(Mailbox, NobodyWantsItAfterItsDeadlineOrWhenItIsCancelled) {
  const auto now = Mailbox::Clock::now();
  Mailbox late(nullptr, now);
  EXPECT_TRUE(late.Wanted(now - milliseconds(1)));
  EXPECT_FALSE(late.Wanted(now));
  EXPECT_EQ(late.Take()->error.code, ErrorCode::kDeadline);
  Mailbox cancelled(nullptr, kNever);
  cancelled.Cancel();
  EXPECT_FALSE(cancelled.Wanted(now));
  EXPECT_FALSE(cancelled.Take());
}

TEST(Mailbox, TheCounterCountsWhatWasNotRead) {
  const auto counter = std::make_shared<EventCounter>();
  Mailbox mailbox(counter, kNever);
  mailbox.Push(Round(std::string(1000, 'a')));
  EXPECT_GT(counter->held, 1000u);
  const std::size_t one = counter->held;
  mailbox.Push(Round(std::string(1000, 'b')));
  EXPECT_EQ(counter->held, 2 * one);
  {
    const auto event = mailbox.Take();
    EXPECT_EQ(counter->held, 2 * one);  // the reader has it
  }
  EXPECT_EQ(counter->held, one);
  mailbox.Fail(Failure::kStopped);
  mailbox.Push(Round("dropped"));
  EXPECT_EQ(counter->held, one);
}

TEST(Mailbox, AReaderThatWaitsIsWoken) {
  Mailbox mailbox(nullptr, kNever);
  std::thread writer([&] {
    std::this_thread::sleep_for(milliseconds(20));
    mailbox.Push(Round("a"));
  });
  mailbox.Await(kNever);
  EXPECT_TRUE(mailbox.Take());
  writer.join();
  mailbox.Await(Mailbox::Clock::now() + milliseconds(5));  // nothing comes
  EXPECT_FALSE(mailbox.Take());
}

TEST(Mailbox, AWatcherIsCalledForEachEventUntilItIsTakenAway) {
  Mailbox mailbox(nullptr, kNever);
  int n = 0;
  mailbox.Watch([&] { ++n; });
  mailbox.Push(Round("a"));
  mailbox.Push(Round("b"));
  EXPECT_EQ(n, 2);
  mailbox.Watch(nullptr);
  mailbox.Fail(Failure::kStopped);
  EXPECT_EQ(n, 2);
}

TEST(Mailbox, AWatcherWithoutMemoryLosesNoEvent) {
  Mailbox mailbox(nullptr, kNever);
  mailbox.Watch([] { throw std::bad_alloc(); });
  mailbox.Push(Round("a"));
  EXPECT_EQ(mailbox.Take()->round.text, "a");
  EXPECT_EQ(mailbox.Take()->error.code, ErrorCode::kNoMemory);
}

}  // namespace
}  // namespace foretoken::async
