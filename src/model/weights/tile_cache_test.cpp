// SPDX-License-Identifier: Apache-2.0
#include "model/weights/tile_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "base/failure_testing.h"
#include "base/files/folder_testing.h"
#include "model/weights/tile_header.h"

namespace foretoken::model {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCachedBytes = 9'000'000;  // more than two pieces of the checksum
constexpr std::uint64_t kCachedKey = 12345, kSource = 678;

class TileCacheTest : public FolderTest {
 protected:
  static std::byte Value(std::size_t i) { return static_cast<std::byte>(i * 31 % 251); }
  static void Fill(TileMemory& tiles) {
    for (std::size_t i = 0; i < tiles.size_bytes(); ++i) tiles.data()[i] = Value(i);
  }
  static bool Filled(const TileMemory& tiles) {
    for (std::size_t i = 0; i < tiles.size_bytes(); ++i)
      if (tiles.data()[i] != Value(i)) return false;
    return true;
  }
  TileMemory Make(std::size_t size = kCachedBytes) const {
    std::string why_not;
    TileMemory tiles = cache().Make(kModel, size, &why_not);
    EXPECT_EQ(why_not, "");
    return tiles;
  }
  // Keeps kSize bytes for model.gguf and returns the path of the file.
  fs::path KeepOne() {
    TileMemory tiles = Make();
    Fill(tiles);
    EXPECT_TRUE(cache().Keep(tiles, kCachedKey, kSource, pool_));
    EXPECT_TRUE(Filled(tiles));
    EXPECT_EQ(Files().size(), 1u);
    return Files().at(0);
  }
  // Stops the making of tiles when n bytes are final.
  fs::path StopAt(std::size_t n, std::uint64_t key = kCachedKey) {
    TileMemory tiles = Make();
    for (std::size_t i = 0; i < n; ++i) tiles.data()[i] = Value(i);
    tiles.Finish(n, pool_);
    cache().KeepUnfinished(tiles, key);
    return Files().empty() ? fs::path() : Files().at(0);
  }
  static std::vector<char> Content(const fs::path& file) {
    std::vector<char> bytes(fs::file_size(file));
    std::ifstream(file, std::ios::binary)
        .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return bytes;
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_)) files.push_back(entry.path());
    return files;
  }
  std::optional<TileMemory> Find(std::uint64_t key = kCachedKey, std::size_t size = kCachedBytes) {
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
  ThreadPool pool_{2};
};

TEST_F(TileCacheTest, FindsWhatWasKept) {
  KeepOne();
  const auto found = Find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size_bytes(), kCachedBytes);
  EXPECT_TRUE(Filled(*found));
}

TEST_F(TileCacheTest, HashesAndWritesTilesAsTheyBecomeFinal) {
  const fs::path at_once = KeepOne();
  const std::vector<char> expected = Content(at_once);
  TileMemory tiles = Make();
  ASSERT_TRUE(tiles.in_file());
  for (std::size_t n = 0; n < kCachedBytes;) {
    const std::size_t end = std::min(n + 1'234'567, kCachedBytes);
    for (; n < end; ++n) tiles.data()[n] = Value(n);
    tiles.Finish(n, pool_);
    tiles.WriteBack(n);
  }
  EXPECT_TRUE(cache().Keep(tiles, kCachedKey, kSource, pool_));
  EXPECT_TRUE(Filled(tiles));
  EXPECT_TRUE(Content(at_once) == expected);
}

TEST_F(TileCacheTest, TellsHowFarItHasReadAndStops) {
  KeepOne();
  std::vector<std::size_t> seen;
  EXPECT_TRUE(cache().Find(kModel, kCachedKey, kCachedBytes, pool_, [&](std::size_t n) {
    seen.push_back(n);
    return true;
  }));
  EXPECT_EQ(seen, std::vector<std::size_t>{kCachedBytes}) << "a step has 256 MiB";
  EXPECT_FALSE(
      cache().Find(kModel, kCachedKey, kCachedBytes, pool_, [](std::size_t) { return false; }));
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(TileCacheTest, MeasuresTheDiskWhereTheTilesAreManyEnough) {
  constexpr std::size_t kMany = 80 << 20;
  TileMemory tiles = Make(kMany);
  ASSERT_TRUE(tiles.in_file());
  for (std::size_t i = 0; i < kMany; i += 4096) tiles.data()[i] = Value(i);
  EXPECT_TRUE(cache().Keep(tiles, kCachedKey, kSource, pool_));
  EXPECT_GE(tiles.ReadSpeed(), 0);  // 0 where no page can leave memory, as on a RAM disk
  for (std::size_t i = 0; i < kMany; i += 4096) ASSERT_EQ(tiles.data()[i], Value(i));
  EXPECT_EQ(TileMemory(kMany).ReadSpeed(), 0);
}

TEST_F(TileCacheTest, FindsItWithAnyNumberOfThreads) {
  KeepOne();
  ThreadPool alone(1), many(5);
  EXPECT_TRUE(cache().Find(kModel, kCachedKey, kCachedBytes, alone));
  EXPECT_TRUE(cache().Find(kModel, kCachedKey, kCachedBytes, many));
}

TEST_F(TileCacheTest, TrustsNoOtherKeySizeOrModel) {
  KeepOne();
  EXPECT_FALSE(Find(kCachedKey + 1));
  EXPECT_FALSE(Find(kCachedKey, kCachedBytes - 1));
  EXPECT_FALSE(cache().Find("/elsewhere/model.gguf", kCachedKey, kCachedBytes, pool_));
}

TEST_F(TileCacheTest, TrustsNoTruncatedOrLongerFile) {
  const fs::path file = KeepOne();
  for (const auto size :
       {std::size_t{0}, std::size_t{100}, kCachedBytes, kCachedBytes + 4095, kCachedBytes + 4097}) {
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
  for (const mode_t mode : {0666, 0660, 0620, 0602}) {
    chmod(file.c_str(), mode);
    EXPECT_FALSE(Find()) << mode;
  }
  chmod(file.c_str(), 0600);
  EXPECT_TRUE(Find());
}

TEST_F(TileCacheTest, TrustsNoFolderThatOthersMayWrite) {
  KeepOne();
  for (const mode_t mode : {0770, 0720, 0702, 01777}) {
    chmod(folder_.c_str(), mode);
    EXPECT_FALSE(Find()) << mode;
    std::string why_not;
    const TileMemory tiles = cache().Make(kModel, 100, &why_not);
    EXPECT_NE(why_not.find("others may write to it"), std::string::npos) << why_not;
  }
  chmod(folder_.c_str(), 0700);
  EXPECT_TRUE(Find());
}

// Only root can give files to another user.
TEST_F(TileCacheTest, TrustsNoFileAndNoFolderOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const fs::path file = KeepOne();
  ASSERT_EQ(chown(file.c_str(), 1234, 1234), 0);
  EXPECT_FALSE(Find());
  ASSERT_EQ(chown(file.c_str(), 0, 0), 0);
  EXPECT_TRUE(Find());
  ASSERT_EQ(chown(folder_.c_str(), 1234, 1234), 0);
  EXPECT_FALSE(Find());
}

TEST_F(TileCacheTest, DoesNotWaitForAPipeInItsPlace) {
  const fs::path file = KeepOne();
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_FALSE(Find());
}

TEST_F(TileCacheTest, MakesItsFolderForThisUserAloneWhateverTheUmask) {
  const TileCache deeper(folder_ + "/own");
  std::string why_not;
  const mode_t before = umask(0);
  const TileMemory tiles = deeper.Make(kModel, 100, &why_not);
  umask(before);
  EXPECT_EQ(why_not, "");
  EXPECT_EQ(fs::status(folder_ + "/own").permissions(), fs::perms(0700));
}

TEST_F(TileCacheTest, RemembersWhatTheTilesWereMadeOf) {
  KeepOne();
  EXPECT_EQ(Find()->source_hash(), kSource);
}

// ---- Files that change while their tiles are in use --------------------------------------------

TEST_F(TileCacheTest, NoticesAFileThatIsCutShortAndSurvives) {
  const fs::path file = KeepOne();
  auto tiles = Find();
  ASSERT_TRUE(tiles->Check(pool_));
  fs::resize_file(file, 4096 + 1'000'000);
  EXPECT_EQ(tiles->data()[8'000'000], std::byte{0});  // without the handler the process ends here
  EXPECT_FALSE(tiles->QuickCheck());
  EXPECT_TRUE(Fails(tiles->Check(pool_), file.string() + ": the file was cut short"));
}

TEST_F(TileCacheTest, NoticesAFileThatIsWrittenOver) {
  const fs::path file = KeepOne();
  auto tiles = Find();
  usleep(20'000);  // a tick of the file system's clock
  Overwrite(file, 4096 + 5'000'000, 'x');
  EXPECT_TRUE(Fails(tiles->Check(pool_), "the file was changed"));
}

TEST_F(TileCacheTest, NoticesAFileThatIsWrittenOverAndGetsItsOldTimeAgain) {
  const fs::path file = KeepOne();
  auto tiles = Find();
  const auto time = fs::last_write_time(file);
  Overwrite(file, 4096 + 5'000'000, 'x');
  fs::last_write_time(file, time);
  EXPECT_FALSE(tiles->Check(pool_));
}

TEST_F(TileCacheTest, NoticesItInTilesThatItHasJustMade) {
  TileMemory tiles = Make();
  Fill(tiles);
  ASSERT_TRUE(cache().Keep(tiles, kCachedKey, kSource, pool_));
  EXPECT_TRUE(tiles.Check(pool_));
  usleep(20'000);
  Overwrite(Files().at(0), 4096 + 5'000'000, 'x');
  EXPECT_FALSE(tiles.Check(pool_));
}

TEST_F(TileCacheTest, DoesNotMindAnotherNameModeOrFileInItsPlace) {
  const fs::path file = KeepOne();
  auto tiles = Find();
  chmod(file.c_str(), 0400);
  EXPECT_TRUE(tiles->Check(pool_));
  fs::rename(file, folder_ + "/other");
  EXPECT_TRUE(tiles->Check(pool_));
  fs::remove(folder_ + "/other");
  EXPECT_TRUE(tiles->Check(pool_));
  KeepOne();
  EXPECT_TRUE(tiles->Check(pool_));
  EXPECT_TRUE(Filled(*tiles));
}

TEST_F(TileCacheTest, DropsItsFileAndNoOther) {
  const fs::path file = KeepOne();
  auto old = Find();
  KeepOne();  // a newer file takes its place
  TileCache::Drop(*old);
  EXPECT_EQ(Files().size(), 1u);
  TileCache::Drop(*Find());
  EXPECT_TRUE(Files().empty());
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
  {
    TileMemory tiles = Make();
    Fill(tiles);
  }
  EXPECT_TRUE(Files().empty());
}

// ---- Tiles whose making was stopped ------------------------------------------------------------

TEST_F(TileCacheTest, GoesOnWhereAStoppedMakingEnded) {
  const auto whole = Content(KeepOne());
  fs::remove(Files().at(0));
  EXPECT_EQ(fs::file_size(StopAt(5'000'000)), 4096 + kHashPieceBytes) << "whole pieces are kept";
  EXPECT_FALSE(Find());

  TileMemory tiles = Make();
  const std::size_t made = cache().TakeUnfinished(tiles, kCachedKey, pool_);
  ASSERT_EQ(made, kHashPieceBytes);
  for (std::size_t i = 0; i < kCachedBytes; ++i)
    ASSERT_EQ(tiles.data()[i], i < made ? Value(i) : std::byte{0}) << i;
  for (std::size_t i = made; i < kCachedBytes; ++i) tiles.data()[i] = Value(i);
  EXPECT_TRUE(cache().Keep(tiles, kCachedKey, kSource, pool_));
  EXPECT_TRUE(Content(Files().at(0)) == whole);
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(TileCacheTest, KeepsNothingOfAMakingThatHasJustBegun) {
  StopAt(kHashPieceBytes - 1);
  EXPECT_TRUE(Files().empty());
}

TEST_F(TileCacheTest, ReplacesNoFileThatHasAsMuch) {
  const auto whole = Content(KeepOne());
  StopAt(5'000'000);
  EXPECT_TRUE(Content(Files().at(0)) == whole);
  fs::remove(Files().at(0));
  const auto more = Content(StopAt(8'500'000));
  EXPECT_EQ(more.size(), 4096 + 2 * kHashPieceBytes);
  StopAt(5'000'000);
  EXPECT_TRUE(Content(Files().at(0)) == more);
  StopAt(5'000'000, kCachedKey + 1);  // other tiles, of a model that was changed
  EXPECT_LT(fs::file_size(Files().at(0)), more.size());
}

TEST_F(TileCacheTest, TakesNoUnfinishedFileThatItCannotTrust) {
  const auto take = [&](std::uint64_t key = kCachedKey, std::size_t size = kCachedBytes) {
    TileMemory tiles = Make(size);
    const std::size_t made = cache().TakeUnfinished(tiles, key, pool_);
    if (made == 0) {
      EXPECT_TRUE(std::all_of(tiles.data(), tiles.data() + size,
                              [](std::byte b) { return b == std::byte{0}; }));
    }
    return made;
  };
  const fs::path file = StopAt(5'000'000);
  EXPECT_EQ(take(), kHashPieceBytes);
  EXPECT_EQ(take(kCachedKey + 1), 0u);
  EXPECT_EQ(take(kCachedKey, kCachedBytes + 1), 0u);
  chmod(file.c_str(), 0666);
  EXPECT_EQ(take(), 0u);
  chmod(file.c_str(), 0600);
  EXPECT_EQ(take(), kHashPieceBytes);
  for (const std::streamoff at : {0, 8, 12, 16, 24, 32, 40, 48, 4096, 4096 + 4'000'000}) {
    fs::remove(file);
    StopAt(5'000'000);
    Overwrite(file, at, static_cast<char>(0x5c));
    EXPECT_EQ(take(), 0u) << at;
  }
  for (const std::size_t size : {std::size_t{10}, std::size_t{5000}, 4095 + kHashPieceBytes,
                                 4097 + kHashPieceBytes, 4096 + kCachedBytes}) {
    fs::remove(file);
    StopAt(5'000'000);
    fs::resize_file(file, size);
    EXPECT_EQ(take(), 0u) << size;
  }
}

// Headers that another program wrote, with hashes that are right.
TEST_F(TileCacheTest, TakesNoMoreThanAnUnfinishedFileHas) {
  for (const std::size_t made :
       {std::size_t{0}, std::size_t{100}, kHashPieceBytes - 1, kHashPieceBytes + 1,
        2 * kHashPieceBytes, kCachedBytes, 3 * kHashPieceBytes, ~std::size_t{0}}) {
    const fs::path file = StopAt(5'000'000);
    auto content = Content(file);
    TileHeader header;
    std::memcpy(&header, content.data(), sizeof header);
    header = UnfinishedHeaderOf(kCachedKey, kCachedBytes, header.checksum, made);
    std::memcpy(content.data(), &header, sizeof header);
    for (const std::size_t size :
         {content.size(), std::min<std::size_t>(4096 + made, 4096 + 3 * kHashPieceBytes)}) {
      content.resize(size);
      std::ofstream(file, std::ios::binary)
          .write(content.data(), static_cast<std::streamsize>(content.size()));
      TileMemory tiles = Make();
      EXPECT_EQ(cache().TakeUnfinished(tiles, kCachedKey, pool_), 0u) << made << " " << size;
    }
    fs::remove(file);
  }
}

TEST_F(TileCacheTest, MakesItsFolder) {
  const TileCache deeper(folder_ + "/not/yet");
  std::string why_not;
  TileMemory tiles = deeper.Make(kModel, kCachedBytes, &why_not);
  EXPECT_EQ(why_not, "");
  EXPECT_TRUE(deeper.Keep(tiles, kCachedKey, kSource, pool_));
  EXPECT_TRUE(deeper.Find(kModel, kCachedKey, kCachedBytes, pool_));
}

TEST_F(TileCacheTest, GivesAnonymousMemoryAndAReasonWhereAFileCannotBe) {
  std::ofstream(folder_ + "/file") << "no folder";
  const TileCache nowhere(folder_ + "/file");
  std::string why_not;
  TileMemory tiles = nowhere.Make(kModel, kCachedBytes, &why_not);
  EXPECT_NE(why_not.find("/file: cannot make a file"), std::string::npos) << why_not;
  Fill(tiles);
  EXPECT_TRUE(Filled(tiles));
  EXPECT_TRUE(nowhere.Keep(tiles, kCachedKey, kSource, pool_));
  EXPECT_FALSE(nowhere.Find(kModel, kCachedKey, kCachedBytes, pool_));
}

TEST_F(TileCacheTest, SaysSoWhereTheDiskIsTooSmall) {
  std::string why_not;
  // The anonymous memory that comes instead is never touched.
  const std::size_t too_much = fs::space(folder_).free + (std::size_t{1} << 30);
  const TileMemory tiles = cache().Make(kModel, too_much, &why_not);
  EXPECT_NE(why_not.find("no room for"), std::string::npos) << why_not;
  EXPECT_TRUE(Files().empty());
}

TEST_F(TileCacheTest, KeepsNothingWithoutAFolder) {
  std::string why_not;
  TileMemory tiles = TileCache().Make(kModel, kCachedBytes, &why_not);
  EXPECT_EQ(why_not, "");
  EXPECT_TRUE(TileCache().Keep(tiles, kCachedKey, kSource, pool_));
  EXPECT_FALSE(TileCache().Find(kModel, kCachedKey, kCachedBytes, pool_));
}

}  // namespace
}  // namespace foretoken::model
