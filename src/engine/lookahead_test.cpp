// SPDX-License-Identifier: Apache-2.0
#include "engine/lookahead.h"

#include <gtest/gtest.h>

namespace foretoken::engine {
namespace {

TEST(Lookahead, NeverGoesBeyondItsCeilingOrBelowOne) {
  for (const std::string_view name : LookaheadNames())
    for (const int ceiling : {1, 2, 3, 8, 64}) {
      const auto l = MakeLookahead({name, ceiling});
      for (int step = 0; step < 200; ++step) {
        ASSERT_GE(l->Next(), 1) << name << " " << ceiling;
        ASSERT_LE(l->Next(), ceiling) << name << " " << ceiling;
        l->Observe(l->Next(), step % 80 < 40 ? l->Next() : 0);
      }
    }
}

TEST(Lookahead, IsNothingWhereNothingMayBeDrafted) {
  for (const std::string_view name : LookaheadNames())
    EXPECT_EQ(MakeLookahead({name, 0}), nullptr) << name;
}

TEST(Lookahead, FixedStays) {
  const auto l = MakeLookahead({"fixed", 7});
  for (int step = 0; step < 20; ++step) {
    EXPECT_EQ(l->Next(), 7);
    l->Observe(7, step % 8);
  }
}

TEST(Lookahead, EwmaFollowsTheMean) {
  const auto l = MakeLookahead({"ewma", 12});
  EXPECT_EQ(l->Next(), 5);
  for (int step = 0; step < 35; ++step) l->Observe(l->Next(), l->Next());
  EXPECT_EQ(l->Next(), 12);
  for (int step = 0; step < 60; ++step) l->Observe(l->Next(), 0);
  EXPECT_EQ(l->Next(), 2);
}

TEST(Lookahead, HeuristicAddsTwoAndTakesOne) {
  const auto l = MakeLookahead({"heuristic", 8});
  EXPECT_EQ(l->Next(), 4);
  l->Observe(4, 4);
  EXPECT_EQ(l->Next(), 6);
  l->Observe(6, 5);
  EXPECT_EQ(l->Next(), 5);
  // A draft that was cut short and accepted whole counts as whole.
  l->Observe(2, 2);
  EXPECT_EQ(l->Next(), 7);
  for (int step = 0; step < 20; ++step) l->Observe(l->Next(), 0);
  EXPECT_EQ(l->Next(), 1);
}

}  // namespace
}  // namespace foretoken::engine
