// SPDX-License-Identifier: Apache-2.0
#include "base/machine/pause.h"

#include <gtest/gtest.h>

#include <future>

namespace foretoken {
namespace {

TEST(Pause, LastsUntilItsTimeOrItsEnd) {
  Pause pause;
  EXPECT_TRUE(pause.For(std::chrono::milliseconds(1)));
  auto day = std::async(std::launch::async, [&pause] { return pause.For(std::chrono::hours(24)); });
  pause.End();
  EXPECT_FALSE(day.get());
  EXPECT_FALSE(pause.For(std::chrono::hours(24)));
}

}  // namespace
}  // namespace foretoken
