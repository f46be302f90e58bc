// SPDX-License-Identifier: Apache-2.0
// kv/block_file.h: a file of cache blocks and of copies of recurrent states, by their keys.
//
//   head (4096 bytes)   heads of blocks   heads of states   blocks   states
//
// A slot is a record's head, in one place, and its bytes, in another, with a hash of each. So a record that
// was written in part, or changed, is not found or not read, and nothing else suffers. All heads are read at
// once when the file is opened, and stay in memory; bytes lie one behind another, because a disk is fastest
// where it reads on. The number of slots follows from the most bytes of the file, which has no more than
// were written (holes take no space). When all slots are used, the record goes that was written or read
// longest ago.
//
// Nothing in the file is believed: sizes are those of the caller's memory, a key must be the hash of its
// tokens, and places must be within their text. The file belongs to one process at a time and to a user
// whose files no other can write. It has tokens of prompts, so nobody else may read it.
//
// A file of one text (Create, OpenToRead) has as many slots as the text has records, and all of them. It
// has an owner, whose other files it may replace, and is seen by others when it is whole.
//
// One thread uses a file. Only the functions that open one take memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/files/output_file.h"
#include "base/ids.h"
#include "foretoken/result.h"
#include "kv/block_key.h"
#include "kv/idle_blocks.h"
#include "tensor/block_layout.h"

namespace foretoken::kv {

class BlockFile {
 public:
  static constexpr std::int32_t kNone = -1;
  enum Kind { kBlock, kState };
  using Parts = std::span<const std::span<std::byte>>;

  struct Shape {
    BlockKey made_by = {};  // the hash of all that a record's bytes depend on, beside its text
    std::int64_t block_bytes = 0, state_bytes = 0;  // of a record; no states: 0
    std::int64_t max_bytes = 0;                     // of the file
    BlockKey owner = {};                            // of a file of one text
  };
  using Slots = std::array<std::int32_t, 2>;  // how many, by Kind
  // The text of a block, and for a state the positions that it reaches (Checkpoints::Reach).
  struct Text {
    BlockKey before = {};
    std::int32_t n_before = 0;  // full blocks
    std::int32_t n_tokens = 0;
    Pos first = 0, last = 0;
    std::array<Token, tensor::kKvBlock> tokens = {};

    std::span<const Token> View() const {
      return std::span(tokens).first(static_cast<std::size_t>(n_tokens));
    }
  };

  // Opens the file, or makes it. A file of another size begins anew. Errors: kInvalidFile (no file of
  // blocks, or of another version, or others may write it), kMismatch (made_by differs), kTooLarge (no
  // block fits), kIo (also: another process uses it).
  [[nodiscard]] static Result<BlockFile> Open(const std::string& path, const Shape& shape);
  // A file with room for one text, which has its name after Publish. Errors: kIo (also: the disk has no
  // room for all of it).
  [[nodiscard]] static Result<BlockFile> Create(const std::string& path, const Shape& shape,
                                                const Slots& n_slots);
  [[nodiscard]] Status Publish();
  // A file of one text, for reading. Errors: as Open, kNotFound, kInvalidFile (also: some of it is torn),
  // kMismatch (also: another owner's), kTooLarge (it has more slots than `most`).
  [[nodiscard]] static Result<BlockFile> OpenToRead(const std::string& path, const Shape& shape,
                                                    const Slots& most);
  // How large a file is that Create makes.
  static std::int64_t BytesFor(const Shape& shape, const Slots& n_slots);
  // Whether there is no such file, or one of this owner. Error: kInvalidArgument.
  [[nodiscard]] static Status MayReplace(const std::string& path, const BlockKey& owner);
  // One that has no slots, and no place on a disk.
  static BlockFile None() { return {}; }
  BlockFile(BlockFile&& other) noexcept;
  BlockFile& operator=(BlockFile&&) = delete;
  ~BlockFile();

  // The record's place, or kNone. A place holds until the next Write.
  std::int32_t Find(Kind kind, const BlockKey& key) const noexcept;
  const Text& TextOf(Kind kind, std::int32_t place) const noexcept {
    return areas_[kind].records[Index(place)].text;
  }
  const BlockKey& KeyOf(Kind kind, std::int32_t place) const noexcept {
    return areas_[kind].records[Index(place)].key;
  }
  // A record that follows `before`, or kNone.
  std::int32_t Follower(Kind kind, const BlockKey& before) const noexcept;
  // The record that follows `before` and has most tokens in common with the beginning of `tokens`, among
  // those that fits(text, common) accepts. Looks at 64 of the records at most.
  template <typename Fits>
  std::int32_t FindLike(Kind kind, const BlockKey& before, std::span<const Token> tokens,
                        Fits&& fits) const noexcept;

  // False: the bytes are not those that were written, or cannot be read, and the record is gone. If the
  // system refused, nothing is written any more.
  // REQUIRES: the parts have as many bytes as a record of the kind.
  bool Read(Kind kind, std::int32_t place, Parts parts) noexcept;
  // Writes the record, unless it is there. False: the file cannot be written, and is not any more.
  bool Write(Kind kind, const Text& text, Parts parts) noexcept;
  // The record is found no more, here and in later processes.
  void Erase(Kind kind, std::int32_t place) noexcept;
  // Why writing ended: the system refused to write, or to read.
  const Status& status() const noexcept { return status_; }

  int n_records(Kind kind) const noexcept { return areas_[kind].lately.size(); }
  int n_places(Kind kind) const noexcept { return areas_[kind].n_slots; }
  // Records that were not what was written: their slots when the file was opened, or their bytes when
  // they were read.
  std::int64_t n_refused() const noexcept { return n_refused_; }
  // How much the records that it has take, with their heads; where all slots are used, the whole file.
  std::int64_t bytes() const noexcept;

 private:
  struct Record {
    std::uint64_t hash;  // of all that follows
    std::uint64_t bytes_hash;
    std::int64_t stamp;  // greater than those of records written before; 0: there is none
    BlockKey key;
    Text text;
  };
  static_assert(std::has_unique_object_representations_v<Record>);  // it is hashed as it lies
  struct Area {
    std::int64_t heads = 0, begin = 0;  // where in the file
    std::int64_t bytes = 0;             // of a record
    std::int32_t n_slots = 0;
    std::vector<Record> records = {};
    std::vector<std::int32_t> by_key = {}, by_before = {};  // the first of each bucket
    struct Next {
      std::int32_t key = kNone, before = kNone;
    };
    std::vector<Next> next = {};
    std::vector<std::int32_t> free = {};
    IdleBlocks lately = IdleBlocks();

    std::int64_t slot_bytes() const { return static_cast<std::int64_t>(sizeof(Record)) + bytes; }
    std::int64_t HeadAt(std::int32_t place) const {
      return heads + place * static_cast<std::int64_t>(sizeof(Record));
    }
    std::int64_t At(std::int32_t place) const { return begin + place * bytes; }
    std::size_t BucketOf(const BlockKey& key) const noexcept;
    void Reserve();
    void Add(std::int32_t place) noexcept;
    void Remove(std::int32_t place) noexcept;
    std::int32_t Take() noexcept;
  };
  struct Head;

  BlockFile() = default;
  static std::size_t Index(std::int32_t place) { return static_cast<std::size_t>(place); }
  [[nodiscard]] Status OpenFile(const std::string& path, int flags);
  [[nodiscard]] Status Divide(const Shape& shape);
  void Place(const Shape& shape, const Slots& n_slots);
  [[nodiscard]] Status ReadHead(const Shape& shape);
  [[nodiscard]] Status CheckHead(const Head& head, const Shape& shape) const;
  [[nodiscard]] Status WriteHead(const Shape& shape);
  void ReadHeads(Kind kind) noexcept;
  [[nodiscard]] Status ReadRecords(Kind kind);
  bool Sound(Kind kind, const Record& record) const noexcept;
  void StopWriting(const char* why) noexcept;
  Error IoError(const char* what) const;

  std::string path_;
  std::optional<OutputFile> output_;  // until it has its name, of a file of one text
  int fd_ = -1;
  std::int64_t size_ = 0;  // when it was opened
  std::int64_t last_stamp_ = 0;
  std::int64_t n_refused_ = 0;
  std::array<Area, 2> areas_;
  Status status_;
};

template <typename Fits>
std::int32_t BlockFile::FindLike(Kind kind, const BlockKey& before, std::span<const Token> tokens,
                                 Fits&& fits) const noexcept {
  const Area& area = areas_[kind];
  std::int32_t best = kNone;
  int most = 0, n_seen = 0;
  if (area.n_slots == 0) return kNone;
  for (std::int32_t at = area.by_before[area.BucketOf(before)]; at != kNone && n_seen < 64;
       at = area.next[Index(at)].before) {
    const Text& text = TextOf(kind, at);
    if (text.before != before) continue;
    ++n_seen;
    int common = 0;
    while (common < text.n_tokens && static_cast<std::size_t>(common) < tokens.size() &&
           text.tokens[static_cast<std::size_t>(common)] ==
               tokens[static_cast<std::size_t>(common)])
      ++common;
    if (common > most && fits(text, common)) most = common, best = at;
  }
  return best;
}

}  // namespace foretoken::kv
