// SPDX-License-Identifier: Apache-2.0
// Drafts that nobody named: real files beside a target in a temporary folder.
#include "loader/drafts/draft_choice.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "fixtures/model_folder.h"
#include "fixtures/tiny_model.h"
#include "foretoken/tools/model_file.h"
#include "loader/drafts/companions.h"

namespace foretoken::loader {
namespace {

namespace fs = std::filesystem;
using fixtures::TinyModelOptions;

class FoundDraftsTest : public testing::Test {
 protected:
  // As an engine with this model opens its drafts.
  DraftFiles Find(const std::string& model, const std::string& methods = "") const {
    EngineOptions options;
    options.model = model;
    options.speculative.method = methods;
    options.context_size = 128;
    return Open(options);
  }
  DraftFiles Open(const EngineOptions& options) const {
    const auto checkpoint = *formats::OpenCheckpoint(options.model);
    const auto tokenizer = *text::Tokenizer::Load(checkpoint->metadata());
    const ModelPart part = *DescribeModel(*checkpoint, *tokenizer);
    auto files = OpenDraftFiles(options, {*checkpoint, *tokenizer, part});
    EXPECT_TRUE(files) << files.error().message;
    if (!files) return {};
    // Their target is gone soon.
    for (DraftPart& draft : files->drafts) names_.push_back(draft.full_name);
    line_ = FoundLine(files->drafts);
    return std::move(*files);
  }

  std::string Model(const std::string& name, TinyModelOptions options = {}) const {
    options.file_name = name;
    return fixtures::WriteTinyModel(folder_, options);
  }
  std::string Draft(const std::string& name, std::uint64_t seed = 2) const {
    return Model(name, {.seed = seed, .n_layers = 1, .dim = 32, .ff = 32, .n_heads = 2});
  }
  std::string Head(const std::string& name, bool eagle, TinyModelOptions target = {}) const {
    return fixtures::WriteTinyHead(
        folder_, {.target = std::move(target), .eagle = eagle, .file_name = name});
  }
  static std::string One(const std::vector<std::string>& lines) {
    return lines.size() == 1 ? lines.front() : std::to_string(lines.size()) + " lines";
  }

  const std::string folder_ = fixtures::TemporaryFolder();
  const std::string target_ = Model("target.gguf");
  mutable std::vector<std::string> names_;
  mutable std::string line_;
};

TEST(Companions, TheirNamesHaveADraftersNameInThem) {
  for (const char* name : {"mtp-tales.gguf", "Tales-MTP-Q8_0.gguf", "Tales_eagle3.gguf",
                           "tales-EAGLE3", "tales-1m-draft-q8_0.gguf", "gemma-4-assistant.gguf"})
    EXPECT_TRUE(NamesADrafter(name)) << name;
  for (const char* name : {"tales.gguf", "smtp-tales.gguf", "mmproj-tales.gguf", "prompt.gguf",
                           "tales-model.gguf", ""})
    EXPECT_FALSE(NamesADrafter(name)) << name;
}

TEST_F(FoundDraftsTest, AModelAloneHasLookup) {
  const DraftFiles files = Find(target_);
  EXPECT_EQ(files.methods, "ngram");
  EXPECT_TRUE(files.notices.empty() && files.details.empty());
  EXPECT_EQ(line_, "");
}

TEST_F(FoundDraftsTest, ADraftModelBesideTheModelIsUsed) {
  Draft("tales-draft.gguf");
  const DraftFiles files = Find(target_);
  EXPECT_EQ(files.methods, "standalone");
  EXPECT_TRUE(files.automatic);
  EXPECT_EQ(names_, std::vector<std::string>{"standalone:tales-draft"});
  EXPECT_EQ(line_,
            "drafts: standalone by tales-draft.gguf (found beside the model; "
            "SpeculativeOptions::method none turns "
            "it off)");
}

TEST_F(FoundDraftsTest, OneOfEachKindMakesAPortfolio) {
  Draft("tales-draft.gguf");
  Head("tales-eagle3.gguf", true);
  Head("mtp-tales.gguf", false);
  EXPECT_EQ(Find(target_).methods, "standalone,eagle,mtp");
  EXPECT_EQ(
      line_,
      "drafts: standalone by tales-draft.gguf, eagle by tales-eagle3.gguf, mtp by "
      "mtp-tales.gguf (found beside the model; SpeculativeOptions::method none turns it off)");
}

TEST_F(FoundDraftsTest, WhoNamesSomethingGetsThatAlone) {
  const std::string draft = Draft("tales-draft.gguf");
  Head("tales-eagle3.gguf", true);
  for (const char* methods : {"none", "ngram", "ngram,suffix"}) {
    EXPECT_TRUE(Find(target_, methods).drafts.empty()) << methods;
    EXPECT_EQ(line_, "") << methods;
  }
  EngineOptions options;
  options.model = target_;
  options.context_size = 128;
  options.find_drafters = false;
  EXPECT_EQ(Open(options).methods, "ngram");
  options.find_drafters = true;
  options.draft_model = draft;
  EXPECT_EQ(Open(options).methods, "standalone");
  EXPECT_EQ(line_, "");
}

TEST_F(FoundDraftsTest, AMethodFindsItsFile) {
  Draft("tales-draft.gguf");
  Head("tales-eagle3.gguf", true);
  EXPECT_EQ(Find(target_, "eagle").drafts.size(), 1U);
  EXPECT_EQ(names_, std::vector<std::string>{"eagle:tales-eagle3"});
  EXPECT_EQ(Find(target_, "portfolio").drafts.size(), 2U);
}

// Who asked for a method learns why the file beside the model does not serve.
TEST_F(FoundDraftsTest, AMethodWithoutAFileThatFitsTellsTheFirstReason) {
  const std::string head = Head("tales-eagle3.gguf", true, {.dim = 32, .n_heads = 2});
  EngineOptions options;
  options.model = target_;
  options.speculative.method = "eagle";
  const auto found = FindDrafters(options);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message.find("speculative_method: 'eagle' needs a head, and none that "
                                       "fits is beside the model (drafts: passed over " +
                                       head + ": head: "),
            0U)
      << found.error().message;
}

TEST_F(FoundDraftsTest, TheyAreListedWithoutLoadingThem) {
  const std::string eagle = Head("tales-eagle3.gguf", true), draft = Draft("tales-draft.gguf");
  Model("large-draft.gguf");
  const auto found = FindDrafters({.model = target_});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->drafters.size(), 2U);
  EXPECT_EQ(found->drafters[0].method, "standalone");
  EXPECT_EQ(found->drafters[0].path, draft);
  EXPECT_EQ(found->drafters[1].method, "eagle");
  EXPECT_EQ(found->drafters[1].path, eagle);
  EXPECT_EQ(found->details.size(), 1U);
  EXPECT_FALSE(FindDrafters({.model = target_ + ".absent"}));
}

TEST_F(FoundDraftsTest, OfTwoTheSmallerOneIsUsed) {
  Model("a-draft.gguf", {.n_layers = 1, .dim = 32, .ff = 64, .n_heads = 2});
  Draft("b-draft.gguf");
  ASSERT_LT(fs::file_size(folder_ + "/b-draft.gguf"), fs::file_size(folder_ + "/a-draft.gguf"));
  const DraftFiles files = Find(target_);
  EXPECT_EQ(names_, std::vector<std::string>{"standalone:b-draft"});
  EXPECT_EQ(One(files.details), "drafts: passed over " + folder_ +
                                    "/a-draft.gguf: b-draft.gguf drafts in the same way and is "
                                    "smaller");
  EXPECT_TRUE(files.notices.empty());
}

TEST_F(FoundDraftsTest, AHeadOfAnotherTargetIsPassedOver) {
  Head("wide-eagle3.gguf", true, {.dim = 128});
  const DraftFiles files = Find(target_);
  EXPECT_EQ(files.methods, "ngram");
  EXPECT_EQ(One(files.details),
            "drafts: passed over " + folder_ +
                "/wide-eagle3.gguf: head: it reads hidden states of 128 values, the target has 64; "
                "use a head that was trained for this target");
  EXPECT_TRUE(files.notices.empty());
}

TEST_F(FoundDraftsTest, AModelOfAnotherVocabularyIsPassedOver) {
  TinyModelOptions other{.n_layers = 1, .dim = 32, .ff = 32, .n_heads = 2};
  for (int id = 0; id < 60; ++id) other.respelled[5 * id] = "<|" + std::to_string(id) + "|>";
  Model("other-draft.gguf", other);
  const DraftFiles files = Find(target_);
  EXPECT_EQ(files.methods, "ngram");
  EXPECT_NE(One(files.details).find("its vocabulary is not the target's"), std::string::npos)
      << One(files.details);
}

TEST_F(FoundDraftsTest, AWholeModelMustBeSmallAndSayThatItDrafts) {
  Model("large-draft.gguf", {.n_layers = 2});
  EXPECT_EQ(Find(target_).methods, "ngram");
  Model("tales-mtp.gguf", {.n_layers = 1, .dim = 32, .ff = 32, .n_heads = 2});
  const DraftFiles files = Find(target_);
  EXPECT_EQ(files.methods, "ngram");
  ASSERT_EQ(files.details.size(), 2U);
  EXPECT_NE(files.details[0].find("more than half of the model's size"), std::string::npos);
  EXPECT_NE(files.details[1].find("does not say that it drafts"), std::string::npos);
}

TEST_F(FoundDraftsTest, ADamagedFileIsANoticeAndNoError) {
  fs::resize_file(Draft("cut-draft.gguf"), 5000);
  fixtures::WriteText(folder_ + "/text-eagle3.gguf", "no model");
  fixtures::WriteText(folder_ + "/empty-draft.gguf", "");
  const DraftFiles files = Find(target_);
  EXPECT_EQ(files.methods, "ngram");
  ASSERT_EQ(files.notices.size(), 3U);
  for (const std::string& notice : files.notices)
    EXPECT_TRUE(notice.starts_with("drafts: passed over " + folder_ + "/")) << notice;
}

#if !defined(_WIN32)  // it has no such files
TEST_F(FoundDraftsTest, WhatIsNoFileIsNotOpened) {
  ASSERT_EQ(mkfifo((folder_ + "/pipe-draft.gguf").c_str(), 0600), 0);
  fs::create_directory(folder_ + "/folder-draft.gguf");
  fs::create_symlink("/not/there", folder_ + "/dangling-draft.gguf");
  fs::create_symlink("/dev/zero", folder_ + "/zero-draft.gguf");
  fixtures::WriteText(folder_ + "/draft.txt", "no model");
  const DraftFiles files = Find(target_);
  EXPECT_EQ(files.methods, "ngram");
  EXPECT_TRUE(files.notices.empty() && files.details.empty());
}
#endif

TEST_F(FoundDraftsTest, LinksAreFollowedAndCountOnce) {
  const std::string elsewhere = fixtures::TemporaryFolder();
  fs::rename(Draft("tales-draft.gguf"), elsewhere + "/file");
  fs::create_symlink(elsewhere + "/file", folder_ + "/tales-draft.gguf");
  fs::create_symlink(elsewhere + "/file", folder_ + "/tales-draft-2.gguf");
  fs::create_symlink(target_, folder_ + "/self-draft.gguf");
  const DraftFiles files = Find(target_);
  EXPECT_EQ(files.drafts.size(), 1U);
  EXPECT_TRUE(files.details.empty());
}

TEST_F(FoundDraftsTest, BesideALinkAndBesideItsFile) {
  Draft("tales-draft.gguf");
  const std::string elsewhere = fixtures::TemporaryFolder();
  const std::string link = elsewhere + "/linked.gguf";
  fs::create_symlink(target_, link);
  EXPECT_EQ(Find(link).methods, "standalone");
  fs::rename(Head("tales-eagle3.gguf", true), elsewhere + "/tales-eagle3.gguf");
  EXPECT_EQ(Find(link).methods, "standalone,eagle");
  EXPECT_EQ(Find(target_).methods, "standalone");
}

TEST_F(FoundDraftsTest, ModelFoldersHaveTheirDraftsInside) {
  const std::string folder = fixtures::WriteModelFolder(target_, folder_ + "/tales");
  Draft("tales-draft.gguf");
  EXPECT_EQ(Find(folder).methods, "ngram");
  fixtures::WriteModelFolder(folder_ + "/tales-draft.gguf", folder + "/draft");
  EXPECT_EQ(Find(folder).methods, "standalone");
  EXPECT_EQ(names_.back(), "standalone:draft");
}

TEST_F(FoundDraftsTest, LaterPartsOfASplitFileAreNoDrafts) {
  fs::rename(Draft("tales-draft.gguf"), folder_ + "/tales-draft-00002-of-00002.gguf");
  const DraftFiles files = Find(target_);
  EXPECT_TRUE(files.drafts.empty() && files.notices.empty() && files.details.empty());
}

#if !defined(_WIN32)  // it has no such files
TEST_F(FoundDraftsTest, AFolderThatCannotBeReadIsNoError) {
  if (getuid() == 0) {  // who may read everything
    const Companions companions = FindCompanions(folder_ + "/absent/target.gguf");
    EXPECT_TRUE(companions.paths.empty());
    EXPECT_NE(One(companions.notices).find("it cannot be read"), std::string::npos);
    return;
  }
  Draft("tales-draft.gguf");
  ASSERT_EQ(chmod(folder_.c_str(), 0300), 0);
  const DraftFiles files = Find(target_);
  chmod(folder_.c_str(), 0700);
  EXPECT_EQ(files.methods, "ngram");
  EXPECT_NE(One(files.details).find("it cannot be read"), std::string::npos);
}
#endif

TEST_F(FoundDraftsTest, OnlySoManyFilesAreOpened) {
  for (int i = 0; i < 20; ++i)
    fixtures::WriteText(folder_ + "/" + std::to_string(i) + "-draft.gguf", "no model");
  const DraftFiles files = Find(target_);
  EXPECT_EQ(files.notices.size(), 16U);
  EXPECT_EQ(files.details.size(), 4U);
}

}  // namespace
}  // namespace foretoken::loader
