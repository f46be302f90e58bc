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

// Reads or writes all parts from `offset` on. `call`: preadv or pwritev.
template <typename Call>
bool Transfer(int fd, std::int64_t offset, BlockFile::Parts parts, Call&& call) noexcept {
  std::array<iovec, kMostPieces> pieces;
  std::size_t part = 0, done = 0;  // bytes of `part` that are through
  while (part < parts.size()) {
    int n = 0;
    for (std::size_t i = part; i < parts.size() && n < kMostPieces; ++i, ++n) {
      const auto rest = parts[i].subspan(i == part ? done : 0);
      pieces[static_cast<std::size_t>(n)] = {rest.data(), rest.size()};
    }
    const ssize_t moved = call(fd, pieces.data(), n, offset);
    if (moved < 0 && errno == EINTR) continue;
    if (moved == 0) errno = EIO;  // the file ends here
    if (moved <= 0) return false;
    offset += moved;
    done += static_cast<std::size_t>(moved);
    while (part < parts.size() && done >= parts[part].size()) done -= parts[part++].size();
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
  static constexpr std::uint32_t kVersion = 3;
  static constexpr std::uint32_t kOrder = 0x01020304;  // of the bytes of a number

  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion, order = kOrder;
  BlockKey made_by = {}, owner = {};
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
      output_(std::move(other.output_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      last_stamp_(other.last_stamp_),
      n_refused_(other.n_refused_),
      areas_(std::move(other.areas_)),
      status_(std::move(other.status_)) {}

BlockFile::~BlockFile() {
  if (fd_ >= 0) close(fd_);
}

Result<BlockFile> BlockFile::Open(const std::string& path, const Shape& shape) {
  BlockFile file;
  file.path_ = path;
  FORETOKEN_CHECK_OK(file.Divide(shape));
  FORETOKEN_CHECK_OK(file.OpenFile(path, O_RDWR | O_CREAT));
  if (flock(file.fd_, LOCK_EX | LOCK_NB) != 0)
    return Fail(ErrorCode::kIo,
                fmt::format("{}: another process uses it; name another file", path));
  FORETOKEN_CHECK_OK(file.ReadHead(shape));
  for (const Kind kind : {kBlock, kState}) {
    file.areas_[kind].Reserve();
    FORETOKEN_CHECK_OK(file.ReadRecords(kind));
  }
  return file;
}

Result<BlockFile> BlockFile::Create(const std::string& path, const Shape& shape,
                                    const Slots& n_slots) {
  BlockFile file;
  file.path_ = path;
  file.Place(shape, n_slots);
  FORETOKEN_TRY(OutputFile output, OutputFile::Create(path, {.mode = 0600}));
  FORETOKEN_CHECK_OK(output.Reserve(static_cast<std::uint64_t>(BytesFor(shape, n_slots))));
  file.fd_ = fcntl(output.descriptor(), F_DUPFD_CLOEXEC, 0);
  if (file.fd_ < 0) return Fail(file.IoError("cannot open"));
  file.output_.emplace(std::move(output));
  FORETOKEN_CHECK_OK(file.WriteHead(shape));
  for (Area& area : file.areas_) {
    area.Reserve();
    for (std::int32_t place = area.n_slots; place-- > 0;) area.free.push_back(place);
  }
  return file;
}

std::int64_t BlockFile::BytesFor(const Shape& shape, const Slots& n_slots) {
  BlockFile file;
  file.Place(shape, n_slots);
  const Area& last = file.areas_[kState];
  return last.At(last.n_slots);
}

Status BlockFile::Publish() {
  FORETOKEN_CHECK_OK(output_->Publish(false));
  output_.reset();
  return {};
}

Result<BlockFile> BlockFile::OpenToRead(const std::string& path, const Shape& shape,
                                        const Slots& most) {
  BlockFile file;
  file.path_ = path;
  FORETOKEN_CHECK_OK(file.OpenFile(path, O_RDONLY));
  Head head;
  const bool whole = pread(file.fd_, &head, sizeof(head), 0) == static_cast<ssize_t>(sizeof(head));
  if (!whole) head.magic = {};
  file.Place(shape, {});
  FORETOKEN_CHECK_OK(file.CheckHead(head, shape));
  for (const Kind kind : {kBlock, kState})
    if (head.n_slots[kind] < 0 || head.n_slots[kind] > most[kind])
      return Fail(ErrorCode::kTooLarge,
                  fmt::format("{}: its text is longer than the context; raise --ctx-size", path));
  file.Place(shape, {static_cast<std::int32_t>(head.n_slots[kBlock]),
                     static_cast<std::int32_t>(head.n_slots[kState])});
  const Area& last = file.areas_[kState];
  bool sound = file.size_ == last.At(last.n_slots);
  for (const Kind kind : {kBlock, kState}) {
    if (!sound) break;
    file.areas_[kind].Reserve();
    FORETOKEN_CHECK_OK(file.ReadRecords(kind));
    sound = file.n_records(kind) == file.n_places(kind);
  }
  if (!sound)
    return Fail(ErrorCode::kInvalidFile, fmt::format("{}: it is damaged; delete it", path));
  return file;
}

Status BlockFile::MayReplace(const std::string& path, const BlockKey& owner) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 && errno == ENOENT) return {};
  Head head;
  const bool ours = fd >= 0 && pread(fd, &head, sizeof(head), 0) == sizeof(head) &&
                    head.magic == Head::kMagic && head.hash == head.Hashed() && head.owner == owner;
  if (fd >= 0) close(fd);
  if (ours) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: it is there already, and no file that this client saved; give "
                          "another name, or delete it",
                          path));
}

Status BlockFile::OpenFile(const std::string& path, int flags) {
  fd_ = open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
  if (fd_ < 0 && errno == ENOENT && (flags & O_CREAT) == 0)
    return Fail(ErrorCode::kNotFound,
                fmt::format("{}: there is no such file; check the name", path));
  if (fd_ < 0) return Fail(IoError("cannot open"));
  struct stat status {};
  if (fstat(fd_, &status) != 0) return Fail(IoError("cannot open"));
  const std::string why = S_ISREG(status.st_mode) ? WhyNotOurs(status) : "is no regular file";
  if (!why.empty())
    return Fail(ErrorCode::kInvalidFile, fmt::format("{}: {}; name another file", path, why));
  size_ = status.st_size;
  return {};
}

// A quarter of the file is for states, where there are any.
Status BlockFile::Divide(const Shape& shape) {
  Place(shape, {});
  const Area& blocks = areas_[kBlock];
  const Area& states = areas_[kState];
  const auto slots = [](std::int64_t bytes, std::int64_t each) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(bytes / each, 0, kMostSlots));
  };
  const std::int64_t room = shape.max_bytes - kHeadBytes;
  Slots n_slots = {};
  if (shape.state_bytes > 0) n_slots[kState] = slots(room / 4, states.slot_bytes());
  n_slots[kBlock] = slots(room - n_slots[kState] * states.slot_bytes(), blocks.slot_bytes());
  if (n_slots[kBlock] == 0 || (shape.state_bytes > 0 && n_slots[kState] == 0))
    return Fail(ErrorCode::kTooLarge,
                fmt::format("{}: a block takes {} bytes and a state {}, which do not fit {}; allow "
                            "a larger file",
                            path_, blocks.bytes, states.bytes, shape.max_bytes));
  Place(shape, n_slots);
  return {};
}

void BlockFile::Place(const Shape& shape, const Slots& n_slots) {
  Area& blocks = areas_[kBlock];
  Area& states = areas_[kState];
  blocks.bytes = shape.block_bytes, states.bytes = shape.state_bytes;
  blocks.n_slots = n_slots[kBlock], states.n_slots = n_slots[kState];
  blocks.heads = kHeadBytes;
  states.heads = blocks.HeadAt(blocks.n_slots);
  blocks.begin = states.HeadAt(states.n_slots);
  states.begin = blocks.At(blocks.n_slots);
}

Status BlockFile::CheckHead(const Head& head, const Shape& shape) const {
  if (head.magic != Head::kMagic)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: it is no file of cache blocks; name another file", path_));
  if (head.version != Head::kVersion || head.order != Head::kOrder)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: it was written by another version, or on another kind of machine; "
                            "delete it, or name another file",
                            path_));
  if (head.hash != head.Hashed())
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: it is damaged; delete it, or name another file", path_));
  if (head.owner != shape.owner)
    return Fail(
        ErrorCode::kMismatch,
        fmt::format("{}: another client saved it, or it is of another use; name another file",
                    path_));
  if (head.made_by != shape.made_by || head.bytes[kBlock] != shape.block_bytes ||
      head.bytes[kState] != shape.state_bytes)
    return Fail(ErrorCode::kMismatch,
                fmt::format("{}: it is of another model, or of other settings of its cache; name "
                            "another file",
                            path_));
  return {};
}

// A file of another number of slots begins anew.
Status BlockFile::ReadHead(const Shape& shape) {
  if (size_ > 0) {
    Head head;
    const bool whole = pread(fd_, &head, sizeof(head), 0) == static_cast<ssize_t>(sizeof(head));
    if (!whole) head.magic = {};
    FORETOKEN_CHECK_OK(CheckHead(head, shape));
    if (head.n_slots[kBlock] == areas_[kBlock].n_slots &&
        head.n_slots[kState] == areas_[kState].n_slots)
      return {};
  }
  if (ftruncate(fd_, 0) != 0) return Fail(IoError("cannot be emptied"));
  size_ = 0;
  return WriteHead(shape);
}

Status BlockFile::WriteHead(const Shape& shape) {
  Head head{.made_by = shape.made_by, .owner = shape.owner};
  for (const Kind kind : {kBlock, kState})
    head.bytes[kind] = areas_[kind].bytes, head.n_slots[kind] = areas_[kind].n_slots;
  head.hash = head.Hashed();
  const NoWriteSignals no_signals;
  if (pwrite(fd_, &head, sizeof(head), 0) != static_cast<ssize_t>(sizeof(head)))
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

// The heads of all records, as far as the file has them; the others are zero.
void BlockFile::ReadHeads(Kind kind) noexcept {
  Area& area = areas_[kind];
  auto rest = std::as_writable_bytes(std::span(area.records));
  for (std::int64_t offset = area.heads; !rest.empty();) {
    const ssize_t n = pread(fd_, rest.data(), rest.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    offset += n;
    rest = rest.subspan(static_cast<std::size_t>(n));
  }
}

// Those that are not sound leave their slots free.
Status BlockFile::ReadRecords(Kind kind) {
  Area& area = areas_[kind];
  ReadHeads(kind);
  std::vector<std::int32_t> found;
  for (std::int32_t place = area.n_slots; place-- > 0;) {
    const Record& record = area.records[Index(place)];
    const bool whole = area.At(place + 1) <= size_;
    if (whole && Sound(kind, record) && Find(kind, record.key) == kNone) {
      area.Add(place);
      found.push_back(place);
      last_stamp_ = std::max(last_stamp_, record.stamp);
    } else {
      n_refused_ += record.stamp != 0 && record.hash != 0 ? 1 : 0;
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

std::int32_t BlockFile::Follower(Kind kind, const BlockKey& before) const noexcept {
  const Area& area = areas_[kind];
  if (area.n_slots == 0) return kNone;
  std::int32_t place = area.by_before[area.BucketOf(before)];
  while (place != kNone && area.records[Index(place)].text.before != before)
    place = area.next[Index(place)].before;
  return place;
}

std::int64_t BlockFile::bytes() const noexcept {
  std::int64_t bytes = fd_ < 0 ? 0 : kHeadBytes;
  for (const Area& area : areas_) bytes += area.lately.size() * area.slot_bytes();
  return bytes;
}

bool BlockFile::Read(Kind kind, std::int32_t place, Parts parts) noexcept {
  Area& area = areas_[kind];
  const bool read = Transfer(fd_, area.At(place), parts, [](auto... a) { return preadv(a...); });
  if (!read) StopWriting("cannot read");
  if (!read || HashOfParts(parts) != area.records[Index(place)].bytes_hash) {
    ++n_refused_;
    area.Remove(place);
    return false;
  }
  area.lately.Remove(place);
  area.lately.Append(place);
  return true;
}

// The first reason stays.
void BlockFile::StopWriting(const char* why) noexcept {
  if (status_)
    status_ = CatchNoMemory("cache file", [&]() -> Status { return Fail(IoError(why)); });
}

// A record without its hash is not sound.
void BlockFile::Erase(Kind kind, std::int32_t place) noexcept {
  Area& area = areas_[kind];
  constexpr std::uint64_t kNoHash = 0;
  area.records[Index(place)].hash = kNoHash;
  const NoWriteSignals no_signals;
  if (pwrite(fd_, &kNoHash, sizeof(kNoHash), area.HeadAt(place)) != sizeof(kNoHash))
    StopWriting("cannot write");
  area.Remove(place);
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
  const auto size = static_cast<ssize_t>(sizeof(record));
  if (!Transfer(fd_, area.At(place), parts, [](auto... a) { return pwritev(a...); }) ||
      pwrite(fd_, &record, sizeof(record), area.HeadAt(place)) != size) {
    StopWriting("cannot write");
    area.free.push_back(place);
    return false;
  }
  area.Add(place);
  area.lately.Append(place);
  return true;
}

}  // namespace foretoken::kv
