// SPDX-License-Identifier: Apache-2.0
#include "calibrate/recommendation.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "fixtures/tiny_model.h"

namespace foretoken::calibrate {
namespace {

namespace fs = std::filesystem;

class Recommendation : public ::testing::Test {
 protected:
  Recommendation() : machine_(ProfileMachine::This("scalar", 1)) {
    options_.model =
        fixtures::WriteTinyModel(fixtures::TemporaryFolder(), {.file_name = "target.gguf"});
    draft_ = fixtures::WriteTinyModel(fixtures::TemporaryFolder(),
                                      {.seed = 5, .file_name = "small.gguf"});
    options_.speculative.profile = fixtures::TemporaryFolder() + "/it.profile.json";
    profile_.machine = machine_;
    profile_.target = *ProfileModel::Of(options_.model);
    profile_.passes = {{0, 1, 100}, {0, 2, 110}};
    profile_.drafts = {{"standalone", *ProfileModel::Of(draft_), 12.5}, {"ngram", {}, 0}};
    profile_.recommendation = {"standalone", "small.gguf", 3, "fixed", 1.42};
  }

  std::string Take() {
    EXPECT_TRUE(profile_.Save(options_.speculative.profile));
    auto told = TakeRecommendation(machine_, options_);
    EXPECT_TRUE(told) << told.error().message;
    return told.value_or("");
  }
  void PutDraftBesideTheModel() {
    fs::copy(draft_, fs::path(options_.model).parent_path() / "small.gguf");
  }

  ProfileMachine machine_;
  Profile profile_;
  EngineOptions options_;
  std::string draft_;
};

TEST_F(Recommendation, DecidesWhereOptionsNameNothing) {
  PutDraftBesideTheModel();
  EXPECT_NE(Take().find("it recommends standalone with small.gguf, 3 drafts a round"),
            std::string::npos);
  EXPECT_EQ(options_.speculative.method, "standalone");
  EXPECT_EQ(options_.draft_model, fs::path(options_.model).parent_path() / "small.gguf");
  EXPECT_EQ(options_.speculative.num_speculative_tokens, 3);
  EXPECT_EQ(options_.speculative.controller, "fixed");
  EXPECT_EQ(options_.speculative.strategy, VerifyStrategy::kSampleMatch);
}

TEST_F(Recommendation, FindsTheDraftBesideTheProfileToo) {
  fs::copy(draft_, fs::path(options_.speculative.profile).parent_path() / "small.gguf");
  Take();
  EXPECT_EQ(options_.draft_model,
            fs::path(options_.speculative.profile).parent_path() / "small.gguf");
}

TEST_F(Recommendation, NeedsNoFileForALookup) {
  profile_.recommendation = {"ngram", "", 8, "cost-model", 1.2};
  EXPECT_NE(Take().find("it recommends ngram, cost-model, at most 8 drafts a round"),
            std::string::npos);
  EXPECT_EQ(options_.speculative.method, "ngram");
  EXPECT_EQ(options_.draft_model, "");
}

TEST_F(Recommendation, NamesTheTypesOfTheModelsCopy) {
  profile_.drafts = {{"self", profile_.target, 30, "Q3_K"}};
  profile_.recommendation = {"self", "", 4, "fixed", 1.5, "Q3_K"};
  EXPECT_NE(Take().find("it recommends self with a copy of the model in Q3_K, 4 drafts a round"),
            std::string::npos);
  EXPECT_EQ(options_.speculative.method, "self");
  EXPECT_EQ(options_.speculative.self_draft, "Q3_K");
}

// Who turns copies off gets none, and who names types gets those.
TEST_F(Recommendation, OfACopyGivesWayToSelfDraft) {
  profile_.recommendation = {"self", "", 4, "fixed", 1.5, "Q3_K"};
  const EngineOptions before = options_;
  options_.speculative.self_draft = "off";
  EXPECT_NE(Take().find("which SpeculativeOptions::self_draft off turns off"), std::string::npos);
  EXPECT_EQ(options_.speculative.method, "");
  options_ = before;
  options_.speculative.self_draft = "Q4_0";
  EXPECT_EQ(Take(), "");
  EXPECT_EQ(options_.speculative.self_draft, "Q4_0");
}

TEST_F(Recommendation, OfNoDraftsIsTakenToo) {
  profile_.recommendation = {};
  EXPECT_NE(Take().find("it recommends no drafts"), std::string::npos);
  EXPECT_EQ(options_.speculative.method, "none");
}

TEST_F(Recommendation, GivesWayToOptions) {
  PutDraftBesideTheModel();
  const EngineOptions before = options_;
  for (const auto change : {+[](EngineOptions& o) { o.speculative.method = "ngram"; },
                            +[](EngineOptions& o) { o.draft_model = "another.gguf"; },
                            +[](EngineOptions& o) { o.speculative.num_speculative_tokens = 2; }}) {
    options_ = before;
    change(options_);
    const EngineOptions given = options_;
    EXPECT_EQ(Take(), "");
    EXPECT_EQ(options_.speculative.method, given.speculative.method);
    EXPECT_EQ(options_.draft_model, given.draft_model);
    EXPECT_EQ(options_.speculative.num_speculative_tokens,
              given.speculative.num_speculative_tokens);
  }
  options_ = before;
  options_.speculative.controller = "ewma";
  Take();
  EXPECT_EQ(options_.speculative.controller, "ewma");
  EXPECT_EQ(options_.speculative.method, "standalone");
}

TEST_F(Recommendation, OfAnotherMachineOrModelIsLeftAlone) {
  PutDraftBesideTheModel();
  profile_.machine.threads = 7;
  EXPECT_EQ(Take(), "");
  profile_.machine = machine_;
  profile_.target.hash += 1;
  EXPECT_EQ(Take(), "");
  EXPECT_EQ(options_.speculative.method, "");
}

TEST_F(Recommendation, NamesADraftThatIsNotThere) {
  EXPECT_NE(Take().find("small.gguf that it recommends is neither beside the model"),
            std::string::npos);
  EXPECT_EQ(options_.speculative.method, "");
}

TEST_F(Recommendation, TakesNoOtherFileOfTheDraftsName) {
  fixtures::WriteTinyModel(fs::path(options_.model).parent_path().string(),
                           {.seed = 6, .file_name = "small.gguf"});
  EXPECT_NE(Take().find("was changed"), std::string::npos);
  EXPECT_EQ(options_.draft_model, "");
}

TEST_F(Recommendation, OfAFileThatIsNoProfileIsAnError) {
  options_.speculative.profile = draft_;
  EXPECT_FALSE(TakeRecommendation(machine_, options_));
}

}  // namespace
}  // namespace foretoken::calibrate
