// SPDX-License-Identifier: Apache-2.0
#include "model/weights/tile_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/files/mapped_file.h"
#include "base/files/own_folder.h"
#include "base/files/read_ahead.h"
#include "base/hash.h"
#include "model/weights/tile_folder.h"
#include "model/weights/tile_header.h"

namespace foretoken::model {
namespace {

constexpr std::size_t kHeaderBytes = kTileHeaderBytes;

// The path that names and files of tiles know a model by.
std::string WholePath(const std::string& model_path) {
  std::error_code error;
  const auto path = std::filesystem::weakly_canonical(model_path, error);
  return error ? model_path : path.string();
}

// Whether the tiles have this checksum. False too if on_progress stopped it.
bool HaveChecksum(const TileMemory& tiles, std::uint64_t checksum, ThreadPool& pool,
                  const std::function<bool(std::size_t)>& on_progress) {
  constexpr std::size_t kStepBytes = 64 * kHashPieceBytes;
  const std::size_t size = tiles.size_bytes();
  PieceHasher hasher(size);
  for (std::size_t n = 0; n < size;) {
    n = std::min(n + kStepBytes, size);
    hasher.Advance(tiles.data(), n, pool);
    if (on_progress && !on_progress(n)) return false;
  }
  return hasher.hash() == checksum;
}

// The file of tiles of this path, if this user alone can have written it.
std::optional<InputFile> OpenOurs(const std::string& path) {
  auto file = InputFile::Open(path, {.links = false});
  if (!file || !WhyNotOurs(file->status()).empty()) return std::nullopt;
  return std::move(*file);
}

std::optional<TileHeader> HeaderOf(const InputFile& file) {
  TileHeader header;
  if (pread(file.descriptor(), &header, sizeof header, 0) != sizeof header) return std::nullopt;
  return header;
}

// How many bytes of these tiles a file with this header and size has; 0 if it has others.
std::size_t BytesIn(const TileHeader& header, std::uint64_t key, std::size_t size,
                    off_t file_bytes) {
  std::size_t made = size;
  if (header != TileHeaderOf(key, size, header.checksum, header.source_hash)) {
    made = header.source_hash;
    if (made >= size || header != UnfinishedHeaderOf(key, size, header.checksum, made)) return 0;
  }
  return file_bytes == static_cast<off_t>(kHeaderBytes + made) ? made : 0;
}

bool ReadAt(int descriptor, std::byte* data, std::size_t n, std::size_t at) {
  while (n > 0) {
    const ssize_t got = pread(descriptor, data, n, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    data += got, at += static_cast<std::size_t>(got), n -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

TileMemory::TileMemory(std::size_t size_bytes) : anonymous_(size_bytes), size_bytes_(size_bytes) {}

TileMemory::~TileMemory() {
  guard_ = GuardedRange();
  if (mapping_ != nullptr) munmap(mapping_, kHeaderBytes + size_bytes_);
  if (in_file()) UnlockTiles(descriptor());
  if (fd_ >= 0) close(fd_);
}

TileMemory::TileMemory(TileMemory&& other) noexcept {
  *this = std::move(other);
}

TileMemory& TileMemory::operator=(TileMemory&& other) noexcept {
  std::swap(anonymous_, other.anonymous_);
  std::swap(mapping_, other.mapping_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(guard_, other.guard_);
  std::swap(made_, other.made_);
  std::swap(fd_, other.fd_);
  std::swap(kept_, other.kept_);
  std::swap(identity_, other.identity_);
  std::swap(checksum_, other.checksum_);
  std::swap(source_hash_, other.source_hash_);
  std::swap(hasher_, other.hasher_);
  std::swap(write_begun_, other.write_begun_);
  std::swap(written_, other.written_);
  std::swap(path_, other.path_);
  return *this;
}

bool TileMemory::Map(int descriptor, std::size_t size_bytes, bool writable) {
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* p = mmap(nullptr, kHeaderBytes + size_bytes, protection, MAP_SHARED, descriptor, 0);
  if (p == MAP_FAILED) return false;
  madvise(p, kHeaderBytes + size_bytes, MADV_HUGEPAGE);  // only advice, so failure is harmless
  mapping_ = static_cast<std::byte*>(p);
  size_bytes_ = size_bytes;
  guard_ = GuardedRange(p, kHeaderBytes + size_bytes, protection);
  return true;
}

void TileMemory::Unmap(std::size_t begin, std::size_t end) const noexcept {
  constexpr std::size_t kPage = 4096;  // the size of the header too, so tiles begin on a page
  begin = begin / kPage * kPage;
  end = end / kPage * kPage;
  if (begin < end) madvise(mapping_ + kHeaderBytes + begin, end - begin, MADV_DONTNEED);
}

void TileMemory::Finish(std::size_t n, ThreadPool& pool) {
  if (made_ != nullptr) hasher_.Advance(data(), n, pool);
}

void TileMemory::WriteBack(std::size_t n) {
  if (made_ == nullptr) return;
  const auto sync = [&](std::size_t begin, std::size_t end, unsigned flags) {
    if (begin < end)
      sync_file_range(made_->descriptor(), static_cast<off_t>(kHeaderBytes + begin),
                      static_cast<off_t>(end - begin), flags);
  };
  sync(write_begun_, n, SYNC_FILE_RANGE_WRITE);
  sync(written_, write_begun_,
       SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  Unmap(written_, write_begun_);
  written_ = write_begun_;
  write_begun_ = n;
}

double TileMemory::ReadSpeed() const {
  constexpr std::size_t kPieces = 32, kPieceBytes = std::size_t{1} << 20, kPage = 4096;
  if (!in_file() || size_bytes_ < 2 * kPieces * kPieceBytes) return 0;
  const std::size_t step = size_bytes_ / kPieces / kPage * kPage;
  const auto piece = [&](std::size_t i) { return std::span(data() + i * step, kPieceBytes); };
  for (std::size_t i = 0; i < kPieces; ++i) {
    Unmap(i * step, i * step + kPieceBytes);
    posix_fadvise(descriptor(), static_cast<off_t>(kHeaderBytes + i * step),
                  static_cast<off_t>(kPieceBytes), POSIX_FADV_DONTNEED);
  }
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  std::size_t absent = 0;
  for (std::size_t i = 0; i < kPieces; ++i) absent += ReadAhead(piece(i));
  for (std::size_t i = 0; i < kPieces; ++i) Hash(piece(i));  // reads all of it
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return absent < kPieceBytes ? 0 : static_cast<double>(absent) / seconds;
}

int TileMemory::descriptor() const noexcept {
  return made_ != nullptr ? made_->descriptor() : fd_;
}

FileIdentity TileMemory::Identity() const noexcept {
  struct stat status {};
  return fstat(descriptor(), &status) == 0 ? FileIdentity::Of(status) : FileIdentity();
}

Status TileMemory::QuickCheck() const {
  if (guard_.faulted()) return Fail(ChangedInUse(path_, true));
  if (!kept_) return {};
  const FileIdentity now = Identity();
  // A network file system changes the time of a new file once more when it writes the pages back.
  const bool same = made_ != nullptr ? now.size == identity_.size : now.SameContentAs(identity_);
  if (same) return {};
  return Fail(ChangedInUse(path_, now.size < identity_.size));
}

Status TileMemory::Check(ThreadPool& pool) {
  if (!kept_) return QuickCheck();
  const FileIdentity now = Identity();
  if (now == identity_ && !guard_.faulted()) return {};
  FORETOKEN_CHECK_OK(QuickCheck());
  if (PieceHash({data(), size_bytes_}, pool) != checksum_) return Fail(ChangedInUse(path_, false));
  identity_ = now;
  return QuickCheck();
}

std::byte* TileMemory::data() noexcept {
  return mapping_ != nullptr ? mapping_ + kHeaderBytes : anonymous_.data();
}
const std::byte* TileMemory::data() const noexcept {
  return mapping_ != nullptr ? mapping_ + kHeaderBytes : anonymous_.data();
}

TileCache TileCache::ForRank(int rank, int n_ranks) const {
  TileCache cache = *this;
  if (n_ranks > 1) cache.part_ += fmt::format("-{}of{}", rank + 1, n_ranks);
  return cache;
}

TileCache TileCache::ForCopy(std::string_view name) const {
  TileCache cache = *this;
  cache.part_ += fmt::format("-copy.{}", name);
  std::replace(cache.part_.begin(), cache.part_.end(), ',', '.');
  return cache;
}

std::string TileCache::FileFor(const std::string& model_path) const {
  return fmt::format("{}/{}", folder_, TileFileName(WholePath(model_path), part_));
}

std::optional<TileMemory> TileCache::Find(
    const std::string& model_path, std::uint64_t key, std::size_t size_bytes, ThreadPool& pool,
    const std::function<bool(std::size_t)>& on_progress) const {
  if (folder_.empty() || !WhyNotOurFolder(folder_).empty()) return std::nullopt;
  auto file = OpenOurs(FileFor(model_path));
  if (!file || file->status().st_size != static_cast<off_t>(kHeaderBytes + size_bytes))
    return std::nullopt;
  LockTiles(file->descriptor());
  TileMemory tiles;
  if (!tiles.Map(file->descriptor(), size_bytes, false)) return std::nullopt;
  TileHeader header;
  std::memcpy(&header, tiles.mapping_, sizeof header);
  if (header != TileHeaderOf(key, size_bytes, header.checksum, header.source_hash) ||
      !HaveChecksum(tiles, header.checksum, pool, on_progress))
    return std::nullopt;
  tiles.identity_ = FileIdentity::Of(file->status());
  tiles.checksum_ = header.checksum;
  tiles.source_hash_ = header.source_hash;
  tiles.path_ = FileFor(model_path);
  tiles.fd_ = file->Take();
  tiles.kept_ = true;
  if (!tiles.QuickCheck()) return std::nullopt;
  return tiles;
}

TileMemory TileCache::Make(const std::string& model_path, std::size_t size_bytes,
                           std::string* why_not) const {
  if (folder_.empty()) return TileMemory(size_bytes);
  const auto anonymous = [&](std::string why) {
    *why_not = std::move(why);
    return TileMemory(size_bytes);
  };
  if (const std::string why = MakeOurFolder(folder_); !why.empty())
    return anonymous(fmt::format("{}: cannot make a file: {}", folder_, why));
  auto file = OutputFile::Create(FileFor(model_path), {.mode = 0600, .readable = true});
  if (!file) return anonymous(std::move(file).error().message);
  BoundTiles(folder_, limit_bytes_ > 0 ? limit_bytes_ : DefaultTileLimit(folder_),
             kHeaderBytes + size_bytes, TileFileName(WholePath(model_path), part_));
  // All of it is reserved now. If the disk filled up later, writing a page would fault.
  if (auto room = file->ReserveForMapping(kHeaderBytes + size_bytes); !room)
    return anonymous(std::move(room).error().message);
  TileMemory tiles;
  if (!tiles.Map(file->descriptor(), size_bytes, true))
    return anonymous(fmt::format("{}: cannot map a file: {}", folder_, std::strerror(errno)));
  WriteModelPath(TilePage(tiles.mapping_, kHeaderBytes), WholePath(model_path));
  tiles.made_ = std::make_unique<OutputFile>(std::move(*file));
  tiles.hasher_ = PieceHasher(size_bytes);
  tiles.path_ = FileFor(model_path);
  return tiles;
}

Status TileCache::Keep(TileMemory& tiles, std::uint64_t key, std::uint64_t source_hash,
                       ThreadPool& pool) const {
  if (tiles.made_ == nullptr) return {};
  tiles.Finish(tiles.size_bytes_, pool);
  tiles.checksum_ = tiles.hasher_.hash();
  tiles.source_hash_ = source_hash;
  const TileHeader header = TileHeaderOf(key, tiles.size_bytes_, tiles.checksum_, source_hash);
  std::memcpy(tiles.mapping_, &header, sizeof header);
  mprotect(tiles.mapping_, kHeaderBytes + tiles.size_bytes_, PROT_READ);
  LockTiles(tiles.made_->descriptor());
  // Nothing is synced, because the checksum detects what a crash of the machine leaves unwritten.
  FORETOKEN_CHECK_OK(tiles.made_->Publish(false));
  tiles.identity_ = tiles.Identity();
  tiles.kept_ = true;
  return {};
}

void TileCache::KeepUnfinished(TileMemory& tiles, std::uint64_t key) const {
  const std::size_t made = tiles.hasher_.hashed_bytes();
  if (tiles.made_ == nullptr || made == 0 || tiles.faulted()) return;
  if (const auto file = OpenOurs(tiles.path_)) {
    const auto header = HeaderOf(*file);
    if (header && BytesIn(*header, key, tiles.size_bytes_, file->status().st_size) >= made) return;
  }
  const TileHeader header =
      UnfinishedHeaderOf(key, tiles.size_bytes_, tiles.hasher_.hash_so_far(), made);
  std::memcpy(tiles.mapping_, &header, sizeof header);
  if (ftruncate(tiles.descriptor(), static_cast<off_t>(kHeaderBytes + made)) == 0)
    static_cast<void>(
        tiles.made_->Publish(false));  // else the next start makes them from the beginning
}

// The bytes are copied: a file with a name does not change, because other processes may read it.
std::size_t TileCache::TakeUnfinished(TileMemory& tiles, std::uint64_t key,
                                      ThreadPool& pool) const {
  if (tiles.made_ == nullptr) return 0;
  const auto file = OpenOurs(tiles.path_);
  const auto header = file ? HeaderOf(*file) : std::nullopt;
  const std::size_t made =
      header ? BytesIn(*header, key, tiles.size_bytes_, file->status().st_size) : 0;
  if (made == 0 || made == tiles.size_bytes_) return 0;
  if (ReadAt(file->descriptor(), tiles.data(), made, kHeaderBytes)) {
    tiles.hasher_.Advance(tiles.data(), made, pool);
    if (tiles.hasher_.hashed_bytes() == made && tiles.hasher_.hash_so_far() == header->checksum)
      return made;
  }
  std::memset(tiles.data(), 0, made);
  tiles.hasher_ = PieceHasher(tiles.size_bytes_);
  return 0;
}

void TileCache::Drop(const TileMemory& tiles) noexcept {
  struct stat now {};
  if (!tiles.kept_ || lstat(tiles.path_.c_str(), &now) != 0) return;
  const FileIdentity named = FileIdentity::Of(now);
  if (named.device == tiles.identity_.device && named.inode == tiles.identity_.inode)
    unlink(tiles.path_.c_str());
}

}  // namespace foretoken::model
