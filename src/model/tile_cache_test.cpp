// SPDX-License-Identifier: Apache-2.0
#include "model/tile_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace foretoken::model {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSize = 9'000'000;  // more than two pieces of the checksum
constexpr std::uint64_t kKey = 12345;

class TileCacheTest : public testing::Test {
 protected:
  TileCacheTest() {
    std::string name = fs::temp_directory_path() / "foretoken-tiles-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~TileCacheTest() override { fs::remove_all(folder_); }

  static std::byte Value(std::size_t i) { return static_cast<std::byte>(i * 31 % 251); }
  static void Fill(TileMemory& tiles) {
    for (std::size_t i = 0; i < tiles.size_bytes(); ++i) tiles.data()[i] = Value(i);
  }
  static bool Filled(const TileMemory& tiles) {
    for (std::size_t i = 0; i < tiles.size_bytes(); ++i)
      if (tiles.data()[i] != Value(i)) return false;
    return true;
  }
  // Keeps kSize bytes for model.gguf; the file's path.
  fs::path KeepOne() {
    std::string why_not;
    TileMemory tiles = cache().Make(kSize, &why_not);
    EXPECT_EQ(why_not, "");
    Fill(tiles);
    EXPECT_TRUE(cache().Keep(tiles, kModel, kKey, pool_));
    EXPECT_TRUE(Filled(tiles));
    EXPECT_EQ(Files().size(), 1u);
    return Files().at(0);
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_)) files.push_back(entry.path());
    return files;
  }
  std::optional<TileMemory> Find(std::uint64_t key = kKey, std::size_t size = kSize) {
    return cache().Find(kModel, key, size, pool_);
  }
  TileCache cache() const { return TileCache(folder_); }
  static void Overwrite(const fs::path& file, std::streamoff at, char value) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(at);
    stream.put(value);
    ASSERT_TRUE(stream.good());
  }

  const std::string kModel = "/somewhere/model.gguf";
  std::string folder_;
  ThreadPool pool_{2};
};

TEST_F(TileCacheTest, FindsWhatWasKept) {
  KeepOne();
  const auto found = Find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size_bytes(), kSize);
  EXPECT_TRUE(Filled(*found));
}

TEST_F(TileCacheTest, FindsItWithAnyNumberOfThreads) {
  KeepOne();
  ThreadPool alone(1), many(5);
  EXPECT_TRUE(cache().Find(kModel, kKey, kSize, alone));
  EXPECT_TRUE(cache().Find(kModel, kKey, kSize, many));
}

TEST_F(TileCacheTest, TrustsNoOtherKeySizeOrModel) {
  KeepOne();
  EXPECT_FALSE(Find(kKey + 1));
  EXPECT_FALSE(Find(kKey, kSize - 1));
  EXPECT_FALSE(cache().Find("/elsewhere/model.gguf", kKey, kSize, pool_));
}

TEST_F(TileCacheTest, TrustsNoTruncatedOrLongerFile) {
  const fs::path file = KeepOne();
  for (const auto size : {std::size_t{0}, std::size_t{100}, kSize, kSize + 4095, kSize + 4097}) {
    fs::resize_file(file, size);
    EXPECT_FALSE(Find()) << size;
  }
}

TEST_F(TileCacheTest, TrustsNoFlippedByte) {
  for (const std::streamoff at : {0, 8, 12, 16, 24, 32, 4096, 4096 + 5'000'000, 4096 + 8'999'999}) {
    const fs::path file = KeepOne();
    ASSERT_TRUE(Find()) << at;
    Overwrite(file, at, static_cast<char>(0x5c));
    EXPECT_FALSE(Find()) << at;
    fs::remove(file);
  }
}

TEST_F(TileCacheTest, TrustsNoFileThatOthersMayWrite) {
  const fs::path file = KeepOne();
  chmod(file.c_str(), 0666);
  EXPECT_FALSE(Find());
}

TEST_F(TileCacheTest, FollowsNoLink) {
  const fs::path file = KeepOne(), elsewhere = fs::path(folder_) / "elsewhere";
  fs::rename(file, elsewhere);
  fs::create_symlink(elsewhere, file);
  EXPECT_FALSE(Find());
}

TEST_F(TileCacheTest, ReplacesWhatItDoesNotTrust) {
  const fs::path file = KeepOne();
  Overwrite(file, 4096, 'x');
  EXPECT_EQ(KeepOne(), file);
  EXPECT_TRUE(Find());
}

TEST_F(TileCacheTest, LeavesNothingOfAFileThatWasNotKept) {
  std::string why_not;
  {
    TileMemory tiles = cache().Make(kSize, &why_not);
    Fill(tiles);
  }
  EXPECT_TRUE(Files().empty());
}

TEST_F(TileCacheTest, MakesItsFolder) {
  const TileCache deeper(folder_ + "/not/yet");
  std::string why_not;
  TileMemory tiles = deeper.Make(kSize, &why_not);
  EXPECT_EQ(why_not, "");
  EXPECT_TRUE(deeper.Keep(tiles, kModel, kKey, pool_));
  EXPECT_TRUE(deeper.Find(kModel, kKey, kSize, pool_));
}

TEST_F(TileCacheTest, GivesAnonymousMemoryAndAReasonWhereAFileCannotBe) {
  std::ofstream(folder_ + "/file") << "no folder";
  const TileCache nowhere(folder_ + "/file");
  std::string why_not;
  TileMemory tiles = nowhere.Make(kSize, &why_not);
  EXPECT_NE(why_not.find("/file: cannot make a file"), std::string::npos) << why_not;
  Fill(tiles);
  EXPECT_TRUE(Filled(tiles));
  EXPECT_TRUE(nowhere.Keep(tiles, kModel, kKey, pool_));
  EXPECT_FALSE(nowhere.Find(kModel, kKey, kSize, pool_));
}

TEST_F(TileCacheTest, SaysSoWhereTheDiskIsTooSmall) {
  std::string why_not;
  // The anonymous memory it gives instead is never touched.
  const std::size_t too_much = fs::space(folder_).free + (std::size_t{1} << 30);
  const TileMemory tiles = cache().Make(too_much, &why_not);
  EXPECT_NE(why_not.find("cannot make a file of"), std::string::npos) << why_not;
  EXPECT_TRUE(Files().empty());
}

TEST_F(TileCacheTest, KeepsNothingWithoutAFolder) {
  std::string why_not;
  TileMemory tiles = TileCache().Make(kSize, &why_not);
  EXPECT_EQ(why_not, "");
  EXPECT_TRUE(TileCache().Keep(tiles, kModel, kKey, pool_));
  EXPECT_FALSE(TileCache().Find(kModel, kKey, kSize, pool_));
}

}  // namespace
}  // namespace foretoken::model
