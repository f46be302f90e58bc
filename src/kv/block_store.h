// SPDX-License-Identifier: Apache-2.0
// kv/block_store.h: a file of blocks (kv/block_file.h) beside the memory of a cache. What the memory has
// no more room for goes there, and comes back when a text begins with it.
//
// One thread uses a store. Nothing but NameSalt takes memory behind the constructor.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "foretoken/stats.h"
#include "kv/block_file.h"

namespace foretoken::kv {

class BlockStore {
 public:
  using PartList = std::vector<std::span<std::byte>>;
  // The memory of a block, or of the copy of a state in a place. The parts of all have the same sizes.
  struct Memory {
    std::function<void(std::int32_t, PartList&)> of_block, of_state;
  };

  // most_parts: of a block or a copy.
  BlockStore(BlockFile file, Memory memory, std::size_t most_parts)
      : file_(std::move(file)), memory_(std::move(memory)) {
    parts_.reserve(most_parts);
    NameSalt(kNoSalt, "");
  }

  // What the number of a salt stands for. Texts of a salt that has no name, or had it long ago, are not
  // kept in the file.
  void NameSalt(SaltId salt, std::string_view text) {
    roots_.try_emplace(salt, RootKey(text));
    if (roots_.size() > kMostSalts)
      roots_.erase(std::next(roots_.begin()));  // the oldest but kNoSalt
  }
  std::optional<BlockKey> RootOf(SaltId salt) const noexcept {
    const auto found = roots_.find(salt);
    return found == roots_.end() ? std::nullopt : std::optional(found->second);
  }

  const BlockFile& file() const noexcept { return file_; }
  // BlockFile::Publish.
  [[nodiscard]] Status Publish() { return file_.Publish(); }
  // What the file has now, and what went to it and came back.
  CacheFileCounts counts() const noexcept {
    CacheFileCounts counts = counts_;
    counts.blocks = file_.n_records(BlockFile::kBlock);
    counts.states = file_.n_records(BlockFile::kState);
    counts.bytes = file_.bytes();
    counts.refused = file_.n_refused();
    counts.failed = !file_.status();
    return counts;
  }

  bool Read(BlockFile::Kind kind, std::int32_t record, std::int32_t place) noexcept {
    if (!file_.Read(kind, record, PartsOf(kind, place))) return false;
    ++(kind == BlockFile::kBlock ? counts_.blocks_read : counts_.states_read);
    if (kind == BlockFile::kBlock) counts_.tokens_read += file_.TextOf(kind, record).n_tokens;
    counts_.bytes_read += Bytes();
    return true;
  }
  void Erase(BlockFile::Kind kind, const BlockKey& key) noexcept {
    if (const std::int32_t record = file_.Find(kind, key); record != BlockFile::kNone)
      file_.Erase(kind, record);
  }
  void Write(BlockFile::Kind kind, const BlockFile::Text& text, std::int32_t place) noexcept {
    const bool known = file_.Find(kind, KeyAfter(text.before, text.View())) != BlockFile::kNone;
    if (!file_.Write(kind, text, PartsOf(kind, place)) || known) return;
    ++(kind == BlockFile::kBlock ? counts_.blocks_written : counts_.states_written);
    counts_.bytes_written += Bytes();
  }

 private:
  static constexpr std::size_t kMostSalts = 4096;

  BlockFile::Parts PartsOf(BlockFile::Kind kind, std::int32_t place) noexcept {
    (kind == BlockFile::kBlock ? memory_.of_block : memory_.of_state)(place, parts_);
    return parts_;
  }
  std::int64_t Bytes() const noexcept {
    std::size_t bytes = 0;
    for (const auto part : parts_) bytes += part.size();
    return static_cast<std::int64_t>(bytes);
  }

  BlockFile file_;
  Memory memory_;
  PartList parts_;
  std::map<SaltId, BlockKey> roots_;
  CacheFileCounts counts_;  // only what went to the file and came back
};

}  // namespace foretoken::kv
