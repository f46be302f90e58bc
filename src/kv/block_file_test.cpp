// SPDX-License-Identifier: Apache-2.0
// A file of blocks: what is written comes back, and whatever else is in the file does no harm.
#include "kv/block_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <random>

#include "base/failure_testing.h"
#include "base/files/folder_testing.h"
#include "base/files/whole_file_testing.h"

namespace foretoken::kv {
namespace {

constexpr std::int64_t kFileBlockBytes = 96, kFileStateBytes = 40;

struct BlockFileTest : FolderTest {
  std::string path = At("blocks");
  BlockFile::Shape shape = {.made_by = RootKey("model"),
                            .block_bytes = kFileBlockBytes,
                            .state_bytes = kFileStateBytes,
                            .max_bytes = 4096 + 40 * (kFileBlockBytes + 232)};

  BlockFile Open() {
    auto file = BlockFile::Open(path, shape);
    if (!file) ADD_FAILURE() << file.error().message;
    return *std::move(file);
  }
  std::string WhyNot() { return MessageOf(BlockFile::Open(path, shape)); }
  std::string Bytes() const { return WholeFile(path); }
  void Put(const std::string& bytes) const {
    unlink(path.c_str());
    std::ofstream(path, std::ios::binary) << bytes;
    chmod(path.c_str(), 0600);
  }
};

BlockFile::Text FileText(Token first, int n_tokens = 32, std::int32_t n_before = 0) {
  BlockFile::Text text{.before = RootKey("salt"), .n_before = n_before, .n_tokens = n_tokens};
  for (int i = 0; i < n_tokens; ++i) text.tokens[static_cast<std::size_t>(i)] = first + i;
  return text;
}

BlockKey FileKey(const BlockFile::Text& text) {
  return KeyAfter(text.before, text.View());
}

// The bytes of a record in three parts.
struct FileBytes {
  std::vector<std::byte> bytes;
  std::vector<std::span<std::byte>> parts;
  explicit FileBytes(std::int64_t n, int value = 0)
      : bytes(static_cast<std::size_t>(n), std::byte(value)) {
    const std::span all(bytes);
    parts = {all.first(7), all.subspan(7, 20), all.subspan(27)};
  }
};

bool WriteTo(BlockFile& file, const BlockFile::Text& text, int value) {
  return file.Write(BlockFile::kBlock, text, FileBytes(kFileBlockBytes, value).parts);
}

// The value of all bytes of a block; -1: it is not there, -2: it could not be read, -3: they differ.
int ReadFrom(BlockFile& file, const BlockFile::Text& text) {
  const std::int32_t place = file.Find(BlockFile::kBlock, FileKey(text));
  if (place == BlockFile::kNone) return -1;
  FileBytes read(kFileBlockBytes);
  if (!file.Read(BlockFile::kBlock, place, read.parts)) return -2;
  for (const std::byte byte : read.bytes)
    if (byte != read.bytes[0]) return -3;
  return std::to_integer<int>(read.bytes[0]);
}

TEST_F(BlockFileTest, WhatIsWrittenComesBackAlsoInALaterProcess) {
  {
    BlockFile file = Open();
    EXPECT_EQ(ReadFrom(file, FileText(1)), -1);
    EXPECT_TRUE(WriteTo(file, FileText(1), 11));
    EXPECT_TRUE(WriteTo(file, FileText(1), 12));  // is known
    EXPECT_TRUE(WriteTo(file, FileText(1, 20), 13));
    BlockFile::Text state = FileText(1, 20);
    state.first = 14, state.last = 20;
    EXPECT_TRUE(file.Write(BlockFile::kState, state, FileBytes(kFileStateBytes, 14).parts));
    EXPECT_EQ(ReadFrom(file, FileText(1)), 11);
  }
  BlockFile file = Open();
  EXPECT_EQ(file.n_records(BlockFile::kBlock), 2);
  EXPECT_EQ(ReadFrom(file, FileText(1)), 11);
  EXPECT_EQ(ReadFrom(file, FileText(1, 20)), 13);
  const std::int32_t state = file.Find(BlockFile::kState, FileKey(FileText(1, 20)));
  ASSERT_NE(state, BlockFile::kNone);
  EXPECT_EQ(file.TextOf(BlockFile::kState, state).first, 14);
  FileBytes read(kFileStateBytes);
  EXPECT_TRUE(file.Read(BlockFile::kState, state, read.parts));
  EXPECT_EQ(read.bytes[39], std::byte{14});
}

TEST_F(BlockFileTest, TheRecordThatWasUsedLongestAgoMakesRoom) {
  BlockFile file = Open();
  const int most = file.n_places(BlockFile::kBlock);
  for (int i = 0; i < most; ++i) EXPECT_TRUE(WriteTo(file, FileText(100 * i), 1 + i));
  EXPECT_EQ(ReadFrom(file, FileText(0)), 1);
  EXPECT_TRUE(WriteTo(file, FileText(99'999), 77));
  EXPECT_EQ(ReadFrom(file, FileText(0)), 1);
  EXPECT_EQ(ReadFrom(file, FileText(100)), -1);
  EXPECT_EQ(ReadFrom(file, FileText(99'999)), 77);
  EXPECT_EQ(file.n_records(BlockFile::kBlock), most);
  EXPECT_LE(static_cast<std::int64_t>(Bytes().size()), shape.max_bytes);
}

TEST_F(BlockFileTest, FindsWhatHasMostTokensInCommon) {
  BlockFile file = Open();
  BlockFile::Text near = FileText(1, 10);
  near.tokens[9] = 500;
  EXPECT_TRUE(WriteTo(file, near, 1));
  EXPECT_TRUE(WriteTo(file, FileText(1, 5), 2));
  const auto tokens = FileText(1);
  const auto like = [&](auto&& fits) {
    return file.FindLike(BlockFile::kBlock, tokens.before, tokens.View(), fits);
  };
  EXPECT_EQ(file.TextOf(BlockFile::kBlock, like([](auto&, int) { return true; })).n_tokens, 10);
  EXPECT_EQ(like([](auto& text, int) { return text.n_tokens == 3; }), BlockFile::kNone);
  EXPECT_EQ(file.FindLike(BlockFile::kBlock, RootKey("other"), tokens.View(),
                          [](auto&, int) { return true; }),
            BlockFile::kNone);
}

TEST_F(BlockFileTest, ForeignFilesAreRefusedAndLeftAlone) {
  {
    BlockFile file = Open();
    EXPECT_TRUE(WriteTo(file, FileText(1), 5));
  }
  const std::string good = Bytes();
  shape.made_by = RootKey("other model");
  EXPECT_NE(WhyNot().find("of another model"), std::string::npos) << WhyNot();
  EXPECT_EQ(Bytes(), good);
  shape.made_by = RootKey("model");
  std::string other = good;
  other[8] = 1;
  Put(other);
  EXPECT_NE(WhyNot().find("another version"), std::string::npos) << WhyNot();
  other = good, other[60] ^= 1;
  Put(other);
  EXPECT_NE(WhyNot(), "");
  Put("a letter to somebody");
  EXPECT_NE(WhyNot().find("no file of cache blocks"), std::string::npos) << WhyNot();
  EXPECT_EQ(Bytes(), "a letter to somebody");
  Put(good);
  const BlockFile file = Open();
  EXPECT_NE(WhyNot().find("another process"), std::string::npos) << WhyNot();
}

TEST_F(BlockFileTest, AFileThatOthersMayWriteIsRefused) {
  Open();
  chmod(path.c_str(), 0622);
  EXPECT_NE(WhyNot().find("others may write"), std::string::npos) << WhyNot();
  chmod(path.c_str(), 0600);
  EXPECT_EQ(WhyNot(), "");
}

TEST_F(BlockFileTest, WhatIsErasedIsNotFoundLater) {
  {
    BlockFile file = Open();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(WriteTo(file, FileText(100 * i), 1 + i));
    file.Erase(BlockFile::kBlock, file.Find(BlockFile::kBlock, FileKey(FileText(100))));
    EXPECT_EQ(ReadFrom(file, FileText(100)), -1);
    EXPECT_EQ(file.n_records(BlockFile::kBlock), 2);
  }
  BlockFile file = Open();
  EXPECT_EQ(file.n_refused(), 0);
  EXPECT_EQ(ReadFrom(file, FileText(0)), 1);
  EXPECT_EQ(ReadFrom(file, FileText(100)), -1);
  EXPECT_EQ(ReadFrom(file, FileText(200)), 3);
  EXPECT_TRUE(WriteTo(file, FileText(100), 9));
  EXPECT_EQ(ReadFrom(file, FileText(100)), 9);
}

TEST_F(BlockFileTest, CountsWhatItRefuses) {
  {
    BlockFile file = Open();
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(WriteTo(file, FileText(100 * i), 1 + i));
  }
  const std::string good = Bytes();
  std::string bad = good;
  bad[4096 + 100] ^= 1;                        // the head of the first record
  bad[bad.size() - 1 - kFileBlockBytes] ^= 1;  // bytes of the third
  Put(bad.substr(0, bad.size() - 1));          // and the last one is torn
  BlockFile file = Open();
  EXPECT_EQ(file.n_records(BlockFile::kBlock), 2);
  EXPECT_EQ(file.n_refused(), 2);
  EXPECT_EQ(ReadFrom(file, FileText(100)), 2);
  EXPECT_EQ(ReadFrom(file, FileText(200)), -2);
  EXPECT_EQ(file.n_refused(), 3);
  EXPECT_TRUE(file.status());
  // Somebody cuts it while it is open.
  const int other = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(ftruncate(other, 4096), 0);
  close(other);
  EXPECT_EQ(ReadFrom(file, FileText(100)), -2);
  EXPECT_EQ(file.n_refused(), 4);
  EXPECT_FALSE(file.status());
  EXPECT_FALSE(WriteTo(file, FileText(900), 1));
}

TEST_F(BlockFileTest, AFileOfOneTextIsSeenWhenItIsWhole) {
  shape.owner = RootKey("ann");
  const BlockFile::Slots two = {2, 0};
  for (const bool published : {false, true}) {
    auto file = Got(BlockFile::Create(path, shape, two));
    EXPECT_TRUE(WriteTo(file, FileText(0), 1));
    BlockFile::Text next = FileText(50, 7, 1);
    next.before = FileKey(FileText(0));
    EXPECT_TRUE(WriteTo(file, next, 2));
    EXPECT_EQ(Bytes(), "");
    if (published) EXPECT_TRUE(file.Publish());
  }
  EXPECT_EQ(static_cast<std::int64_t>(Bytes().size()), BlockFile::BytesFor(shape, two));
  {
    auto read = Got(BlockFile::OpenToRead(path, shape, {2, 0}));
    const std::int32_t first = read.Follower(BlockFile::kBlock, RootKey("salt"));
    ASSERT_NE(first, BlockFile::kNone);
    const std::int32_t second =
        read.Follower(BlockFile::kBlock, read.KeyOf(BlockFile::kBlock, first));
    EXPECT_EQ(read.TextOf(BlockFile::kBlock, second).n_tokens, 7);
    EXPECT_EQ(read.Follower(BlockFile::kBlock, read.KeyOf(BlockFile::kBlock, second)),
              BlockFile::kNone);
    EXPECT_EQ(ReadFrom(read, FileText(0)), 1);
  }
  EXPECT_EQ(BlockFile::OpenToRead(path, shape, {1, 0}).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(BlockFile::OpenToRead(path + ".none", shape, {2, 0}).error().code,
            ErrorCode::kNotFound);
  EXPECT_TRUE(BlockFile::MayReplace(path, RootKey("ann")));
  EXPECT_TRUE(BlockFile::MayReplace(path + ".none", RootKey("bob")));
  EXPECT_FALSE(BlockFile::MayReplace(path, RootKey("bob")));
  shape.owner = RootKey("bob");
  EXPECT_EQ(BlockFile::OpenToRead(path, shape, {2, 0}).error().code, ErrorCode::kMismatch);
  EXPECT_NE(WhyNot(), "");
}

// Wherever a file is cut or changed, a block that comes back has the bytes that were written.
TEST_F(BlockFileTest, DamageNeverComesBackAsABlock) {
  {
    BlockFile file = Open();
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(WriteTo(file, FileText(100 * i), 1 + i));
  }
  const std::string good = Bytes();
  std::mt19937 random(7);
  int n_lost = 0;
  for (int round = 0; round < 400; ++round) {
    std::string bad = good;
    if (round % 4 == 0)
      bad.resize(4096 + random() % (bad.size() - 4096));
    else
      bad[4096 + random() % (bad.size() - 4096)] ^= static_cast<char>(1 + random() % 255);
    Put(bad);
    BlockFile file = Open();
    for (int i = 0; i < 5; ++i) {
      const int value = ReadFrom(file, FileText(100 * i));
      EXPECT_TRUE(value == 1 + i || value == -1 || value == -2) << value;
      n_lost += value != 1 + i ? 1 : 0;
    }
    EXPECT_TRUE(WriteTo(file, FileText(7777), 9));
    EXPECT_EQ(ReadFrom(file, FileText(7777)), 9);
  }
  EXPECT_GE(n_lost, 400);
}

#if !defined(_WIN32)  // it limits no files
TEST_F(BlockFileTest, AFullDiskEndsWritingAndNothingElse) {
  BlockFile file = Open();
  EXPECT_TRUE(WriteTo(file, FileText(1), 5));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 4096 + 400, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_FALSE(WriteTo(file, FileText(100), 6));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_FALSE(file.status());
  EXPECT_NE(file.status().error().message.find("cannot write"), std::string::npos);
  EXPECT_EQ(ReadFrom(file, FileText(1)), 5);
  EXPECT_EQ(ReadFrom(file, FileText(100)), -1);
  EXPECT_FALSE(WriteTo(file, FileText(200), 7));
}
#endif

}  // namespace
}  // namespace foretoken::kv
