// SPDX-License-Identifier: Apache-2.0
#include "base/files/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/files/own_folder.h"
#include "base/files/text_file.h"

namespace foretoken {
namespace {

std::int64_t Nanoseconds(const struct timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + std::int64_t{time.tv_nsec};
}

std::string_view KindOf(const struct stat& status) {
  if (S_ISDIR(status.st_mode)) return "a folder";
  if (S_ISFIFO(status.st_mode)) return "a pipe";
  if (S_ISSOCK(status.st_mode)) return "a socket";
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) return "a device";
  return "of an unknown kind";
}

bool Readable(int fd, const struct stat& status, bool pipes) {
  if (S_ISREG(status.st_mode)) return true;
  if (!pipes) return false;
  return S_ISFIFO(status.st_mode) || (S_ISCHR(status.st_mode) && isatty(fd) == 1);
}

// Reading a pipe without a writer ends at once, so poll for the first writer.
void WaitForWriter(int fd) {
  struct pollfd wanted = {fd, POLLIN, 0};
  while (poll(&wanted, 1, -1) < 0 && errno == EINTR) {
  }
}

}  // namespace

FileIdentity FileIdentity::Of(const struct stat& status) noexcept {
  return {status.st_dev, status.st_ino, status.st_size, Nanoseconds(status.st_mtim),
          Nanoseconds(status.st_ctim)};
}

bool FileIdentity::SameContentAs(const FileIdentity& other) const noexcept {
  return device == other.device && inode == other.inode && size == other.size &&
         modified_ns == other.modified_ns;
}

Result<InputFile> InputFile::Open(const std::string& path, const Options& options) {
  InputFile file;
  file.fd_ = open(path.c_str(),
                  O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (options.links ? 0 : O_NOFOLLOW));
  if (file.fd_ < 0) {
    if (errno == ENOENT)
      return Fail(ErrorCode::kNotFound, fmt::format("{}: no such file; check the path", path));
    if (errno == ENXIO || errno == ENODEV)  // a socket, a missing device
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("{}: not a file that can be read; name {}", path, options.wanted));
    return Fail(ErrorCode::kIo,
                fmt::format("{}: {}; check the permissions", path, std::strerror(errno)));
  }
  if (fstat(file.fd_, &file.status_) != 0)
    return Fail(ErrorCode::kIo, fmt::format("{}: {}; check the file", path, std::strerror(errno)));
  if (!Readable(file.fd_, file.status_, options.pipes))
    return Fail(ErrorCode::kInvalidFile, fmt::format("{}: not a regular file but {}; name {}", path,
                                                     KindOf(file.status_), options.wanted));
  if (!S_ISREG(file.status_.st_mode)) {
    if (S_ISFIFO(file.status_.st_mode)) WaitForWriter(file.fd_);
    fcntl(file.fd_, F_SETFL, fcntl(file.fd_, F_GETFL) & ~O_NONBLOCK);
  }
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), status_(other.status_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(status_, other.status_);
  return *this;
}

InputFile::~InputFile() {
  if (fd_ >= 0) close(fd_);
}

int InputFile::Take() noexcept {
  return std::exchange(fd_, -1);
}

Result<std::string> ReadDescriptor(int descriptor, std::string_view name,
                                   const ReadLimits& limits) {
  std::string text;
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const ssize_t n = read(descriptor, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN && limits.pipes) {
      WaitForWriter(descriptor);
      continue;
    }
    if (n < 0)
      return Fail(ErrorCode::kIo, fmt::format("{}: {}; name a text file that can be read", name,
                                              std::strerror(errno)));
    if (n == 0) return text;
    if (text.size() + static_cast<std::size_t>(n) > limits.most_bytes)
      return Fail(ErrorCode::kTooLarge,
                  limits.most_bytes >= (std::size_t{1} << 20)
                      ? fmt::format("{}: more than {} MiB of text; give a shorter one", name,
                                    limits.most_bytes >> 20)
                      : fmt::format("{}: more than {} bytes; give a shorter file", name,
                                    limits.most_bytes));
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

Result<std::string> ReadTextFile(const std::string& path, const ReadLimits& limits) {
  FORETOKEN_TRY(const InputFile file,
                InputFile::Open(path, {.pipes = limits.pipes, .wanted = "a text file"}));
  if (limits.trusted && S_ISREG(file.status().st_mode))
    if (const std::string why = WhyNotTrusted(file.status()); !why.empty())
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("{}: {}; make a copy that is yours alone", path, why));
  return ReadDescriptor(file.descriptor(), path, limits);
}

}  // namespace foretoken
