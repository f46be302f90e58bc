// SPDX-License-Identifier: Apache-2.0
#include "loader/drafter_set.h"

#include <gtest/gtest.h>

namespace foretoken::loader {
namespace {

// Two draft models, so their names have their files' names, and a lookup.
DrafterSet ThreeDrafters() {
  DrafterSet set;
  for (const char* name : {"standalone:small", "standalone:tiny"})
    set.Add({.method = "standalone", .name = name, .full_name = name, .drafter = nullptr});
  set.Add({.method = "ngram", .name = "ngram", .full_name = "ngram", .drafter = nullptr});
  return set;
}

std::vector<int> Found(const DrafterSet& set, std::string_view methods) {
  const auto found = set.Find(methods);
  EXPECT_TRUE(found) << found.error().message;
  return found.value_or(std::vector<int>{-1});
}

TEST(DrafterSet, AMethodMeansAllOfItsDrafters) {
  const DrafterSet set = ThreeDrafters();
  EXPECT_EQ(Found(set, "standalone"), (std::vector<int>{0, 1}));
  EXPECT_EQ(Found(set, "ngram"), std::vector<int>{2});
  EXPECT_EQ(Found(set, "portfolio"), (std::vector<int>{0, 1, 2}));
}

TEST(DrafterSet, ANameMeansOneDrafter) {
  EXPECT_EQ(Found(ThreeDrafters(), "standalone:tiny"), std::vector<int>{1});
}

TEST(DrafterSet, AListNamesEachDrafterOnceInTheOrderOfTheSet) {
  const DrafterSet set = ThreeDrafters();
  EXPECT_EQ(Found(set, "ngram,standalone:tiny"), (std::vector<int>{1, 2}));
  EXPECT_EQ(Found(set, "standalone,standalone:tiny,ngram"), (std::vector<int>{0, 1, 2}));
}

TEST(DrafterSet, NoneMeansNoDrafter) {
  EXPECT_TRUE(Found(ThreeDrafters(), "none").empty());
  EXPECT_TRUE(Found(ThreeDrafters(), "").empty());
  EXPECT_TRUE(Found(DrafterSet(), "portfolio").empty());
}

TEST(DrafterSet, AnUnknownMethodIsAnErrorThatNamesTheOthers) {
  const auto found = ThreeDrafters().Find("ngram,eagle");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(found.error().message,
            "speculative method: 'eagle' is not one of this engine's; use none, "
            "standalone:small, standalone:tiny, ngram");
}

TEST(DrafterSet, DefaultsStayWhereTheNewOnesAreUnknown) {
  DrafterSet set = ThreeDrafters();
  EXPECT_TRUE(set.defaults().empty());
  ASSERT_TRUE(set.SetDefaults("ngram"));
  EXPECT_FALSE(set.SetDefaults("mtp"));
  EXPECT_EQ(set.defaults(), std::vector<int>{2});
}

TEST(DrafterSet, ADrafterThatReadsFeaturesSaysSo) {
  DrafterEntry entry;
  EXPECT_FALSE(entry.reads_features());
  entry.feature_parts = {1, 0};
  EXPECT_TRUE(entry.reads_features());
}

}  // namespace
}  // namespace foretoken::loader
