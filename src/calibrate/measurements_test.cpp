// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "foretoken/tools/measure.h"

namespace foretoken {
namespace {

TEST(SpreadOf, MedianLeastAndMost) {
  const Spread odd = SpreadOf({3, 1, 100});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.least, 1);
  EXPECT_EQ(odd.most, 100);
  EXPECT_EQ(SpreadOf({4, 1, 2, 100}).median, 3);
  EXPECT_EQ(SpreadOf({5}).median, 5);
  EXPECT_EQ(SpreadOf({}).median, 0);
}

}  // namespace
}  // namespace foretoken
