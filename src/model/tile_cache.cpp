// SPDX-License-Identifier: Apache-2.0
// A kept file:  Header (one page, the rest zero)  |  tiles
#include "model/tile_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace foretoken::model {
namespace {

constexpr std::size_t kHeaderBytes = 4096;
// Raised whenever tensor/block_layout.h changes what a tile looks like.
constexpr std::uint32_t kVersion = 1;
constexpr std::array<char, 8> kMagic = {'F', 'T', 'K', 'T', 'I', 'L', 'E', 'S'};

struct Header {
  std::array<char, 8> magic;
  std::uint32_t version, header_bytes;
  std::uint64_t key, tile_bytes, checksum;

  bool operator==(const Header&) const = default;
};

// Of pieces, so that all threads share the work; the result does not depend on their number.
std::uint64_t Checksum(const std::byte* data, std::size_t size, ThreadPool& pool) {
  constexpr std::size_t kPiece = std::size_t{4} << 20;
  std::vector<std::uint64_t> pieces((size + kPiece - 1) / kPiece);
  pool.Run([&](int thread) {
    const auto share = pool.ShareOf(static_cast<int>(pieces.size()), thread);
    for (auto i = static_cast<std::size_t>(share.begin); i < static_cast<std::size_t>(share.end);
         ++i)
      pieces[i] = Hash({data + i * kPiece, std::min(kPiece, size - i * kPiece)});
  });
  return HashOf(pieces);
}

Header HeaderOf(std::uint64_t key, std::size_t size, std::uint64_t checksum) {
  return {kMagic, kVersion, kHeaderBytes, key, size, checksum};
}

// Writable where the file is new. Null where the system refuses.
std::byte* Map(int fd, std::size_t tile_bytes, bool writable) {
  void* p = mmap(nullptr, kHeaderBytes + tile_bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                 MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) return nullptr;
  madvise(p, kHeaderBytes + tile_bytes, MADV_HUGEPAGE);  // advice: failure is harmless
  return static_cast<std::byte*>(p);
}

class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace

TileMemory::TileMemory(std::size_t size_bytes) : anonymous_(size_bytes), size_bytes_(size_bytes) {}

TileMemory::~TileMemory() {
  if (mapping_ != nullptr) munmap(mapping_, kHeaderBytes + size_bytes_);
  if (fd_ >= 0) close(fd_);
}

TileMemory::TileMemory(TileMemory&& other) noexcept
    : anonymous_(std::move(other.anonymous_)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      fd_(std::exchange(other.fd_, -1)) {}

TileMemory& TileMemory::operator=(TileMemory&& other) noexcept {
  std::swap(anonymous_, other.anonymous_);
  std::swap(mapping_, other.mapping_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(fd_, other.fd_);
  return *this;
}

std::byte* TileMemory::data() noexcept {
  return mapping_ != nullptr ? mapping_ + kHeaderBytes : anonymous_.data();
}
const std::byte* TileMemory::data() const noexcept {
  return mapping_ != nullptr ? mapping_ + kHeaderBytes : anonymous_.data();
}

std::string TileCache::UserFolder() {
  const auto set = [](const char* name) -> std::string_view {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (!set("XDG_CACHE_HOME").empty()) return fmt::format("{}/foretoken", set("XDG_CACHE_HOME"));
  if (!set("HOME").empty()) return fmt::format("{}/.cache/foretoken", set("HOME"));
  return "";
}

// Two models may share a file name: the path is in the name too, as a hash.
std::string TileCache::FileFor(const std::string& model_path) const {
  std::error_code error;
  auto path = std::filesystem::weakly_canonical(model_path, error);
  if (error) path = model_path;
  const std::string whole = path.string();
  return fmt::format("{}/{}-{:016x}.tiles", folder_, path.stem().string(), HashOf(whole));
}

std::optional<TileMemory> TileCache::Find(const std::string& model_path, std::uint64_t key,
                                          std::size_t size_bytes, ThreadPool& pool) const {
  if (folder_.empty()) return std::nullopt;
  const OpenFile file(open(FileFor(model_path).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0) return std::nullopt;
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & S_IWOTH) != 0 ||
      info.st_size != static_cast<off_t>(kHeaderBytes + size_bytes))
    return std::nullopt;
  TileMemory tiles;
  tiles.mapping_ = Map(file.get(), size_bytes, false);
  if (tiles.mapping_ == nullptr) return std::nullopt;
  tiles.size_bytes_ = size_bytes;
  Header header;
  std::memcpy(&header, tiles.mapping_, sizeof header);
  if (header != HeaderOf(key, size_bytes, header.checksum) ||
      header.checksum != Checksum(tiles.data(), size_bytes, pool))
    return std::nullopt;
  return tiles;
}

TileMemory TileCache::Make(std::size_t size_bytes, std::string* why_not) const {
  if (folder_.empty()) return TileMemory(size_bytes);
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  const auto anonymous = [&](std::string_view what, int number) {
    *why_not = fmt::format("{}: {}: {}", folder_, what, std::strerror(number));
    return TileMemory(size_bytes);
  };
  OpenFile file(open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.get() < 0) return anonymous("cannot make a file", errno);
  // All of it now: a disk that fills up later would kill the process when a page is written.
  const auto bytes = static_cast<off_t>(kHeaderBytes + size_bytes);
  if (const int failed = posix_fallocate(file.get(), 0, bytes); failed != 0)
    return anonymous(fmt::format("cannot make a file of {} MB", bytes / 1'000'000), failed);
  TileMemory tiles;
  tiles.mapping_ = Map(file.get(), size_bytes, true);
  if (tiles.mapping_ == nullptr) return anonymous("cannot map a file", errno);
  tiles.size_bytes_ = size_bytes;
  tiles.fd_ = file.release();
  return tiles;
}

Status TileCache::Keep(TileMemory& tiles, const std::string& model_path, std::uint64_t key,
                       ThreadPool& pool) const {
  if (tiles.fd_ < 0) return {};
  const OpenFile file(std::exchange(tiles.fd_, -1));
  const Header header =
      HeaderOf(key, tiles.size_bytes_, Checksum(tiles.data(), tiles.size_bytes_, pool));
  std::memcpy(tiles.mapping_, &header, sizeof header);
  mprotect(tiles.mapping_, kHeaderBytes + tiles.size_bytes_, PROT_READ);
  // A link cannot replace a file, a rename can: so a name of this process's own comes between.
  const std::string path = FileFor(model_path), own = fmt::format("{}.{}", path, getpid());
  const std::string nameless = fmt::format("/proc/self/fd/{}", file.get());
  unlink(own.c_str());
  if (linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, own.c_str(), AT_SYMLINK_FOLLOW) == 0 &&
      rename(own.c_str(), path.c_str()) == 0)
    return {};
  const int number = errno;
  unlink(own.c_str());
  return Fail(ErrorCode::kIo,
              fmt::format("{}: cannot keep the repacked weights: {}", path, std::strerror(number)));
}

}  // namespace foretoken::model
