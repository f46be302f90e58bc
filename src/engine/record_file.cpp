// SPDX-License-Identifier: Apache-2.0
#include "engine/record_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace foretoken::engine {

Error RecordFile::IoError(const char* what) const {
  return {ErrorCode::kIo,
          fmt::format("{}: {}: {}; check the folder, its permissions and free space", path_, what,
                      std::strerror(errno))};
}

Result<RecordFile> RecordFile::Create(const std::string& path) {
  RecordFile file;
  file.path_ = path;
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    return Fail(file.IoError("cannot write"));
  }
  file.regular_ = !exists || S_ISREG(status.st_mode);
  if (file.regular_) {
    file.temporary_ = fmt::format("{}.{}.part", path, getpid());
    file.fd_ = open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  } else {
    file.fd_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  }
  if (file.fd_ >= 0) return file;
  file.temporary_.clear();
  return Fail(file.IoError("cannot create"));
}

RecordFile::RecordFile(RecordFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)),
      regular_(other.regular_),
      written_(other.written_),
      published_(other.published_) {}

RecordFile::~RecordFile() {
  if (fd_ < 0) return;
  // Should that fail too, the reader finds the cut line and says so.
  if (regular_ && written_ > published_) static_cast<void>(!ftruncate(fd_, published_));
  close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Status RecordFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail(IoError("cannot write"));
    written_ += n;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Status RecordFile::Publish() {
  if (!temporary_.empty()) {
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return Fail(IoError("cannot replace"));
    temporary_.clear();
  }
  published_ = written_;
  return {};
}

}  // namespace foretoken::engine
