// SPDX-License-Identifier: Apache-2.0
#include "base/work_count.h"

#include <gtest/gtest.h>

#include <optional>

#include "foretoken/result.h"

namespace foretoken {
namespace {

// How many steps are counted until the work ends; nothing if all of `most` are.
std::optional<std::size_t> StepsUntilEnd(std::size_t most) {
  for (std::size_t i = 0; i < most; ++i) try {
      CountWork();
    } catch (const WorkCancelled&) {
      return i + 1;
    }
  return std::nullopt;
}

TEST(CancellationScope, IsAskedOncePerShareOfTheWork) {
  std::size_t n_asked = 0;
  const CancellationScope scope([&] { return ++n_asked, false; });
  EXPECT_EQ(StepsUntilEnd(10 * CancellationScope::kWorkPerQuestion), std::nullopt);
  EXPECT_EQ(n_asked, 10U);
  EXPECT_FALSE(scope.cancelled());
}

TEST(CancellationScope, EndsTheWorkWhenTheAnswerIsYesAndAllThatFollows) {
  std::size_t n_asked = 0;
  {
    const CancellationScope scope([&] { return ++n_asked == 3; });
    EXPECT_EQ(StepsUntilEnd(1 << 20), 3 * CancellationScope::kWorkPerQuestion);
    EXPECT_TRUE(scope.cancelled());
    EXPECT_EQ(StepsUntilEnd(1 << 20), 1U);
    EXPECT_EQ(n_asked, 3U);
  }
  EXPECT_EQ(StepsUntilEnd(1 << 20), std::nullopt);
}

TEST(CancellationScope, InsideOfAnotherBothAreAsked) {
  bool gone = false;
  const CancellationScope outer([&] { return gone; });
  {
    const CancellationScope inner([] { return true; });
    EXPECT_TRUE(CancellationScope::AnyIsCancelled());
    EXPECT_FALSE(outer.cancelled());
  }
  EXPECT_FALSE(CancellationScope::AnyIsCancelled());
  gone = true;
  const CancellationScope inner([] { return false; });
  EXPECT_EQ(StepsUntilEnd(1 << 20), CancellationScope::kWorkPerQuestion);
  EXPECT_TRUE(outer.cancelled());
  EXPECT_FALSE(inner.cancelled());
}

TEST(CancellationScope, GivesFunctionsWithAResultAnError) {
  const CancellationScope scope([] { return true; });
  const auto result = CatchNoMemory("prompt", []() -> Result<int> {
    CountWork(CancellationScope::kWorkPerQuestion);
    return 1;
  });
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kStopped);
  EXPECT_EQ(result.error().message, "prompt: it was cancelled; ask again if you want it");
}

}  // namespace
}  // namespace foretoken
