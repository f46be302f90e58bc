// SPDX-License-Identifier: Apache-2.0
#include "base/files/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/files/no_write_signals.h"
#include "base/files/text_file.h"

namespace foretoken {
namespace {

// Whether the file system says that it has so much room. To try it would take all the room that
// there is for a moment, and other programs would fail to write.
bool HasRoom(int fd, std::uint64_t bytes) noexcept {
  struct statvfs system {};
  if (fstatvfs(fd, &system) != 0 || system.f_blocks == 0) return true;  // it does not say
  return bytes / system.f_frsize <= system.f_bavail;
}

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// A name of a descriptor that is already open; its folder is not ours to write to.
bool IsDescriptor(std::string_view path) {
  return path == "/dev/stdout" || path == "/dev/stderr" || path.starts_with("/dev/fd/") ||
         path.starts_with("/proc/");
}

}  // namespace

Error OutputFile::IoError(std::string_view what) const {
  return {ErrorCode::kIo,
          fmt::format("{}: {}: {}; check the folder, its permissions and free space", path_, what,
                      std::strerror(errno))};
}

std::string OutputFile::NameOfDescriptor() const {
  return fmt::format("/proc/self/fd/{}", fd_);
}

Result<OutputFile> OutputFile::Create(const std::string& path, const Options& options) {
  OutputFile file;
  file.path_ = path;
  FORETOKEN_CHECK_OK(file.Open(options));
  return file;
}

Status OutputFile::Open(const Options& options) {
  struct stat status {};
  const bool exists = stat(path_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    return Fail(IoError("cannot write"));
  }
  if (exists && (!S_ISREG(status.st_mode) || IsDescriptor(path_))) {
    if (!options.devices)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: is not an ordinary file; name another output", path_));
    // A pipe without a reader is an error, not a wait.
    regular_ = false;
    fd_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd_ < 0) return Fail(IoError("cannot write"));
    fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) & ~O_NONBLOCK);
    return {};
  }
  if (OpenNameless(options) || OpenNamed(options)) return {};
  return Fail(IoError("cannot create"));
}

// Without /proc such a file could never get its name.
bool OutputFile::OpenNameless(const Options& options) {
  const int access_mode = options.readable ? O_RDWR : O_WRONLY;
  fd_ = open(FolderOf(path_).c_str(), access_mode | O_TMPFILE | O_CLOEXEC, options.mode);
  if (fd_ >= 0 && access(NameOfDescriptor().c_str(), F_OK) != 0) close(std::exchange(fd_, -1));
  return fd_ >= 0;
}

bool OutputFile::OpenNamed(const Options& options) {
  static std::atomic<unsigned> counter{0};
  const int access_mode = options.readable ? O_RDWR : O_WRONLY;
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_ = fmt::format("{}.{}-{}.part", path_, getpid(), counter.fetch_add(1));
    if (fd_ >= 0) {  // nameless so far
      if (linkat(AT_FDCWD, NameOfDescriptor().c_str(), AT_FDCWD, temporary_.c_str(),
                 AT_SYMLINK_FOLLOW) == 0)
        return temporary_exists_ = true;
    } else {
      fd_ = open(temporary_.c_str(), access_mode | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                 options.mode);
      if (fd_ >= 0) return temporary_exists_ = true;
    }
    if (errno != EEXIST) return false;  // else someone else's: try the next name
  }
  return false;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      temporary_exists_(std::exchange(other.temporary_exists_, false)),
      has_name_(other.has_name_),
      regular_(other.regular_),
      synced_(other.synced_),
      written_(other.written_),
      published_(other.published_),
      published_first_(other.published_first_) {}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  if (has_name_ && written_ > published_) {
    // If that fails too, the reader finds the incomplete end and reports it.
    static_cast<void>(!ftruncate(fd_, published_));
  }
  if (has_name_ && synced_ && published_ > published_first_) fsync(fd_);
  close(fd_);
  if (temporary_exists_) unlink(temporary_.c_str());
}

Status OutputFile::NoRoom(int error, std::uint64_t bytes) const {
  errno = error;
  return Fail(IoError(fmt::format("no room for {} bytes", bytes)));
}

Status OutputFile::Reserve(std::uint64_t bytes) {
  const NoWriteSignals none;
  if (regular_ && !HasRoom(fd_, bytes)) return NoRoom(ENOSPC, bytes);
  if (fallocate(fd_, 0, 0, static_cast<off_t>(bytes)) == 0) return {};
  if (errno != ENOSPC && errno != EFBIG && errno != EDQUOT) return {};
  return NoRoom(errno, bytes);
}

Status OutputFile::ReserveForMapping(std::uint64_t bytes) {
  const NoWriteSignals none;
  if (regular_ && !HasRoom(fd_, bytes)) return NoRoom(ENOSPC, bytes);
  if (const int error = posix_fallocate(fd_, 0, static_cast<off_t>(bytes)); error != 0)
    return NoRoom(error, bytes);
  written_ = static_cast<std::int64_t>(bytes);
  return {};
}

Status OutputFile::Append(std::span<const std::byte> bytes) {
  const NoWriteSignals none;
  while (!bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail(IoError("cannot write"));
    written_ += n;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status OutputFile::GiveName(bool synced) {
  if (synced && fsync(fd_) != 0) return Fail(IoError("cannot write"));
  if (!temporary_exists_ && !OpenNamed({})) return Fail(IoError("cannot create"));
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return Fail(IoError("cannot replace"));
  temporary_exists_ = false;
  has_name_ = true;
  synced_ = synced;
  published_first_ = written_;
  if (!synced) return {};
  // The file is complete in any case, so a folder that cannot be flushed is not an error.
  const int folder = open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return {};
  fsync(folder);
  close(folder);
  return {};
}

Status OutputFile::Publish(bool synced) {
  if (regular_ && !has_name_) FORETOKEN_CHECK_OK(GiveName(synced));
  published_ = written_;
  return {};
}

Status WriteTextFile(const std::string& path, std::string_view text) {
  FORETOKEN_TRY(OutputFile file, OutputFile::Create(path, {.devices = true}));
  FORETOKEN_CHECK_OK(file.Append(text));
  return file.Publish();
}

}  // namespace foretoken
