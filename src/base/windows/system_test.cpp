// SPDX-License-Identifier: Apache-2.0
// What this folder defines, by the headers that the rest of the program knows.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/aligned_buffer.h"
#include "base/files/file_name.h"
#include "base/files/input_file.h"
#include "base/files/mapped_file.h"
#include "base/files/output_file.h"
#include "base/files/own_folder.h"
#include "base/files/text_file.h"
#include "base/machine/cpus.h"
#include "base/machine/memory_limit.h"
#include "base/machine/program_path.h"
#include "base/machine/stack.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

class WindowsFiles : public testing::Test {
 protected:
  void SetUp() override {
    const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ =
        (fs::temp_directory_path() / ("foretoken_" + test + std::to_string(getpid()))).string();
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  int NumberOfFiles() const {
    return static_cast<int>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  std::string folder_;
};

TEST_F(WindowsFiles, KeepBytesAsTheyAre) {
  const std::string text("a\r\nb\n\x1a\0c", 8);
  ASSERT_TRUE(WriteTextFile(Path("x"), text));
  EXPECT_EQ(ReadTextFile(Path("x")).value(), text);
  EXPECT_EQ(fs::file_size(Path("x")), text.size());
}

TEST_F(WindowsFiles, HaveNamesInUtf8) {
  const std::string name = "\xC3\xA4\xE6\x96\x87.txt";
  ASSERT_TRUE(WriteTextFile(Path(name), "1"));
  ASSERT_TRUE(WriteTextFile(Path(name), "22"));
  EXPECT_EQ(ReadTextFile(Path(name)).value(), "22");
  EXPECT_TRUE(fs::exists(fs::path(folder_) / L"\u00e4\u6587.txt"));
  EXPECT_EQ(NumberOfFiles(), 1);
  struct stat status;
  ASSERT_EQ(stat(Path(name).c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 2);
}

TEST_F(WindowsFiles, AreWholeOrNotThere) {
  ASSERT_TRUE(WriteTextFile(Path("x"), "old"));
  {
    auto file = OutputFile::Create(Path("x"), {});
    ASSERT_TRUE(file && file->Reserve(1000) && file->Append("new"));
    EXPECT_EQ(ReadTextFile(Path("x")).value(), "old");
  }
  EXPECT_EQ(ReadTextFile(Path("x")).value(), "old");
  EXPECT_EQ(NumberOfFiles(), 1);
}

TEST_F(WindowsFiles, SayWhatIsWrong) {
  EXPECT_EQ(ReadTextFile(Path("none")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ReadTextFile(folder_).error().code, ErrorCode::kInvalidFile);
  EXPECT_EQ(WriteTextFile(folder_, "x").error().code, ErrorCode::kIo);
  EXPECT_EQ(WriteTextFile(Path("none/x"), "x").error().code, ErrorCode::kIo);
  EXPECT_EQ(MappedFile::Open(Path("none")).error().code, ErrorCode::kNotFound);
}

TEST_F(WindowsFiles, CannotBeCutWhileTheyAreMapped) {
  ASSERT_TRUE(WriteTextFile(Path("x"), std::string(100'000, 'x')));
  const auto file = MappedFile::Open(Path("x"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->bytes().size(), 100'000u);
  EXPECT_TRUE(file->Check());
  std::error_code error;
  fs::resize_file(Path("x"), 10, error);
  EXPECT_TRUE(error);
  EXPECT_EQ(static_cast<char>(file->bytes().back()), 'x');
}

TEST_F(WindowsFiles, ThatGrowWhileTheyAreMappedAreNoticed) {
  ASSERT_TRUE(WriteTextFile(Path("x"), "0123456789"));
  const auto file = MappedFile::Open(Path("x"));
  ASSERT_TRUE(file && file->Check());
  const int writer = open(Path("x").c_str(), O_WRONLY);
  ASSERT_GE(writer, 0);
  EXPECT_EQ(pwrite(writer, "abc", 3, 10), 3);
  close(writer);
  EXPECT_FALSE(file->Check());
}

TEST_F(WindowsFiles, AreReadAndWrittenAtPlaces) {
  const int file = open(Path("x").c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  ASSERT_GE(file, 0);
  EXPECT_LT(open(Path("x").c_str(), O_RDWR | O_CREAT | O_EXCL, 0600), 0);
  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(pwrite(file, "xyz", 3, 5), 3);
  char bytes[8] = {};
  EXPECT_EQ(pread(file, bytes, 8, 4), 4);
  EXPECT_EQ(std::string(bytes + 1, 3), "xyz");
  EXPECT_EQ(pread(file, bytes, 8, 100), 0);
  EXPECT_EQ(ftruncate(file, 6), 0);
  EXPECT_EQ(pread(file, bytes, 8, 0), 6);
  close(file);
  EXPECT_EQ(unlink(Path("x").c_str()), 0);
  EXPECT_EQ(NumberOfFiles(), 0);
}

TEST_F(WindowsFiles, LockOthersOutAndNotTheirBytes) {
  ASSERT_TRUE(WriteTextFile(Path("x"), "text"));
  const int first = open(Path("x").c_str(), O_RDWR), second = open(Path("x").c_str(), O_RDWR);
  EXPECT_EQ(flock(first, LOCK_EX | LOCK_NB), 0);
  EXPECT_NE(flock(second, LOCK_EX | LOCK_NB), 0);
  EXPECT_NE(flock(second, LOCK_SH | LOCK_NB), 0);
  char bytes[4] = {};
  EXPECT_EQ(pread(second, bytes, 4, 0), 4);
  EXPECT_EQ(flock(first, LOCK_UN), 0);
  EXPECT_EQ(flock(second, LOCK_SH | LOCK_NB), 0);
  close(first), close(second);
}

TEST_F(WindowsFiles, HaveFoldersOfTheirOwn) {
  EXPECT_EQ(MakeOurFolder(Path("a/b")), "");
  EXPECT_TRUE(fs::is_directory(Path("a/b")));
  EXPECT_NE(WhyNotOurFolder(Path("none")), "");
}

TEST(WindowsMachine, HasProcessorsThatThreadsStayOn) {
  const std::vector<int> cpus = UsableCpus();
  ASSERT_FALSE(cpus.empty());
  EXPECT_GE(UsableCores(), 1);
  EXPECT_LE(UsableCores(), std::ssize(cpus));
  EXPECT_NE(CpuName(), "");
  std::thread([&] {
    EXPECT_FALSE(PinThisThread(1 << 20));
    ASSERT_TRUE(PinThisThread(cpus.back()));
    EXPECT_EQ(UsableCpus(), std::vector<int>{cpus.back()});
  }).join();
  EXPECT_EQ(UsableCpus(), cpus);
}

TEST(WindowsMachine, CountsMemory) {
  constexpr std::size_t kBytes = 64 << 20;
  EXPECT_GT(TightestMemoryLimit().left(), std::int64_t{kBytes});
  const std::int64_t before = ReadProcessMemory().resident_bytes;
  EXPECT_GT(before, 0);
  AlignedBytes bytes(kBytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64, 0u);
  std::memset(bytes.data(), 1, kBytes);
  EXPECT_GT(ReadProcessMemory().resident_bytes, before + std::int64_t{kBytes / 2});
}

std::size_t StackLeftBelow(int depth) {
  volatile char room[1000] = {};
  return depth == 0 ? StackLeft() : StackLeftBelow(depth - 1) + static_cast<std::size_t>(room[0]);
}

TEST(WindowsMachine, KnowsItsStack) {
  EXPECT_LT(StackLeft(), std::size_t{64} << 20);
  EXPECT_LE(StackLeftBelow(100) + 100'000, StackLeft());
  std::thread([] { EXPECT_LT(StackLeft(), std::size_t{64} << 20); }).join();
}

// The exact sum lies a little below the middle of two numbers.
TEST(WindowsMachine, RoundsAFusedProductOnce) {
  const volatile float x = 0x1.000002p-24f, y = 0x1.fffffcp-1f, z = 0x1.000002p0f;
  EXPECT_EQ(std::fma(x, y, z), z);
}

TEST(WindowsNames, FollowEachKindOfSeparator) {
  for (const std::string folder : {"", "a/", "a\\", "a/b\\", "a\\b/", "C:"})
    EXPECT_EQ(NameStart(folder + "name"), folder.size()) << folder;
}

TEST(WindowsMachine, KnowsItsProgram) {
  EXPECT_EQ(ProgramPath().filename(), "base_tests.exe");
}

}  // namespace
}  // namespace foretoken
