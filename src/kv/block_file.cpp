// SPDX-License-Identifier: Apache-2.0
#include "kv/block_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/files/no_write_signals.h"
#include "base/files/own_folder.h"
#include "base/hash.h"
#include "base/seeded_hash.h"
#include "kv/segment.h"

namespace foretoken::kv {
namespace {

constexpr std::int64_t kHeadBytes = 4096;
constexpr std::int32_t kMostSlots = 1 << 16;  // of each kind: their heads are in memory
constexpr int kMostPieces = 512;              // of one call of the system

// Reads or writes all pieces from `offset` on. `call`: preadv or pwritev.
template <typename Call>
bool Transfer(int fd, std::int64_t offset, std::span<const std::byte> head, BlockFile::Parts parts,
              Call&& call) noexcept {
  std::array<iovec, kMostPieces> pieces;
  std::size_t part = 0, done = 0;  // bytes of `part` that are through
  bool with_head = !head.empty();
  const auto view = [&](std::size_t i) {
    return with_head && i == 0 ? head : std::span<const std::byte>(parts[i - (with_head ? 1 : 0)]);
  };
  const std::size_t n_parts = parts.size() + (with_head ? 1 : 0);
  while (part < n_parts) {
    int n = 0;
    for (std::size_t i = part; i < n_parts && n < kMostPieces; ++i, ++n) {
      const auto rest = view(i).subspan(i == part ? done : 0);
      pieces[static_cast<std::size_t>(n)] = {const_cast<std::byte*>(rest.data()), rest.size()};
    }
    const ssize_t moved = call(fd, pieces.data(), n, offset);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    offset += moved;
    done += static_cast<std::size_t>(moved);
    while (part < n_parts && done >= view(part).size()) done -= view(part++).size();
  }
  return true;
}

std::uint64_t HashOfParts(BlockFile::Parts parts) noexcept {
  std::uint64_t hash = parts.size();
  for (const auto part : parts) hash = HashOf(std::array{hash, Hash(part)});
  return hash;
}

template <typename T>
std::span<const std::byte> BytesOf(const T& value) noexcept {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

struct BlockFile::Head {
  static constexpr std::array<char, 8> kMagic = {'f', 't', 'b', 'l', 'o', 'c', 'k', 's'};
  static constexpr std::uint32_t kVersion = 1;
  static constexpr std::uint32_t kOrder = 0x01020304;  // of the bytes of a number

  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion, order = kOrder;
  BlockKey made_by = {};
  std::array<std::int64_t, 2> bytes = {};
  std::array<std::int64_t, 2> n_slots = {};
  std::uint64_t hash = 0;  // of the fields before it

  std::uint64_t Hashed() const noexcept {
    return Hash(BytesOf(*this).first(sizeof(Head) - sizeof(hash)));
  }
};

Error BlockFile::IoError(const char* what) const {
  return {ErrorCode::kIo,
          fmt::format("{}: {}: {}; check the folder, its permissions and free space", path_, what,
                      std::strerror(errno))};
}

BlockFile::BlockFile(BlockFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      last_stamp_(other.last_stamp_),
      areas_(std::move(other.areas_)),
      status_(std::move(other.status_)) {}

BlockFile::~BlockFile() {
  if (fd_ >= 0) close(fd_);
}

Result<BlockFile> BlockFile::Open(const std::string& path, const Shape& shape) {
  BlockFile file;
  file.path_ = path;
  FORETOKEN_CHECK_OK(file.Divide(shape));
  FORETOKEN_CHECK_OK(file.OpenFile(path));
  FORETOKEN_CHECK_OK(file.ReadHead(shape));
  for (const Kind kind : {kBlock, kState}) {
    file.areas_[kind].Reserve();
    FORETOKEN_CHECK_OK(file.ReadRecords(kind));
  }
  return file;
}

Status BlockFile::OpenFile(const std::string& path) {
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
  if (fd_ < 0) return Fail(IoError("cannot open"));
  struct stat status {};
  if (fstat(fd_, &status) != 0) return Fail(IoError("cannot open"));
  const std::string why = S_ISREG(status.st_mode) ? WhyNotOurs(status) : "is no regular file";
  if (!why.empty())
    return Fail(ErrorCode::kInvalidFile, fmt::format("{}: {}; name another file", path, why));
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0)
    return Fail(ErrorCode::kIo,
                fmt::format("{}: another process uses it; name another file", path));
  size_ = status.st_size;
  return {};
}

// A quarter of the file is for states, where there are any.
Status BlockFile::Divide(const Shape& shape) {
  Area& blocks = areas_[kBlock];
  Area& states = areas_[kState];
  blocks.bytes = shape.block_bytes, states.bytes = shape.state_bytes;
  const auto slots = [](std::int64_t bytes, std::int64_t each) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(bytes / each, 0, kMostSlots));
  };
  const std::int64_t room = shape.max_bytes - kHeadBytes;
  if (shape.state_bytes > 0) states.n_slots = slots(room / 4, states.slot_bytes());
  blocks.n_slots = slots(room - states.n_slots * states.slot_bytes(), blocks.slot_bytes());
  if (blocks.n_slots == 0 || (shape.state_bytes > 0 && states.n_slots == 0))
    return Fail(ErrorCode::kTooLarge,
                fmt::format("{}: a block takes {} bytes and a state {}, which do not fit {}; allow "
                            "a larger file",
                            path_, blocks.bytes, states.bytes, shape.max_bytes));
  blocks.begin = kHeadBytes;
  states.begin = blocks.At(blocks.n_slots);
  return {};
}

Status BlockFile::ReadHead(const Shape& shape) {
  Head wanted{.made_by = shape.made_by};
  for (const Kind kind : {kBlock, kState})
    wanted.bytes[kind] = areas_[kind].bytes, wanted.n_slots[kind] = areas_[kind].n_slots;
  wanted.hash = wanted.Hashed();
  if (size_ > 0) {
    Head head;
    const bool whole = pread(fd_, &head, sizeof(head), 0) == static_cast<ssize_t>(sizeof(head));
    if (!whole || head.magic != Head::kMagic)
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("{}: it is no file of cache blocks; name another file", path_));
    if (head.version != Head::kVersion || head.order != Head::kOrder)
      return Fail(
          ErrorCode::kInvalidFile,
          fmt::format("{}: it was written by another version, or on another kind of machine; "
                      "delete it, or name another file",
                      path_));
    if (head.hash != head.Hashed())
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("{}: it is damaged; delete it, or name another file", path_));
    if (head.made_by != shape.made_by || head.bytes != wanted.bytes)
      return Fail(ErrorCode::kMismatch,
                  fmt::format("{}: it is of another model, or of other settings of its cache; name "
                              "another file",
                              path_));
    if (head.n_slots == wanted.n_slots) return {};
  }
  if (ftruncate(fd_, 0) != 0) return Fail(IoError("cannot be emptied"));
  size_ = 0;
  const NoWriteSignals no_signals;
  if (pwrite(fd_, &wanted, sizeof(wanted), 0) != static_cast<ssize_t>(sizeof(wanted)))
    return Fail(IoError("cannot be written"));
  return {};
}

bool BlockFile::Sound(Kind kind, const Record& record) const noexcept {
  const Text& text = record.text;
  if (record.stamp <= 0 || record.hash != Hash(BytesOf(record).subspan(sizeof(record.hash))))
    return false;
  if (text.n_tokens < 1 || text.n_tokens > tensor::kKvBlock) return false;
  if (text.n_before < 0 || text.n_before > (1 << 25)) return false;
  if (record.key != KeyAfter(text.before, text.View())) return false;
  if (kind == kBlock) return text.first == 0 && text.last == 0;
  const Pos begin = text.n_before * tensor::kKvBlock;
  return text.first >= 0 && text.first <= text.last && text.last - text.first <= kCopiedInputs &&
         text.last > begin && text.last <= begin + text.n_tokens;
}

// The heads of all records; those that are not sound leave their slots free.
Status BlockFile::ReadRecords(Kind kind) {
  Area& area = areas_[kind];
  std::vector<std::int32_t> found;
  for (std::int32_t place = 0; place < area.n_slots; ++place) {
    Record& record = area.records[Index(place)];
    const auto size = static_cast<ssize_t>(sizeof(record));
    if (area.At(place) + area.slot_bytes() <= size_ &&
        pread(fd_, &record, sizeof(record), area.At(place)) == size && Sound(kind, record) &&
        Find(kind, record.key) == kNone) {
      area.Add(place);
      found.push_back(place);
      last_stamp_ = std::max(last_stamp_, record.stamp);
    } else if (area.At(place) >= size_) {
      for (std::int32_t rest = area.n_slots; rest-- > place;) area.free.push_back(rest);
      break;
    } else {
      area.free.push_back(place);
    }
  }
  if (last_stamp_ == std::numeric_limits<std::int64_t>::max()) last_stamp_ = 0;
  std::sort(found.begin(), found.end(), [&area](std::int32_t a, std::int32_t b) {
    return area.records[Index(a)].stamp < area.records[Index(b)].stamp;
  });
  for (const std::int32_t place : found) area.lately.Append(place);
  return {};
}

std::size_t BlockFile::Area::BucketOf(const BlockKey& key) const noexcept {
  return static_cast<std::size_t>(SeededHashOf(key)) & (by_key.size() - 1);
}

void BlockFile::Area::Reserve() {
  const auto n = static_cast<std::size_t>(n_slots);
  records.resize(n);
  next.resize(n);
  free.reserve(n);
  lately = IdleBlocks(n_slots);
  by_key.assign(std::bit_ceil(n + 1), kNone);
  by_before.assign(by_key.size(), kNone);
}

void BlockFile::Area::Add(std::int32_t place) noexcept {
  const Record& record = records[Index(place)];
  std::int32_t& of_key = by_key[BucketOf(record.key)];
  std::int32_t& of_before = by_before[BucketOf(record.text.before)];
  next[Index(place)] = {.key = std::exchange(of_key, place),
                        .before = std::exchange(of_before, place)};
}

void BlockFile::Area::Remove(std::int32_t place) noexcept {
  const Record& record = records[Index(place)];
  std::int32_t* of_key = &by_key[BucketOf(record.key)];
  while (*of_key != place) of_key = &next[Index(*of_key)].key;
  *of_key = next[Index(place)].key;
  std::int32_t* of_before = &by_before[BucketOf(record.text.before)];
  while (*of_before != place) of_before = &next[Index(*of_before)].before;
  *of_before = next[Index(place)].before;
  lately.Remove(place);
  free.push_back(place);
}

std::int32_t BlockFile::Area::Take() noexcept {
  if (free.empty()) Remove(lately.oldest());
  const std::int32_t place = free.back();
  free.pop_back();
  return place;
}

std::int32_t BlockFile::Find(Kind kind, const BlockKey& key) const noexcept {
  const Area& area = areas_[kind];
  if (area.n_slots == 0) return kNone;
  std::int32_t place = area.by_key[area.BucketOf(key)];
  while (place != kNone && area.records[Index(place)].key != key)
    place = area.next[Index(place)].key;
  return place;
}

void BlockFile::Expect(Kind kind, std::int32_t place) const noexcept {
  const Area& area = areas_[kind];
  posix_fadvise(fd_, area.At(place), area.slot_bytes(), POSIX_FADV_WILLNEED);
}

bool BlockFile::Read(Kind kind, std::int32_t place, Parts parts) noexcept {
  Area& area = areas_[kind];
  const bool read = Transfer(fd_, area.At(place) + static_cast<std::int64_t>(sizeof(Record)), {},
                             parts, [](auto... a) { return preadv(a...); });
  if (!read || HashOfParts(parts) != area.records[Index(place)].bytes_hash) {
    area.Remove(place);
    return false;
  }
  area.lately.Remove(place);
  area.lately.Append(place);
  return true;
}

bool BlockFile::Write(Kind kind, const Text& text, Parts parts) noexcept {
  Area& area = areas_[kind];
  const BlockKey key = KeyAfter(text.before, text.View());
  if (const std::int32_t known = Find(kind, key); known != kNone) {
    area.lately.Remove(known);
    area.lately.Append(known);
    return true;
  }
  if (!status_ || area.n_slots == 0) return false;
  const std::int32_t place = area.Take();
  Record& record = area.records[Index(place)];
  record = {.bytes_hash = HashOfParts(parts), .stamp = ++last_stamp_, .key = key, .text = text};
  record.hash = Hash(BytesOf(record).subspan(sizeof(record.hash)));
  const NoWriteSignals no_signals;
  if (!Transfer(fd_, area.At(place), BytesOf(record), parts,
                [](auto... a) { return pwritev(a...); })) {
    area.free.push_back(place);
    status_ =
        CatchNoMemory("cache file", [&]() -> Status { return Fail(IoError("cannot write")); });
    return false;
  }
  area.Add(place);
  area.lately.Append(place);
  return true;
}

}  // namespace foretoken::kv
