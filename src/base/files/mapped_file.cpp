// SPDX-License-Identifier: Apache-2.0
#include "base/files/mapped_file.h"

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
  FORETOKEN_TRY(InputFile input, InputFile::Open(path, {.wanted = "a model file"}));
  if (input.status().st_size == 0)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: the file is empty; fetch it again", path));
  const auto size = static_cast<std::size_t>(input.status().st_size);
  void* p = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, input.descriptor(), 0);
  if (p == MAP_FAILED)
    return Fail(ErrorCode::kIo, fmt::format("{}: cannot map: {}; check the file system", path,
                                            std::strerror(errno)));
  MappedFile file;
  file.data_ = static_cast<const std::byte*>(p);
  file.size_ = size;
  file.identity_ = FileIdentity::Of(input.status());
  file.guard_ = GuardedRange(p, size, PROT_READ);
  file.fd_ = input.Take();
  file.path_ = path;
  return file;
}

MappedFile::~MappedFile() {
  guard_ = GuardedRange();
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
  if (fd_ >= 0) close(fd_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      fd_(std::exchange(other.fd_, -1)),
      identity_(other.identity_),
      guard_(std::move(other.guard_)),
      path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(fd_, other.fd_);
  std::swap(identity_, other.identity_);
  std::swap(guard_, other.guard_);
  std::swap(path_, other.path_);
  return *this;
}

Status MappedFile::Check() const {
  if (guard_.faulted()) return Fail(ChangedInUse(path_, true));
  struct stat now {};
  if (fstat(fd_, &now) == 0 && FileIdentity::Of(now).SameContentAs(identity_)) return {};
  return Fail(ChangedInUse(path_, false));
}

void MappedFile::Release(std::size_t offset, std::size_t size) const noexcept {
  constexpr std::size_t kPage = 4096;
  const std::size_t begin = offset / kPage * kPage;
  const std::size_t end = std::min(size_, offset + size);
  if (begin < end) madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

Error ChangedInUse(std::string_view path, bool faulted) {
  return {ErrorCode::kIo,
          fmt::format(
              "{}: {} while it was in use; put a whole file there and start again", path,
              faulted ? "the file was cut short or could not be read" : "the file was changed")};
}

}  // namespace foretoken
