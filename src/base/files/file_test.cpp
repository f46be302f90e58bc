// SPDX-License-Identifier: Apache-2.0
// Reading and writing whole files: which kinds of files are accepted, and what is left after a
// failed write.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <thread>

#include "base/failure_testing.h"
#include "base/files/folder_testing.h"
#include "base/files/output_file.h"
#include "base/files/text_file.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

class Files : public FolderTest {
 protected:
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      names.push_back(entry.path().filename());
    return names;
  }
};

// A limit on the size of files. The signal is not ignored.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const struct rlimit limit = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  struct rlimit before_;
};

// ---- Reading -----------------------------------------------------------------------------------

TEST_F(Files, ReadsWholeTextsAndRefusesLongerOnes) {
  const std::string text(100'000, 'x');
  EXPECT_EQ(*ReadTextFile(Written("a", text)), text);
  EXPECT_EQ(*ReadTextFile(Written("empty", "")), "");
  EXPECT_TRUE(Fails(ReadTextFile(At("a"), {.most_bytes = 99'999}), ErrorCode::kTooLarge));
  EXPECT_EQ(ReadTextFile(At("none")).error().code, ErrorCode::kNotFound);
}

// Opening one of these for reading without further care waits for ever or reads without an end.
TEST_F(Files, RefusesWhatIsNoFileWithoutWaiting) {
  ASSERT_EQ(mkfifo(At("fifo").c_str(), 0600), 0);
  ASSERT_EQ(mknod(At("socket").c_str(), S_IFSOCK | 0600, 0), 0);
  for (const std::string& path :
       {At("fifo"), At("socket"), folder_, std::string("/dev/zero"), std::string("/dev/tty")}) {
    const auto text = ReadTextFile(path);
    ASSERT_FALSE(text) << path;
    EXPECT_NE(text.error().code, ErrorCode::kNotFound) << text.error().message;
    EXPECT_TRUE(text.error().message.starts_with(path + ": ")) << text.error().message;
    EXPECT_NE(text.error().message.find("; "), std::string::npos) << text.error().message;
  }
}

TEST_F(Files, ReadsAPipeWhereItIsWantedAndWaitsForItsWriter) {
  ASSERT_EQ(mkfifo(At("fifo").c_str(), 0600), 0);
  const std::string text(300'000, 'y');  // more than a pipe holds
  std::thread writer([&] {
    usleep(50'000);
    std::ofstream(At("fifo")) << text;
  });
  EXPECT_EQ(*ReadTextFile(At("fifo"), {.pipes = true}), text);
  writer.join();
}

// ---- Writing -----------------------------------------------------------------------------------

TEST_F(Files, AreReplacedAsAWholeAndLeaveNothingBeside) {
  ASSERT_TRUE(WriteTextFile(At("a"), "old"));
  ASSERT_TRUE(WriteTextFile(At("a"), "new"));
  EXPECT_EQ(*ReadTextFile(At("a")), "new");
  EXPECT_EQ(Names(), std::vector<std::string>{"a"});
}

TEST_F(Files, AreInvisibleUntilTheyArePublished) {
  Written("a", "old");
  {
    auto file = OutputFile::Create(At("a"), {});
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->Append("half"));
    EXPECT_EQ(*ReadTextFile(At("a")), "old");
  }
  EXPECT_EQ(*ReadTextFile(At("a")), "old");
  EXPECT_EQ(Names(), std::vector<std::string>{"a"});
}

TEST_F(Files, KeepWhatWasPublishedLast) {
  {
    auto file = OutputFile::Create(At("a"), {});
    ASSERT_TRUE(file->Append("one "));
    ASSERT_TRUE(file->Publish());
    ASSERT_TRUE(file->Append("two"));
  }
  EXPECT_EQ(*ReadTextFile(At("a")), "one ");
}

TEST_F(Files, TakeTheirModeFromTheUmask) {
  const mode_t before = umask(027);
  ASSERT_TRUE(WriteTextFile(At("a"), "x"));
  auto file = OutputFile::Create(At("b"), {.mode = 0600});
  ASSERT_TRUE(file->Publish());
  umask(before);
  EXPECT_EQ(fs::status(At("a")).permissions(), fs::perms(0640));
  EXPECT_EQ(fs::status(At("b")).permissions(), fs::perms(0600));
}

// A link in place of the output is replaced; its target stays as it is.
TEST_F(Files, AreNotWrittenThroughLinks) {
  const std::string target = Written("target", "precious");
  fs::create_symlink(target, At("output"));
  ASSERT_TRUE(WriteTextFile(At("output"), "x"));
  EXPECT_EQ(*ReadTextFile(target), "precious");
  EXPECT_FALSE(fs::is_symlink(At("output")));
}

// Files and links under names that a temporary file might get are not touched either.
TEST_F(Files, TakeNoTemporaryNameThatIsThere) {
  const std::string target = Written("target", "precious");
  for (int i = 0; i < 40; ++i)
    fs::create_symlink(
        target, At("output." + std::to_string(getpid()) + "-" + std::to_string(i) + ".part"));
  ASSERT_TRUE(WriteTextFile(At("output"), "x"));
  EXPECT_EQ(*ReadTextFile(target), "precious");
  EXPECT_EQ(*ReadTextFile(At("output")), "x");
  EXPECT_EQ(Names().size(), 42u);
}

TEST_F(Files, GiveAnErrorAtALimitOfTheirSizeAndKeepTheOldFile) {
  Written("a", "old");
  const SizeLimit limit(10'000);
  EXPECT_TRUE(
      Fails(WriteTextFile(At("a"), std::string(20'000, 'x')), ErrorCode::kIo, "File too large"));
  auto file = OutputFile::Create(At("b"), {});
  EXPECT_FALSE(file->Reserve(20'000));
  EXPECT_EQ(*ReadTextFile(At("a")), "old");
  EXPECT_EQ(Names(), std::vector<std::string>{"a"});
}

TEST_F(Files, GiveAnErrorOnAFullDisk) {
  EXPECT_TRUE(Fails(WriteTextFile("/dev/full", "x"), "No space left"));
}

// Other programs write to the same disk meanwhile.
TEST_F(Files, TakeNoRoomFromOthersWhereThereIsTooLittle) {
  const std::uint64_t room = fs::space(folder_).available;
  for (const auto reserve : {&OutputFile::Reserve, &OutputFile::ReserveForMapping}) {
    std::atomic<bool> done = false;
    std::atomic<std::uint64_t> least = room;
    std::jthread watcher([&] {
      while (!done) least = std::min<std::uint64_t>(least, fs::space(folder_).available);
    });
    auto file = OutputFile::Create(At("much"), {});
    const Status status = (*file.*reserve)(fs::space(folder_).free + (std::uint64_t{1} << 30));
    done = true;
    watcher.join();
    EXPECT_TRUE(Fails(status, "No space left"));
    EXPECT_GT(least, room / 2);
  }
}

TEST_F(Files, GiveAnErrorWhereAPipeHasNoReader) {
  ASSERT_EQ(mkfifo(At("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(WriteTextFile(At("fifo"), "x"));  // nobody has opened it: no wait
  const int reader = open(At("fifo").c_str(), O_RDONLY | O_NONBLOCK);
  auto file = OutputFile::Create(At("fifo"), {.devices = true});
  ASSERT_TRUE(file);
  close(reader);
  const Status status = file->Append("x");  // no signal
  EXPECT_TRUE(Fails(status, "Broken pipe"));
}

// The handling of a signal by others does not change.
TEST_F(Files, LeaveSignalsOfOthersAlone) {
  static int seen;
  seen = 0;
  const auto before = std::signal(SIGXFSZ, [](int) { ++seen; });
  {
    const SizeLimit limit(10);
    EXPECT_FALSE(WriteTextFile(At("a"), std::string(100, 'x')));
  }
  EXPECT_EQ(seen, 0);
  raise(SIGXFSZ);
  EXPECT_EQ(seen, 1);
  std::signal(SIGXFSZ, before);
}

}  // namespace
}  // namespace foretoken
