// SPDX-License-Identifier: Apache-2.0
#include "server/overload.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "base/machine/memory_limit.h"
#include "server/net/client_address.h"
#include "server/net/quota.h"

namespace foretoken::server {
namespace {

using OverloadState = Overload::State;

constexpr std::int64_t kMiB = 1 << 20, kGiB = 1 << 30;

// With a ceiling that this process does not reach.
MemoryPlan Plan(std::int64_t requests) {
  return {.ceiling = 64 * kGiB, .base = 8 * kGiB, .requests = requests, .work = kMiB};
}

TEST(ByteLedger, HoldsAddUpAndEnd) {
  ByteLedger ledger;
  const auto account = std::make_shared<ByteLedger::Account>(ledger);
  {
    ByteHold one(account, 10), two(account);
    two.Set(5);
    EXPECT_EQ(ledger.held(), 15U);
    ByteHold moved(std::move(one));
    two.Set(2);
    EXPECT_EQ(account->held(), 12U);
    moved = ByteHold(account, 1);
    EXPECT_EQ(ledger.held(), 3U);
  }
  EXPECT_EQ(ledger.held(), 0U);
}

TEST(Overload, StatesComeAsRequestsHoldMoreAndGoSomewhatLater) {
  ByteLedger ledger;
  Overload overload(Plan(1000), ledger);
  ByteHold held(std::make_shared<ByteLedger::Account>(ledger));
  const auto state_at = [&](std::size_t bytes) {
    held.Set(bytes);
    overload.Look();
    return overload.state();
  };
  EXPECT_EQ(state_at(599), OverloadState::kNone);
  EXPECT_EQ(state_at(600), OverloadState::kEndingConnections);
  EXPECT_EQ(state_at(550), OverloadState::kEndingConnections);
  EXPECT_EQ(state_at(800), OverloadState::kRefusingRequests);
  EXPECT_EQ(state_at(920), OverloadState::kDroppingLargest);
  EXPECT_EQ(overload.Excess(), 100U);
  EXPECT_EQ(state_at(830), OverloadState::kDroppingLargest);
  EXPECT_EQ(state_at(819), OverloadState::kRefusingRequests);
  EXPECT_EQ(overload.Excess(), 0U);
  EXPECT_EQ(state_at(699), OverloadState::kEndingConnections);
  EXPECT_EQ(state_at(499), OverloadState::kNone);
}

TEST(Overload, WhatIsHeldSaysSoBeforeTheNextLook) {
  ByteLedger ledger;
  const Overload overload(Plan(1000), ledger);
  const ByteHold held(std::make_shared<ByteLedger::Account>(ledger), 1001);
  EXPECT_TRUE(overload.refuses_requests());
  EXPECT_TRUE(overload.full());
}

TEST(Overload, WhatTheProcessHasCountsToo) {
  const std::int64_t resident = ReadProcessMemory().resident_bytes;
  ByteLedger ledger;
  MemoryPlan plan = Plan(kGiB);
  plan.weights = kGiB;  // so that all pages of files may be weights
  plan.base = resident - 15 * kMiB;
  plan.ceiling = resident + 85 * kMiB;
  EXPECT_EQ(Overload(plan, ledger).state(), OverloadState::kNone);
  plan.ceiling = resident + 2 * kMiB;  // 15 of 17
  EXPECT_EQ(Overload(plan, ledger).state(), OverloadState::kRefusingRequests);
}

TEST(PlanMemory, LeavesRoomBesideTheModelOrSaysWhatIsMissing) {
  EngineSummary engine;
  engine.target.weight_bytes = 2 * kGiB;
  engine.target.cache_bytes = kGiB;
  const auto plan = PlanMemory(engine, 4 * kGiB, 8 * kMiB, 4);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->base, 3 * kGiB);
  EXPECT_EQ(plan->requests, 256 * kMiB);
  EXPECT_EQ(plan->work, 384 * kMiB);
  EXPECT_LE(plan->base + plan->requests + plan->work, plan->ceiling);
  const auto tight = PlanMemory(engine, 3 * kGiB + 100 * kMiB, 8 * kMiB, 4);
  ASSERT_TRUE(tight);
  EXPECT_EQ(tight->requests, 25 * kMiB);
  EXPECT_EQ(tight->work, 40 * kMiB);
  const auto none = PlanMemory(engine, 3 * kGiB + 31 * kMiB, 8 * kMiB, 4);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message.substr(0, 12), "max-memory: ");
}

TEST(Overload, PagesOfFilesBeyondTheWeightsDoNotCount) {
  constexpr std::size_t kBytes = 64 * kMiB;
  void* const pages =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  std::memset(pages, 1, kBytes);
  const ProcessMemory now = ReadProcessMemory();
  EXPECT_GE(now.file_bytes, 64 * kMiB);
  ByteLedger ledger;
  MemoryPlan plan = Plan(kGiB);
  EXPECT_LE(Overload(plan, ledger).resident(), now.resident_bytes - 63 * kMiB);
  plan.weights = now.file_bytes;
  EXPECT_GE(Overload(plan, ledger).resident(), now.resident_bytes - kMiB);
  munmap(pages, kBytes);
}

TEST(PlanMemory, AllWorkersAtOnceStayBelowTheCeiling) {
  EngineSummary engine;
  engine.target.weight_bytes = kGiB;
  for (const int n_workers : {2, 3, 4})
    for (const std::int64_t room : {40 * kMiB, 450 * kMiB, 4 * kGiB}) {
      const auto plan = PlanMemory(engine, kGiB + room, 8 * kMiB, n_workers);
      ASSERT_TRUE(plan);
      EXPECT_GE(plan->conversation, room / 24);
      EXPECT_GE(plan->grammars, room / 16);
      EXPECT_GE(plan->responses, room / 64);
      EXPECT_LT(plan->base + plan->requests + plan->work + plan->grammars + plan->responses +
                    n_workers * plan->conversation,
                plan->ceiling)
          << n_workers << " workers in " << room / kMiB << " MiB";
    }
}

TEST(PlanMemory, TheDefaultHasAMargin) {
  const auto plan = PlanMemory({}, 0, kMiB, 2);
  ASSERT_TRUE(plan);
  EXPECT_LE(plan->ceiling, TightestMemoryLimit().bytes / 10 * 9 + 10);
}

TEST(Quota, EachClientHasItsOwnUntilItIsGivenBack) {
  Quota quota(2);
  auto one = quota.Take("a"), two = quota.Take("a");
  ASSERT_TRUE(one && two);
  EXPECT_FALSE(quota.Take("a"));
  EXPECT_TRUE(quota.Take("b"));
  one.reset();
  EXPECT_TRUE(two->Grow(1));
  EXPECT_FALSE(two->Grow(1));
  two.reset();
  auto all = quota.Take("a");
  EXPECT_FALSE(all->Grow(2));
  EXPECT_TRUE(all->Grow(1));
  Quota none(0);
  EXPECT_TRUE(none.Take("a")->Grow(1 << 20));
}

TEST(ClientAddress, OneClientIsAnAddressOrANetworkOfIpv6) {
  EXPECT_EQ(ClientOf("10.1.2.3"), "10.1.2.3");
  EXPECT_EQ(ClientOf("::ffff:10.1.2.3"), "10.1.2.3");
  EXPECT_EQ(ClientOf("2001:db8:1:2:3:4:5:6"), ClientOf("2001:db8:1:2::9"));
  EXPECT_NE(ClientOf("2001:db8:1:2::9"), ClientOf("2001:db8:1:3::9"));
  for (const char* const address : {"127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(IsThisMachine(address)) << address;
  for (const char* const address : {"10.0.0.1", "2001:db8::1", "::2", "what"})
    EXPECT_FALSE(IsThisMachine(address)) << address;
}

TEST(ClientAddress, OfAForwardedListTheLastIsBelieved) {
  HttpRequest request;
  EXPECT_EQ(ForwardedAddress(request, "x-forwarded-for"), "");
  request.fields = {{"x-forwarded-for", "1.1.1.1"}, {"x-forwarded-for", "2.2.2.2, 3.3.3.3 "}};
  EXPECT_EQ(ForwardedAddress(request, "x-forwarded-for"), "3.3.3.3");
  request.fields = {{"x-forwarded-for", "1.1.1.1, unknown"}};
  EXPECT_EQ(ForwardedAddress(request, "x-forwarded-for"), "");
}

}  // namespace
}  // namespace foretoken::server
