// SPDX-License-Identifier: Apache-2.0
#include "async/request_queue.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/failure_testing.h"
#include "engine/step/fake_engine_testing.h"

namespace foretoken::async {
namespace {

using Kind = StreamEvent::Kind;
using std::chrono::milliseconds;

class Queue : public testing::Test {
 protected:
  // A request of n choices; its mailbox is the last one of `mailboxes`.
  RequestQueue::Choices Make(int n, Mailbox::Clock::time_point deadline = kNever) {
    const auto& mailbox = mailboxes.emplace_back(std::make_shared<Mailbox>(nullptr, deadline));
    RequestQueue::Choices choices;
    for (int i = 0; i < n; ++i) {
      auto prepared = engine.preparation->Prepare(engine::Ask(3, 4));
      choices.push_back(std::make_unique<Waiting>(
          Waiting{.choice = {.request = *std::move(prepared)}, .index = i, .mailbox = mailbox}));
    }
    return choices;
  }
  // The mailbox of the next choice that may run; null: none may.
  const Mailbox* Next() {
    const auto next = queue.Next(false, going);
    return next ? next->mailbox.get() : nullptr;
  }
  Mailbox& At(std::size_t i) { return *mailboxes[i]; }

  static constexpr auto kNever = Mailbox::Clock::time_point::max();
  engine::FakeEngine engine;
  std::vector<std::shared_ptr<Mailbox>> mailboxes;
  RequestQueue queue{2, 3};
  bool going = true;
};

TEST_F(Queue, ChoicesRunInTheOrderInWhichTheyCame) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue.Submit(Make(1)));
  EXPECT_EQ(queue.load().waiting, 3);
  EXPECT_EQ(Next(), &At(0));
  EXPECT_EQ(Next(), &At(1));
  EXPECT_EQ(Next(), nullptr);  // two run together
  EXPECT_EQ(queue.load().running, 2);
  queue.Done(At(0));
  EXPECT_EQ(Next(), &At(2));
  EXPECT_EQ(queue.load().waiting, 0);
}

TEST_F(Queue, WhatGoesOnIsTakenInAnyCaseButAStop) {
  ASSERT_TRUE(queue.Submit(Make(5)));
  EXPECT_FALSE(queue.Submit(Make(1)));
  EXPECT_TRUE(queue.Submit(Make(1), true));
  queue.Drain();
  EXPECT_FALSE(queue.Submit(Make(1)));
  EXPECT_TRUE(queue.Submit(Make(1), true));
  EXPECT_EQ(queue.load().waiting, 7);
  queue.Stop();
  EXPECT_FALSE(queue.Submit(Make(1), true));
}

TEST_F(Queue, TakesAllChoicesOfARequestOrNone) {
  ASSERT_TRUE(queue.Submit(Make(4)));
  EXPECT_TRUE(Fails(queue.Submit(Make(2)), ErrorCode::kBusy));
  EXPECT_EQ(queue.load().waiting, 4);
  EXPECT_TRUE(queue.Submit(Make(1)));
  EXPECT_EQ(queue.capacity(), 5);
}

TEST_F(Queue, ChoicesThatNobodyWantsMakeRoomAndEnd) {
  ASSERT_TRUE(queue.Submit(Make(5)));
  At(0).Cancel();
  ASSERT_TRUE(queue.Submit(Make(1)));
  EXPECT_EQ(queue.load().waiting, 1);
  for (int i = 0; i < 5; ++i) {
    const auto event = At(0).Take();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, Kind::kEnd);
    EXPECT_EQ(event->choice, i);
    EXPECT_EQ(event->end->completion.finish_reason, FinishReason::kCancelled);
  }
  EXPECT_EQ(Next(), &At(1));
}

TEST_F(Queue, ChoicesThatWaitedTooLongFail) {
  ASSERT_TRUE(queue.Submit(Make(2, Mailbox::Clock::now())));
  EXPECT_EQ(Next(), nullptr);
  EXPECT_EQ(queue.load().waiting, 0);
  EXPECT_EQ(At(0).Take()->error.code, ErrorCode::kDeadline);
  EXPECT_FALSE(At(0).Take());
}

TEST_F(Queue, ADrainingQueueKeepsWhatItHasAndTakesNothing) {
  ASSERT_TRUE(queue.Submit(Make(1)));
  queue.Drain();
  EXPECT_TRUE(queue.draining());
  EXPECT_EQ(queue.Submit(Make(1)).error().code, ErrorCode::kStopped);
  EXPECT_FALSE(queue.AwaitIdle(milliseconds(1)));
  EXPECT_EQ(Next(), &At(0));
  EXPECT_FALSE(queue.AwaitIdle(milliseconds(1)));
  std::thread other([&] { queue.Done(At(0)); });
  EXPECT_TRUE(queue.AwaitIdle(std::chrono::seconds(900)));
  other.join();
  EXPECT_TRUE(going);
}

TEST_F(Queue, CancelledChoicesDoNotDelayADrain) {
  ASSERT_TRUE(queue.Submit(Make(2)));
  queue.Drain();
  At(0).Cancel();
  EXPECT_TRUE(queue.AwaitIdle(milliseconds(1)));
  EXPECT_EQ(At(0).Take()->kind, Kind::kEnd);
}

TEST_F(Queue, AStopFailsWhatRunsAndWhatWaits) {
  ASSERT_TRUE(queue.Submit(Make(3)));
  ASSERT_TRUE(queue.Submit(Make(1)));
  EXPECT_EQ(Next(), &At(0));
  queue.Stop();
  for (std::size_t i : {0u, 1u}) {
    EXPECT_EQ(At(i).Take()->error.code, ErrorCode::kStopped);
    EXPECT_FALSE(At(i).Take());
  }
  EXPECT_EQ(Next(), nullptr);
  EXPECT_FALSE(going);
  EXPECT_EQ(queue.Submit(Make(1)).error().code, ErrorCode::kStopped);
  queue.Done(At(0));
  EXPECT_EQ(queue.load().running, 0);
  EXPECT_TRUE(queue.AwaitIdle(milliseconds(0)));
}

TEST_F(Queue, AStopWakesTheEngineThatWaits) {
  std::thread engine_thread([&] { EXPECT_FALSE(queue.Next(true, going)); });
  std::this_thread::sleep_for(milliseconds(10));
  queue.Stop();
  engine_thread.join();
  EXPECT_FALSE(going);
}

}  // namespace
}  // namespace foretoken::async
