// SPDX-License-Identifier: Apache-2.0
#include "cli/figure.h"

#include <gtest/gtest.h>

namespace foretoken::cli {
namespace {

TEST(Figure, HasThatManyDigits) {
  EXPECT_EQ(Figure(0), "0");
  EXPECT_EQ(Figure(1.9849), "1.98");
  EXPECT_EQ(Figure(105.97, 4), "106");
  EXPECT_EQ(Figure(0.0132), "0.0132");
}

TEST(Figure, IsWrittenWithoutAnExponentWhateverItsSize) {
  EXPECT_EQ(Figure(999.6), "1000");
  EXPECT_EQ(Figure(309361.4), "309361");
  EXPECT_EQ(Figure(0.0000612), "0.0000612");
  EXPECT_EQ(Figure(1e-7), "0.000000100");
}

}  // namespace
}  // namespace foretoken::cli
