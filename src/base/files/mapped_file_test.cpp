// SPDX-License-Identifier: Apache-2.0
// Files that change while they are mapped.
#include "base/files/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <csignal>
#include <thread>

#include "base/failure_testing.h"
#include "base/files/folder_testing.h"
#include "base/files/read_ahead.h"
#include "foretoken/options.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kPage = 4096;

class MappedFiles : public FolderTest {
 protected:
  std::string Written(const std::string& name, std::size_t pages) const {
    return FolderTest::Written(name, std::string(pages * kPage, 'x'));
  }
};

int Sum(const MappedFile& file) {
  int sum = 0;
  for (std::size_t at = 0; at < file.bytes().size(); at += kPage)
    sum += std::to_integer<int>(file.bytes()[at]);
  return sum;
}

TEST_F(MappedFiles, AreReadAndPassTheirCheck) {
  const auto file = MappedFile::Open(Written("a", 8));
  ASSERT_TRUE(file);
  EXPECT_EQ(Sum(*file), 8 * 'x');
  EXPECT_TRUE(file->Check());
}

TEST_F(MappedFiles, AreReadAheadWhereTheirPagesAreAbsent) {
  const std::string path = Written("ahead", 3000);
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(fsync(descriptor), 0);
  posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);  // no effect on a RAM disk
  close(descriptor);
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file);
  const auto part = file->bytes().subspan(5 * kPage + 7, 2900 * kPage);
  EXPECT_LE(ReadAhead(part), 2901 * kPage);
  EXPECT_EQ(Sum(*file), 3000 * 'x');
  EXPECT_EQ(ReadAhead(part), 0u);
  EXPECT_EQ(ReadAhead(part.first(0)), 0u);
}

TEST_F(MappedFiles, ThatAreCutShortReadAsZerosAndFailTheirCheck) {
  const std::string path = Written("a", 64);
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file);
  fs::resize_file(path, 16 * kPage);
  EXPECT_EQ(Sum(*file), 16 * 'x');  // without the handler the process ends here
  const Status status = file->Check();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_TRUE(status.error().message.starts_with(path + ": the file was cut short"));
  // It stays an error when the file gets its old size back.
  fs::resize_file(path, 64 * kPage);
  EXPECT_FALSE(file->Check());
}

TEST_F(MappedFiles, SurviveFaultsOnManyThreadsAndInManyMappings) {
  std::vector<MappedFile> files;
  for (int i = 0; i < 20; ++i) {
    files.push_back(*MappedFile::Open(Written(std::to_string(i), 32)));
    if (i % 2 == 0) fs::resize_file(files.back().path(), kPage);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (const MappedFile& file : files) Sum(file);
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < files.size(); ++i)
    EXPECT_EQ(files[i].Check().has_value(), i % 2 == 1);
  // New mappings in their place start without a fault.
  files.clear();
  const auto next = MappedFile::Open(Written("next", 8));
  EXPECT_TRUE(next->Check());
}

TEST_F(MappedFiles, ThatAreOverwrittenFailTheirCheck) {
  const std::string path = Written("a", 4);
  const auto file = MappedFile::Open(path);
  usleep(20'000);  // a tick of the file system's clock
  const int fd = open(path.c_str(), O_WRONLY);
  ASSERT_EQ(pwrite(fd, "y", 1, 0), 1);
  EXPECT_TRUE(MessageOf(file->Check()).starts_with(path + ": the file was changed"));
  close(fd);
}

TEST_F(MappedFiles, ThatWereReplacedByAnotherFileStayAsTheyAre) {
  const std::string path = Written("a", 4);
  const auto file = MappedFile::Open(path);
  fs::rename(Written("b", 2), path);
  EXPECT_EQ(Sum(*file), 4 * 'x');
  EXPECT_TRUE(file->Check());
}

// ---- The handler beside those of the program ---------------------------------------------------

using MappedFilesDeathTest = MappedFiles;

const std::byte* UnguardedMapping(const std::string& path, std::size_t pages) {
  const int fd = open(path.c_str(), O_RDONLY);
  void* p = mmap(nullptr, pages * kPage, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  return static_cast<const std::byte*>(p);
}

// Sanitizers have a handler of their own, which reports and exits with an error.
bool EndsByBusError(int status) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (WIFEXITED(status)) return WEXITSTATUS(status) != 0;
#endif
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
}

TEST_F(MappedFilesDeathTest, AFaultElsewhereEndsTheProgramAsBefore) {
  const std::string path = Written("a", 4);
  EXPECT_EXIT(
      {
        const auto guarded = MappedFile::Open(Written("b", 4));
        const std::byte* p = UnguardedMapping(path, 4);
        fs::resize_file(path, 0);
        _exit(std::to_integer<int>(*static_cast<const volatile std::byte*>(p)));
      },
      EndsByBusError, "");
  EXPECT_EXIT(kill(getpid(), SIGBUS), EndsByBusError, "");
}

TEST_F(MappedFilesDeathTest, AFaultElsewhereReachesTheHandlerThatWasThereBefore) {
  const std::string path = Written("a", 4), own = Written("b", 4);
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, [](int) { _exit(77); });
        const auto guarded = MappedFile::Open(own);
        fs::resize_file(own, 0);
        if (Sum(*guarded) != 0 || guarded->Check()) _exit(1);
        const std::byte* p = UnguardedMapping(path, 4);
        fs::resize_file(path, 0);
        _exit(std::to_integer<int>(*static_cast<const volatile std::byte*>(p)));
      },
      testing::ExitedWithCode(77), "");
}

TEST_F(MappedFilesDeathTest, TheHandlerCanBeSwitchedOff) {
  const std::string path = Written("a", 4);
  EXPECT_EXIT(
      {
        CatchBusErrors(false);
        const auto file = MappedFile::Open(path);
        fs::resize_file(path, 0);
        _exit(Sum(*file));
      },
      EndsByBusError, "");
}

}  // namespace
}  // namespace foretoken
