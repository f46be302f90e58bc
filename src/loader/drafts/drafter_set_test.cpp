// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/drafter_set.h"

#include <gtest/gtest.h>

#include <tuple>

#include "loader/drafts/fake_drafter_testing.h"

namespace foretoken::loader {
namespace {

using Tokens = std::vector<Token>;

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
            "speculative_method: 'eagle' is not one of this engine's; use none, "
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

std::unique_ptr<draft::Drafter> Fake() {
  static const model::FakeRunner target;
  return std::make_unique<FakeDrafter>(target, 16);
}

// A head with two outputs, whose reduced one has the tokens 1, 5 and 9, behind a lookup.
DrafterSet WithTwoOutputs() {
  DrafterSet set;
  set.Add({.method = "ngram", .name = "ngram", .full_name = "ngram", .drafter = nullptr});
  set.Add({.method = "mtp", .name = "mtp", .full_name = "mtp:big", .drafter = nullptr},
          {.reduced = Fake(), .whole = Fake(), .narrow = nullptr}, {1, 5, 9});
  return set;
}

TEST(DrafterSet, AHeadWithTwoOutputsIsTwoDrafters) {
  const DrafterSet set = WithTwoOutputs();
  ASSERT_EQ(set.size(), 3);
  EXPECT_EQ(set[1].name, "mtp:subset");
  EXPECT_EQ(set[2].full_name, "mtp:big:whole");
  for (const char* both : {"mtp", "mtp:big"}) EXPECT_EQ(Found(set, both), (std::vector<int>{1, 2}));
  for (const char* one : {"mtp:subset", "mtp:big:subset"})
    EXPECT_EQ(Found(set, one), std::vector<int>{1});
  EXPECT_EQ(Found(set, "mtp:whole"), std::vector<int>{2});
  EXPECT_FALSE(set.Find("mtp:bi"));
}

TEST(DrafterSet, ACopyThatMaySeeAWindowHasAnotherDrafterForLongTexts) {
  for (const bool reduced : {false, true}) {
    DrafterSet set;
    set.Add({.method = "self",
             .name = "self",
             .full_name = "self",
             .pass_share = 0.4,
             .reduced_pass_share = 0.3,
             .drafter = nullptr,
             .least_context = 4096},
            {.reduced = reduced ? Fake() : nullptr, .whole = Fake(), .narrow = Fake()}, {});
    const int window = reduced ? 2 : 1;
    ASSERT_EQ(set.size(), window + 1);
    EXPECT_EQ(set[window].name, "self:window");
    EXPECT_EQ(set[window].least_context, 4096);
    EXPECT_EQ(set[window].costs_like, 0);
    EXPECT_EQ(set[window].pass_share, reduced ? 0.3 : 0.4);
    EXPECT_EQ(set[window - 1].name, "self:whole");
    EXPECT_EQ(set[window - 1].least_context, 0);
    EXPECT_EQ(set[window - 1].costs_like, -1);
    EXPECT_EQ(Found(set, "self").size(), static_cast<std::size_t>(window + 1));
    EXPECT_EQ(Found(set, "self:window"), std::vector<int>{window});
  }
}

TEST(DrafterSet, ARoundWithOneOutputTellsAboutTheOther) {
  const DrafterSet set = WithTwoOutputs();
  const auto told = [&](int d, const Tokens& drafts, int accepted, Token next) {
    const auto o = set.OtherOutput(d, drafts, accepted, next);
    return std::tuple(o.drafter, o.drafted, o.accepted);
  };
  // The reduced output would have failed at the first token that it lacks.
  EXPECT_EQ(told(2, {1, 5, 7}, 3, 9), std::tuple(1, 3, 2));
  EXPECT_EQ(told(2, {1, 5, 9}, 3, 4), std::tuple(1, 3, 3));
  EXPECT_EQ(told(2, {1, 7, 9}, 1, 4), std::tuple(1, 3, 1));
  // The whole one would have failed where the reduced one did, or nothing is known of that position.
  EXPECT_EQ(told(1, {1, 5, 9}, 1, 9), std::tuple(2, 3, 1));
  EXPECT_EQ(told(1, {1, 5, 9}, 1, 4), std::tuple(2, 1, 1));
  EXPECT_EQ(told(0, {1, 5, 9}, 1, 4), std::tuple(-1, 0, 0));
}

TEST(DrafterSet, SyntheticAcceptanceTellsNothingAboutTheOtherOutput) {
  DrafterSet set;
  set.Add({.method = "mtp", .name = "mtp", .full_name = "mtp", .drafter = nullptr},
          {.reduced = nullptr, .whole = nullptr}, {});
  EXPECT_EQ(set.OtherOutput(0, Tokens{1}, 1, 2).drafter, -1);
}

// Reads some layers of the target's hidden states.
class Reader final : public draft::Drafter {
 public:
  explicit Reader(model::FeatureRequest needs) : needs_(std::move(needs)) {}
  std::string_view name() const override { return "reader"; }
  bool ReportsDistributions() const override { return false; }
  model::FeatureRequest Needs() const override { return needs_; }
  void Begin(const draft::SequenceStart&) override {}
  void Propose(std::span<const draft::Ask>, std::span<round::Proposal>) noexcept override {}
  void Observe(std::span<const draft::Observation>) noexcept override {}
  void End(SeqId) noexcept override {}

 private:
  const model::FeatureRequest needs_;
};

TEST(DrafterSet, EachFeatureIsKeptOnceAndFoundByEveryReader) {
  DrafterSet set;
  const auto add = [&](model::FeatureRequest needs) {
    set.Add({.method = "reader",
             .name = "reader",
             .full_name = "reader",
             .drafter = std::make_unique<Reader>(std::move(needs))});
  };
  add({.layers = {4, 1, 1}});
  add({.layers = {}, .normed = true});
  add({.layers = {1, 7}});
  add({});
  const model::FeatureRequest all = set.AssignFeatures();
  EXPECT_EQ(all.layers, (std::vector<int>{4, 1, 7}));
  EXPECT_TRUE(all.normed);
  EXPECT_EQ(set[0].feature_parts, (std::vector<int>{0, 1, 1}));
  EXPECT_EQ(set[1].feature_parts, std::vector<int>{3});
  EXPECT_EQ(set[2].feature_parts, (std::vector<int>{1, 2}));
  EXPECT_FALSE(set[3].reads_features());
}

}  // namespace
}  // namespace foretoken::loader
