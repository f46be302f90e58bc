// SPDX-License-Identifier: Apache-2.0
#include "model/weights/tile_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "model/weights/tile_header.h"

namespace foretoken::model {
namespace {

namespace fs = std::filesystem;
using std::chrono::nanoseconds;

constexpr std::uint64_t kLeastLimit = 32'000'000'000;
constexpr auto kGrace = std::chrono::days(7);  // for a file whose model is gone

class Descriptor {
 public:
  // Never waits, follows no link, and leaves the time of last use as it is.
  Descriptor(const std::string& path, int access)
      : fd_(open(path.c_str(), access | O_NOFOLLOW | O_NONBLOCK | O_NOATIME | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

struct KeptFile {
  std::string path;
  std::uint64_t size = 0;
  dev_t device = 0;
  ino_t inode = 0;
  nanoseconds used{};  // since 1970: the last use, as precise as the file system has it (a day)
  bool model_gone = false;
};

nanoseconds TimeOf(const struct timespec& time) {
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

bool IsGone(const std::string& model_path) {
  struct stat status {};
  return !model_path.empty() && stat(model_path.c_str(), &status) != 0 &&
         (errno == ENOENT || errno == ENOTDIR);
}

// Nothing if the file is not one of foretoken's.
std::optional<KeptFile> Describe(const fs::path& path) {
  const auto path_hash = PathHashIn(path.filename().string());
  if (!path_hash) return std::nullopt;
  const Descriptor file(path.string(), O_RDONLY);
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid()) return std::nullopt;
  std::array<std::byte, kTileHeaderBytes> page;
  if (pread(file.get(), page.data(), page.size(), 0) != static_cast<ssize_t>(page.size()) ||
      !IsTileHeader(page))
    return std::nullopt;
  return KeptFile{.path = path.string(),
                  .size = static_cast<std::uint64_t>(status.st_size),
                  .device = status.st_dev,
                  .inode = status.st_ino,
                  .used = std::max(TimeOf(status.st_atim), TimeOf(status.st_mtim)),
                  .model_gone = IsGone(ReadModelPath(page, *path_hash))};
}

std::vector<KeptFile> FilesIn(const std::string& folder, const std::string& replaced) {
  std::vector<KeptFile> files;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    if (i->path().filename() == replaced) continue;
    if (auto file = Describe(i->path())) files.push_back(std::move(*file));
  }
  return files;
}

// False if a process uses the file, if another file has its name now, or if the folder is read-only.
// Between the test and the deletion a new file could take the name. It would lose it again, and its
// model would be repacked once more.
bool Delete(const KeptFile& file) {
  const Descriptor opened(file.path, O_RDWR);  // on network file systems the lock needs O_RDWR
  struct stat named {};
  return opened.get() >= 0 && flock(opened.get(), LOCK_EX | LOCK_NB) == 0 &&
         lstat(file.path.c_str(), &named) == 0 && named.st_dev == file.device &&
         named.st_ino == file.inode && unlink(file.path.c_str()) == 0;
}

}  // namespace

void LockTiles(int descriptor) noexcept {
  static_cast<void>(flock(descriptor, LOCK_SH | LOCK_NB));
}

void UnlockTiles(int descriptor) noexcept {
  static_cast<void>(flock(descriptor, LOCK_UN));
}

std::uint64_t DefaultTileLimit(const std::string& folder) noexcept {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  return error ? kLeastLimit : std::max(kLeastLimit, std::uint64_t{space.capacity} / 10);
}

void BoundTiles(const std::string& folder, std::uint64_t limit_bytes, std::uint64_t more_bytes,
                const std::string& replaced) {
  std::vector<KeptFile> files = FilesIn(folder, replaced);
  std::sort(files.begin(), files.end(), [](const KeptFile& a, const KeptFile& b) {
    return std::tuple(!a.model_gone, a.used) < std::tuple(!b.model_gone, b.used);
  });
  std::uint64_t total = more_bytes;
  for (const KeptFile& file : files) total += file.size;
  const nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
  for (const KeptFile& file : files) {
    const bool useless = file.model_gone && now - file.used > kGrace;
    if ((useless || total > limit_bytes) && Delete(file)) total -= file.size;
  }
}

}  // namespace foretoken::model
