// SPDX-License-Identifier: Apache-2.0
#include "model/weights/tile_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/hash.h"
#include "fixtures/tiny_model.h"
#include "model/weights/tile_cache.h"
#include "model/weights/tile_header.h"

namespace foretoken::model {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTileBytes = 8192;
constexpr std::uint64_t kFileBytes = kTileBytes + kTileHeaderBytes, kNoLimit = ~std::uint64_t{0};
constexpr std::uint64_t kFolderKey = 1;
constexpr int kHour = 3600, kDay = 24 * kHour;

class TileFolderTest : public testing::Test {
 protected:
  TileFolderTest() {
    fs::create_directories(models_);
    fs::create_directories(tiles_);
  }

  // A model's file, of which only the existence counts.
  std::string Model(const std::string& name) const {
    std::ofstream(models_ + "/" + name + ".gguf") << name;
    return models_ + "/" + name + ".gguf";
  }
  TileMemory Make(const std::string& model, std::uint64_t limit = kNoLimit) {
    const TileCache cache(tiles_, limit);
    std::string why_not;
    TileMemory tiles = cache.Make(model, kTileBytes, &why_not);
    EXPECT_EQ(why_not, "");
    std::memset(tiles.data(), static_cast<int>(model.size() % 251), kTileBytes);
    EXPECT_TRUE(cache.Keep(tiles, kFolderKey, 0, pool_));
    return tiles;
  }
  // Tiles for a model of that name which were used so long ago.
  void Keep(const std::string& name, int seconds_ago) {
    Make(Model(name));
    SetUsed(FileOf(name), seconds_ago);
  }
  fs::path FileOf(const std::string& name) const {
    return fs::path(tiles_) / TileFileName(models_ + "/" + name + ".gguf", "");
  }
  static void SetUsed(const fs::path& file, int seconds_ago) {
    const timespec then = {std::time(nullptr) - seconds_ago, 0};
    const std::array<timespec, 2> times = {then, {then.tv_sec - 100 * kDay, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), times.data(), 0), 0);
  }
  std::optional<TileMemory> Find(const std::string& name) {
    return TileCache(tiles_).Find(models_ + "/" + name + ".gguf", kFolderKey, kTileBytes, pool_);
  }
  // The models whose tiles are there.
  std::set<std::string> Kept() const {
    std::set<std::string> names;
    for (const auto& file : fs::directory_iterator(models_))
      if (const std::string name = file.path().stem().string(); fs::exists(FileOf(name)))
        names.insert(name);
    return names;
  }
  void Bound(std::uint64_t limit, std::uint64_t more = 0) const {
    BoundTiles(tiles_, limit, more, "");
  }

  const std::string folder_ = fixtures::TemporaryFolder();
  const std::string models_ = folder_ + "/models", tiles_ = folder_ + "/tiles";
  ThreadPool pool_{1};
};

using FileNames = std::set<std::string>;

TEST_F(TileFolderTest, WhatWasNotUsedForTheLongestTimeGoesUntilTheRestFits) {
  Keep("two", 2 * kHour);
  Keep("three", 3 * kHour);
  Keep("one", kHour);
  Bound(3 * kFileBytes);
  EXPECT_EQ(Kept(), (FileNames{"one", "two", "three"}));
  Bound(3 * kFileBytes - 1);
  EXPECT_EQ(Kept(), (FileNames{"one", "two"}));
  Bound(2 * kFileBytes, 1);
  EXPECT_EQ(Kept(), (FileNames{"one"}));
}

TEST_F(TileFolderTest, ANewFileMakesRoomForItself) {
  Keep("old", 2 * kHour);
  Keep("older", 3 * kHour);
  Make(Model("new"), 2 * kFileBytes);
  EXPECT_EQ(Kept(), (FileNames{"new", "old"}));
}

TEST_F(TileFolderTest, AFileThatIsLargerThanTheLimitIsKeptAlone) {
  Keep("old", kHour);
  Make(Model("new"), 1);
  EXPECT_EQ(Kept(), (FileNames{"new"}));
}

TEST_F(TileFolderTest, TheFileThatIsReplacedDoesNotCount) {
  Keep("old", kHour);
  Keep("same", 2 * kHour);
  Make(Model("same"), 2 * kFileBytes);
  EXPECT_EQ(Kept(), (FileNames{"old", "same"}));
}

TEST_F(TileFolderTest, AnUnfinishedFileCountsAsMuchAsItHas) {
  Keep("whole", kHour);
  {
    const TileCache cache(tiles_, kNoLimit);
    std::string why_not;
    TileMemory tiles = cache.Make(Model("part"), 2 * kHashPieceBytes, &why_not);
    EXPECT_EQ(why_not, "");
    tiles.Finish(kHashPieceBytes, pool_);
    cache.KeepUnfinished(tiles, kFolderKey);
  }
  SetUsed(FileOf("part"), 2 * kHour);
  constexpr std::uint64_t kBoth = kFileBytes + kHashPieceBytes + kTileHeaderBytes;
  Bound(kBoth);
  EXPECT_EQ(Kept(), (FileNames{"part", "whole"}));
  Bound(kBoth - 1);
  EXPECT_EQ(Kept(), (FileNames{"whole"}));
}

TEST_F(TileFolderTest, WhatIsInUseStays) {
  Keep("found", 5 * kHour);
  Keep("idle", kHour);
  const auto found = Find("found");
  ASSERT_TRUE(found);
  const TileMemory made = Make(Model("made"));
  SetUsed(FileOf("made"), 4 * kHour);
  Bound(0);
  EXPECT_EQ(Kept(), (FileNames{"found", "made"}));
}

TEST_F(TileFolderTest, WhatIsNoLongerInUseGoes) {
  Keep("found", 5 * kHour);
  ASSERT_TRUE(Find("found"));
  Make(Model("made"));
  Bound(0);
  EXPECT_EQ(Kept(), FileNames{});
}

TEST_F(TileFolderTest, ToLookAtAFileIsNoUse) {
  Keep("one", kHour);
  struct stat before {
  }, after{};
  ASSERT_EQ(stat(FileOf("one").c_str(), &before), 0);
  Bound(kNoLimit);
  ASSERT_EQ(stat(FileOf("one").c_str(), &after), 0);
  EXPECT_EQ(before.st_atim.tv_sec, after.st_atim.tv_sec);
  EXPECT_EQ(before.st_atim.tv_nsec, after.st_atim.tv_nsec);
}

TEST_F(TileFolderTest, FilesOfOthersStay) {
  Keep("one", kHour);
  const fs::path kept = FileOf("one");
  fs::copy_file(kept, tiles_ + "/one.tiles");
  fs::copy_file(kept, kept.string() + ".part");
  fs::copy_file(kept, folder_ + "/elsewhere");
  fs::create_symlink(folder_ + "/elsewhere", tiles_ + "/link-0123456789abcdef.tiles");
  fs::create_directory(tiles_ + "/folder-0123456789abcdef.tiles");
  std::ofstream(tiles_ + "/short-0123456789abcdef.tiles") << "FTKTILES";
  std::ofstream(tiles_ + "/text-0123456789abcdef.tiles") << std::string(20000, 'x');
  ASSERT_EQ(mkfifo((tiles_ + "/pipe-0123456789abcdef.tiles").c_str(), 0600), 0);
  Bound(0);
  EXPECT_FALSE(fs::exists(kept));
  EXPECT_EQ(std::distance(fs::directory_iterator(tiles_), {}), 7);
  EXPECT_TRUE(fs::exists(folder_ + "/elsewhere"));
}

TEST_F(TileFolderTest, FilesOfRanksAndOfOtherVersionsAreOurs) {
  Keep("one", kHour);
  const fs::path kept = FileOf("one");
  fs::copy_file(kept, tiles_ + "/one-0123456789abcdef-2of4.tiles");
  std::fstream(kept, std::ios::in | std::ios::out | std::ios::binary).seekp(8).put(1);
  Bound(0);
  EXPECT_TRUE(fs::is_empty(tiles_));
}

TEST_F(TileFolderTest, WhatHasLostItsModelGoesAfterAWeek) {
  Keep("there", 8 * kDay);
  Keep("gone", 8 * kDay);
  Keep("just-gone", 6 * kDay);
  const fs::path gone = FileOf("gone"), just_gone = FileOf("just-gone");
  fs::remove(models_ + "/gone.gguf");
  fs::remove(models_ + "/just-gone.gguf");
  Bound(kNoLimit);
  EXPECT_EQ(Kept(), (FileNames{"there"}));
  EXPECT_FALSE(fs::exists(gone));
  EXPECT_TRUE(fs::exists(just_gone));
}

TEST_F(TileFolderTest, WhatHasLostItsModelGoesFirst) {
  Keep("there", 3 * kHour);
  Keep("gone", kHour);
  const fs::path gone = FileOf("gone");
  fs::remove(models_ + "/gone.gguf");
  Bound(kFileBytes);
  EXPECT_EQ(Kept(), (FileNames{"there"}));
  EXPECT_FALSE(fs::exists(gone));
}

// Files of earlier releases do not name their model, and a damaged path must not be believed.
TEST_F(TileFolderTest, AModelThatIsNotKnownIsNotGone) {
  Keep("one", 30 * kDay);
  std::fstream(FileOf("one"), std::ios::in | std::ios::out | std::ios::binary).seekp(70).put('~');
  SetUsed(FileOf("one"), 30 * kDay);
  Bound(kNoLimit);
  EXPECT_EQ(Kept(), (FileNames{"one"}));
}

TEST_F(TileFolderTest, AFolderThatIsNotThereIsNoError) {
  BoundTiles(folder_ + "/nowhere", 0, 0, "");
  EXPECT_GE(DefaultTileLimit(folder_ + "/nowhere"), 32'000'000'000u);
  EXPECT_GE(DefaultTileLimit(folder_), 32'000'000'000u);
}

// Programs that start together make, find and delete each other's files.
TEST_F(TileFolderTest, WhatIsFoundIsWholeWhileOthersDelete) {
  const std::vector<std::string> models = {Model("a"), Model("bb"), Model("ccc")};
  std::atomic<int> wrong = 0;
  const auto work = [&](std::size_t begin) {
    ThreadPool pool(1);
    const TileCache cache(tiles_, 2 * kFileBytes);
    for (std::size_t i = begin; i < begin + 100; ++i) {
      const std::string& model = models[i % models.size()];
      const auto value = static_cast<std::byte>(model.size());
      auto found = cache.Find(model, kFolderKey, kTileBytes, pool);
      if (found) {
        wrong += std::count(found->data(), found->data() + kTileBytes, value) != kTileBytes;
        wrong += !found->Check(pool);
        continue;
      }
      std::string why_not;
      TileMemory tiles = cache.Make(model, kTileBytes, &why_not);
      std::fill_n(tiles.data(), kTileBytes, value);
      wrong += !cache.Keep(tiles, kFolderKey, 0, pool) || !why_not.empty();
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < 4; ++i) threads.emplace_back(work, i);
  threads.clear();
  EXPECT_EQ(wrong, 0);
  Bound(2 * kFileBytes);
  EXPECT_LE(Kept().size(), 2u);
}

TEST(TileFileNames, HaveTheHashOfTheModelsPath) {
  const std::uint64_t hash = HashOf(std::string("/some/where-1.gguf"));
  EXPECT_EQ(PathHashIn(TileFileName("/some/where-1.gguf", "")), hash);
  EXPECT_EQ(PathHashIn(TileFileName("/some/where-1.gguf", "-2of14")), hash);
  for (const char* part : {"-copy.Q2_K", "-copy.Q2_K.Q4_K-2of14"})
    EXPECT_EQ(PathHashIn(TileFileName("/some/where-1.gguf", part)), hash) << part;
  EXPECT_EQ(PathHashIn("a-00000000000000ff.tiles"), 255u);
  for (const char* other :
       {"", ".tiles", "a.tiles", "a-.tiles", "a-0123.tiles", "a-0123456789abcdeg.tiles",
        "a-0123456789abcdef", "a-0123456789abcdef.tiles.part", "a-0123456789abcdef0.tiles",
        "0123456789abcdef.tiles", "a-0123456789abcdef-of4.tiles", "a-0123456789abcdef-2of.tiles",
        "a-0123456789abcdef-x.tiles", "a-0123456789abcdef-1of2-1of2.tiles"})
    EXPECT_EQ(PathHashIn(other), std::nullopt) << other;
}

TEST(TileHeaders, NameTheModelIfThePathHasRoom) {
  const auto through_a_page = [](const std::string& path, std::uint64_t hash) {
    std::array<std::byte, kTileHeaderBytes> page = {};
    WriteModelPath(page, path);
    return ReadModelPath(page, hash);
  };
  const std::string path = "/some/where.gguf";
  EXPECT_EQ(through_a_page(path, HashOf(path)), path);
  EXPECT_EQ(through_a_page(path, HashOf(path) + 1), "");
  EXPECT_EQ(through_a_page("where.gguf", HashOf(std::string("where.gguf"))), "");
  const std::string most = "/" + std::string(kTileHeaderBytes - 66, 'x'), more = most + "x";
  EXPECT_EQ(through_a_page(most, HashOf(most)), most);
  EXPECT_EQ(through_a_page(more, HashOf(more)), "");
  std::array<std::byte, kTileHeaderBytes> endless;
  endless.fill(std::byte{'/'});
  EXPECT_EQ(ReadModelPath(endless, HashOf(std::string(kTileHeaderBytes - 64, '/'))), "");
}

}  // namespace
}  // namespace foretoken::model
