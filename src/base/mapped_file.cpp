// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace foretoken {

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT)
      return Fail(ErrorCode::kNotFound, fmt::format("{}: no such file; check the path", path));
    return Fail(ErrorCode::kIo,
                fmt::format("{}: {}; check the permissions", path, std::strerror(errno)));
  }
  struct stat info {};
  const bool known = fstat(fd, &info) == 0;
  if (!known || !S_ISREG(info.st_mode)) {
    close(fd);
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: not a regular file; name a model file", path));
  }
  if (info.st_size == 0) {
    close(fd);
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: the file is empty; fetch it again", path));
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* p = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int map_errno = errno;
  close(fd);
  if (p == MAP_FAILED)
    return Fail(ErrorCode::kIo, fmt::format("{}: cannot map: {}", path, std::strerror(map_errno)));
  MappedFile file;
  file.data_ = static_cast<const std::byte*>(p);
  file.size_ = size;
  file.modified_ns_ =
      std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + std::int64_t{info.st_mtim.tv_nsec};
  file.path_ = path;
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      modified_ns_(other.modified_ns_),
      path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(modified_ns_, other.modified_ns_);
  std::swap(path_, other.path_);
  return *this;
}

void MappedFile::Release(std::size_t offset, std::size_t size) const noexcept {
  constexpr std::size_t kPage = 4096;
  const std::size_t begin = offset / kPage * kPage;
  const std::size_t end = std::min(size_, offset + size);
  if (begin < end) madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace foretoken
