// SPDX-License-Identifier: Apache-2.0
#include "settings/bundled_models.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "fixtures/tiny_model.h"

namespace foretoken::settings {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTarget = "tales-9m-q8_0.gguf";
constexpr const char* kDraft = "tales-1m-draft-q8_0.gguf";
constexpr const char* kEagle = "tales-9m-eagle-q8_0.gguf";
constexpr const char* kMtp = "tales-9m-mtp-q8_0.gguf";

void Touch(const fs::path& path) {
  fs::create_directories(path.parent_path());
  ASSERT_TRUE(std::ofstream(path) << "a file");
}

// A folder with these files; they are searched, not opened.
std::string FolderWith(std::initializer_list<const char*> files) {
  const std::string folder = fixtures::TemporaryFolder();
  for (const char* file : files) Touch(fs::path(folder) / file);
  return folder;
}

// The options after filling in, with one folder to search.
EngineOptions FilledIn(EngineOptions options, const std::string& folder) {
  const Status status = FillInModels(options, {.environment = "", .folders = {folder}});
  EXPECT_TRUE(status) << status.error().message;
  return options;
}

EngineOptions WithMethod(const char* method) {
  EngineOptions options;
  options.speculative.method = method;
  return options;
}

std::string MessageOfPlaces(EngineOptions options, const ModelPlaces& places) {
  const Status status = FillInModels(options, places);
  return status ? "" : status.error().message;
}

TEST(BundledModels, StandForAllThatIsNotNamed) {
  const std::string folder = FolderWith({kTarget, kDraft, kEagle, kMtp});
  const EngineOptions options = FilledIn({}, folder);
  EXPECT_EQ(options.model, folder + "/" + kTarget);
  EXPECT_EQ(options.speculative.method, kBestMethod);
  EXPECT_EQ(options.draft_model, FilledIn(WithMethod(kBestMethod.data()), folder).draft_model);
}

TEST(BundledModels, SeveralMethodsGetTheirFiles) {
  const std::string folder = FolderWith({kTarget, kDraft, kEagle, kMtp});
  EXPECT_EQ(FilledIn(WithMethod("mtp,eagle"), folder).DraftFiles(),
            (std::vector<std::string>{folder + "/" + kEagle, folder + "/" + kMtp}));
  EXPECT_EQ(FilledIn(WithMethod("ngram,standalone:tales"), folder).DraftFiles(),
            std::vector<std::string>{folder + "/" + kDraft});
  EngineOptions named;
  named.speculative.draft_models = {"mine.gguf"};
  EXPECT_EQ(FilledIn(named, folder).DraftFiles(), std::vector<std::string>{"mine.gguf"});
}

TEST(BundledModels, ANamedMethodGetsItsFile) {
  const std::string folder = FolderWith({kTarget, kDraft, kEagle, kMtp});
  for (const auto& [method, file] :
       {std::pair{"standalone", kDraft}, {"eagle", kEagle}, {"mtp", kMtp}}) {
    const EngineOptions options = FilledIn(WithMethod(method), folder);
    EXPECT_EQ(options.model, folder + "/" + kTarget);
    EXPECT_EQ(options.draft_model, folder + "/" + file);
    EXPECT_EQ(options.speculative.method, method);
  }
}

TEST(BundledModels, AListAndAPortfolioGetTheFileTheyCanUse) {
  const std::string folder = FolderWith({kTarget, kDraft, kEagle, kMtp});
  for (const auto& [method, file] :
       {std::pair{"ngram,eagle", kEagle}, {"suffix,standalone", kDraft}, {"portfolio", kDraft}}) {
    const EngineOptions options = FilledIn(WithMethod(method), folder);
    EXPECT_EQ(options.draft_model, folder + "/" + file);
    EXPECT_EQ(options.speculative.method, method);
  }
}

TEST(BundledModels, MethodsWithoutAFileGetNone) {
  const std::string folder = FolderWith({kTarget});
  for (const char* method : {"none", "ngram", "suffix", "prediction", "ngram,suffix"}) {
    const EngineOptions options = FilledIn(WithMethod(method), folder);
    EXPECT_EQ(options.model, folder + "/" + kTarget);
    EXPECT_EQ(options.draft_model, "");
    EXPECT_EQ(options.speculative.method, method);
  }
}

TEST(BundledModels, ANamedDraftKeepsItsPlaceAndItsKind) {
  const std::string folder = FolderWith({kTarget, kDraft});
  EngineOptions named;
  named.draft_model = "mine.gguf";
  const EngineOptions options = FilledIn(named, folder);
  EXPECT_EQ(options.model, folder + "/" + kTarget);
  EXPECT_EQ(options.draft_model, "mine.gguf");
  EXPECT_EQ(options.speculative.method, "");  // the engine looks what the file is
}

TEST(BundledModels, ANamedModelIsLeftAsItIs) {
  EngineOptions named;
  named.model = "mine.gguf";
  const EngineOptions options = FilledIn(named, "/no/such/folder");
  EXPECT_EQ(options.model, "mine.gguf");
  EXPECT_EQ(options.draft_model, "");
  EXPECT_EQ(options.speculative.method, "");
}

TEST(BundledModels, TheFirstFolderWithATargetWins) {
  const std::string empty = FolderWith({kDraft}), first = FolderWith({kTarget}),
                    second = FolderWith({kTarget});
  const auto found = BundledModels::Find({.environment = "", .folders = {empty, first, second}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->target(), first + "/" + kTarget);
}

TEST(BundledModels, TheEnvironmentsFolderIsTheOnlyOneWhereItIsSet) {
  const std::string folder = FolderWith({kTarget}), other = FolderWith({kTarget}),
                    empty = FolderWith({});
  const auto found = BundledModels::Find({.environment = other, .folders = {folder}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->target(), other + "/" + kTarget);
  const auto lost = BundledModels::Find({.environment = empty, .folders = {folder}});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().message.find("FORETOKEN_MODELS: " + empty), 0u) << lost.error().message;
}

TEST(BundledModels, WhatIsNotThereIsNamedWithTheWayOut) {
  const std::string nothing =
      MessageOfPlaces({}, {.environment = "", .folders = {"/no/a", "/no/b"}});
  for (const char* words : {kTarget, "/no/a or /no/b", "; ", "-m PATH", "FORETOKEN_MODELS"})
    EXPECT_NE(nothing.find(words), std::string::npos) << nothing;
  const std::string folder = FolderWith({kTarget});
  const std::string no_head =
      MessageOfPlaces(WithMethod("eagle"), {.environment = "", .folders = {folder}});
  for (const char* words : {folder.c_str(), kEagle, "; ", "-md PATH", "ngram"})
    EXPECT_NE(no_head.find(words), std::string::npos) << no_head;
}

TEST(ModelPlaces, AnInstalledProgramKnowsItsPrefixAndNotTheSources) {
  const fs::path prefix = fixtures::TemporaryFolder();
  Touch(prefix / "bin/foretoken");
  const ModelPlaces places = ModelPlaces::Of((prefix / "bin/foretoken").string());
  const fs::path share = (prefix / "bin" / FORETOKEN_INSTALLED_MODELS).lexically_normal();
  EXPECT_EQ(places.folders, std::vector<std::string>{share.string()});
}

TEST(ModelPlaces, AProgramThatWasBuiltHereAlsoKnowsTheSources) {
  const ModelPlaces places = ModelPlaces::OfThisProgram();  // this test lies in the build folder
  ASSERT_EQ(places.folders.size(), 2u);
  EXPECT_EQ(places.folders[1], FORETOKEN_SOURCE_DIR "/models");
}

TEST(ModelPlaces, ALinkedFileLiesWhereTheLinkLeads) {
  const fs::path folder = fixtures::TemporaryFolder();
  Touch(folder / "foretoken");
  fs::create_directory_symlink(FORETOKEN_BUILD_FOLDER, folder / "link");
  EXPECT_EQ(ModelPlaces::Of((folder / "foretoken").string()).folders.size(), 1u);
  EXPECT_EQ(ModelPlaces::Of((folder / "link/CMakeCache.txt").string()).folders.size(), 2u);
  EXPECT_EQ(ModelPlaces::Of(FORETOKEN_BUILD_FOLDER "/no-such-program").folders.size(), 1u);
}

}  // namespace
}  // namespace foretoken::settings
