// SPDX-License-Identifier: Apache-2.0
#include "loader/memory_plan.h"

#include <gtest/gtest.h>

#include "base/failure_testing.h"

namespace foretoken::loader {
namespace {

constexpr std::int64_t kGiB = 1 << 30;

// 2 GiB of dense weights and a cache of 1; `experts` GiB of experts.
MemoryUse Use(std::int64_t experts, bool may_page = true) {
  return {.needs = {.dense = 2 * kGiB, .experts = experts * kGiB, .cache = kGiB},
          .positions = 4096,
          .sequences = 2,
          .may_page = may_page};
}

Result<MemoryPlan> PlanFor(const MemoryUse& use, std::int64_t machine, std::int64_t available) {
  const std::vector<MemoryLimit> limits = {{.who = "this machine has", .bytes = machine * kGiB}};
  return PlanMemory(use, {.limits = limits, .available = available * kGiB});
}

TEST(MemoryPlan, ModelsThatFitAreNotPaged) {
  const auto plan = PlanFor(Use(6), 16, 12);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->paged);
  EXPECT_EQ(plan->notice, "");
}

TEST(MemoryPlan, ExpertsThatDoNotFitArePaged) {
  const auto plan = PlanFor(Use(20), 16, 10);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->paged);
  EXPECT_EQ(plan->resident_experts, 6 * kGiB);  // nine tenths of 10, less 3
  EXPECT_EQ(plan->notice, "");
}

TEST(MemoryPlan, ExpertsArePagedWhereOtherProgramsHaveTheMemory) {
  EXPECT_TRUE(PlanFor(Use(6), 16, 9)->paged);
  EXPECT_TRUE(PlanFor(Use(6), 16, 9)->notice.empty());
  const auto plan = PlanFor(Use(6), 16, 2);  // not even the dense weights have room
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->resident_experts, 0);
  EXPECT_NE(plan->notice.find("need 3.00 GiB"), std::string::npos) << plan->notice;
  EXPECT_NE(plan->notice.find("2.00 GiB are available now"), std::string::npos) << plan->notice;
}

TEST(MemoryPlan, CheckpointsOfStatesAreTold) {
  MemoryUse use = Use(0);
  use.needs.cache = 4 * kGiB, use.needs.checkpoints = 3 * kGiB;
  EXPECT_EQ(
      MessageOf(PlanFor(use, 5, 5)),
      "memory: weights and a cache of 4096 positions for 2 sequence(s) need 6.00 GiB (the cache "
      "4.00 GiB, 3.00 GiB of it for checkpoints of states), and this machine has 5.00 GiB; raise "
      "EngineOptions::state_checkpoint_tokens (0: no checkpoints), or lower "
      "EngineOptions::context_size");
  use.needs.checkpoints = kGiB;
  EXPECT_NE(PlanFor(use, 5, 5).error().message.find("; lower EngineOptions::context_size"),
            std::string::npos);
}

TEST(MemoryPlan, WhatCannotBePagedMustFit) {
  const auto dense = PlanFor(Use(20), 2, 2);
  ASSERT_TRUE(Fails(dense, ErrorCode::kTooLarge));
  EXPECT_EQ(
      dense.error().message,
      "memory: weights and a cache of 4096 positions for 2 sequence(s) need 3.00 GiB (the cache "
      "1.00 GiB), and this machine has 2.00 GiB; lower EngineOptions::context_size, or take a "
      "smaller number type "
      "(foretoken quantize)");
  EXPECT_TRUE(Fails(PlanFor(Use(20, false), 16, 16), "leave EngineOptions::repack_cache on"));
  EXPECT_TRUE(PlanFor(Use(20, false), 32, 16)) << "it may take memory from others, as before";
}

TEST(MemoryPlan, LimitsOfAddressesCountPagedExperts) {
  const std::vector<MemoryLimit> limits = {
      {.who = "ulimit -v leaves", .bytes = 16 * kGiB, .used_bytes = 1}};
  EXPECT_TRUE(
      Fails(PlanMemory(Use(20), {.limits = limits, .available = 10 * kGiB}), "need 23.00 GiB"));
}

TEST(MemoryPlan, TheNoticeNamesWhatATokenCosts) {
  const auto plan = PlanFor(Use(20), 16, 10);
  EXPECT_EQ(PagingNotice(*plan, "m.tiles", kGiB, 1e9),
            "memory: the experts take 20.00 GiB, and 6.00 of 10.00 GiB are left for them; the "
            "others are read from m.tiles when a token needs them: about 717 MiB a token, which "
            "takes 0.75 s at the 1.00 GB/s that were measured. A smaller number type, a smaller "
            "EngineOptions::context_size or more memory makes it faster");
  EXPECT_EQ(PagingNotice(*plan, "m.tiles", kGiB, 0).find("measured"), std::string::npos);
}

}  // namespace
}  // namespace foretoken::loader
