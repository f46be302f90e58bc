// SPDX-License-Identifier: Apache-2.0
// Tables with a store: random texts in a memory that is too small for them, and in new tables that have
// nothing but the file. What comes back is what was computed.
#include <algorithm>
#include <fstream>
#include <random>

#include "base/files/folder_testing.h"
#include "base/hash.h"
#include "kv/block_tables.h"
#include "kv/transaction.h"

namespace foretoken::kv {
namespace {

using StoredText = std::vector<Token>;

// Tables over a store, and the memory that a runner would have: a number for each position, which
// depends on the whole text up to there.
struct StoredCache {
  StoredCache(const std::string& path, int n_blocks, std::int64_t max_bytes = 1 << 20)
      : tables({.n_sequences = 2, .max_positions = 400, .n_positions = n_blocks * 32}),
        rows(static_cast<std::size_t>(n_blocks) * 32),
        store(*BlockFile::Open(path,
                               {.block_bytes = 32 * sizeof(std::uint64_t), .max_bytes = max_bytes}),
              memory(), 1) {
    tables.Use(store);
  }

  static std::uint64_t RowOf(std::span<const Token> text, SaltId salt) {
    return HashOf(text) + static_cast<std::uint64_t>(salt);
  }
  std::uint64_t& Row(SeqId seq, int position) {
    const std::int32_t block = tables.Blocks(seq)[static_cast<std::size_t>(position / 32)];
    return rows[static_cast<std::size_t>(block * 32 + position % 32)];
  }
  // Reads a text to its end, and returns how many of its positions were known.
  int Read(SeqId seq, const StoredText& text, SaltId salt = kNoSalt) {
    const std::span all(text);
    tables.Restore(seq, all.first(all.size() - 1), salt);
    const int known = tables.Share(seq, all.first(all.size() - 1), salt);
    while (tables.length(seq) < static_cast<int>(text.size())) {
      const int at = tables.length(seq), n = std::min(20, static_cast<int>(text.size()) - at);
      Segment segment{.seq = seq, .n_rows = n, .first_position = at, .n_certain = n};
      Transaction transaction(tables, {&segment, 1});
      for (int i = at; i < at + n; ++i)
        Row(seq, i) = RowOf(all.first(static_cast<std::size_t>(i) + 1), salt);
      transaction.Commit({&n, 1});
      tables.Publish(seq, all.first(static_cast<std::size_t>(at + n)), salt);
    }
    for (int i = 0; i < static_cast<int>(text.size()); ++i)
      EXPECT_EQ(Row(seq, i), RowOf(all.first(static_cast<std::size_t>(i) + 1), salt)) << i;
    return known;
  }
  int ReadAndEnd(SeqId seq, const StoredText& text, SaltId salt = kNoSalt) {
    const int known = Read(seq, text, salt);
    tables.End(seq, text, salt);
    return known;
  }

  BlockStore::Memory memory() {
    return {.of_block =
                [this](std::int32_t block, BlockStore::PartList& parts) {
                  moved.push_back(block);
                  parts.assign({std::as_writable_bytes(
                      std::span(rows).subspan(static_cast<std::size_t>(block) * 32, 32))});
                },
            .of_state = {}};
  }

  BlockTables tables;
  std::vector<std::uint64_t> rows;
  std::vector<std::int32_t> moved;  // blocks that were written or read, in this order
  BlockStore store;
};

struct StoredTables : FolderTest {
  std::string path = At("blocks");
};

StoredText TextFrom(Token first, int n) {
  StoredText text(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) text[static_cast<std::size_t>(i)] = first + i;
  return text;
}

TEST_F(StoredTables, WhatHasNoRoomInMemoryComesBack) {
  StoredCache cache(path, 4);
  EXPECT_EQ(cache.ReadAndEnd(0, TextFrom(1, 100)), 0);
  EXPECT_EQ(cache.ReadAndEnd(0, TextFrom(1000, 100)), 0);  // takes the place of the first
  EXPECT_GE(cache.store.counts().blocks_written, 3);
  EXPECT_EQ(cache.ReadAndEnd(1, TextFrom(1, 100)), 99);
  EXPECT_EQ(cache.store.counts().blocks_read, 4);  // the tail among them
}

TEST_F(StoredTables, WhatIsKeptAtTheEndComesBackInNewTables) {
  {
    StoredCache cache(path, 8);
    cache.ReadAndEnd(0, TextFrom(1, 70));
    cache.tables.KeepAll();
    EXPECT_EQ(cache.store.counts().blocks_written, 3);
    cache.tables.KeepAll();
    EXPECT_EQ(cache.store.counts().blocks_written, 3);
  }
  StoredCache cache(path, 8);
  StoredText parted = TextFrom(1, 90);
  parted[40] = 7;
  EXPECT_EQ(cache.ReadAndEnd(0, parted), 32);
  EXPECT_EQ(cache.ReadAndEnd(1, TextFrom(1, 90)), 70);
  EXPECT_EQ(cache.store.counts().blocks_read, 3);
}

// The last block of a text is kept first, so its blocks lie in the file from the last to the first.
TEST_F(StoredTables, BlocksAreReadInTheOrderOfTheFile) {
  const StoredText text = TextFrom(1, 193);
  {
    StoredCache cache(path, 8);
    cache.ReadAndEnd(0, text);
    cache.tables.KeepAll();
  }
  StoredCache cache(path, 8);
  EXPECT_EQ(cache.Read(0, text), 192);
  const auto blocks = cache.tables.Blocks(0).first(6);
  EXPECT_EQ(cache.moved, std::vector<std::int32_t>(blocks.rbegin(), blocks.rend()));
  cache.tables.End(0, text);
}

TEST_F(StoredTables, ADamagedBlockEndsWhatComesBack) {
  const StoredText text = TextFrom(1, 200);
  constexpr int kBlockBytes = 32 * sizeof(std::uint64_t);
  for (int damaged = 0; damaged < 6; ++damaged) {
    unlink(path.c_str());
    {
      StoredCache cache(path, 8);
      cache.ReadAndEnd(0, text);
      cache.tables.KeepAll();
    }
    {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(-(damaged * kBlockBytes + 1), std::ios::end);  // the first block lies at the end
      file.put('x');
    }
    {
      StoredCache cache(path, 8);
      EXPECT_EQ(cache.ReadAndEnd(0, text), 32 * damaged);  // and all rows are right
      EXPECT_EQ(cache.store.counts().refused, 1);
      EXPECT_EQ(cache.tables.n_available_blocks(), 8);
      EXPECT_EQ(cache.ReadAndEnd(1, text), 199);
    }
    // Nor does what lies behind it come back in its place.
    StoredCache cache(path, 8);
    cache.tables.Restore(0, text);
    StoredText without = text;
    without.erase(without.begin() + 32 * damaged, without.begin() + 32 * (damaged + 1));
    EXPECT_EQ(cache.ReadAndEnd(0, without), 32 * damaged);
  }
}

TEST_F(StoredTables, TextsOfTwoSaltsNeverMeet) {
  for (int round = 0; round < 2; ++round) {
    StoredCache cache(path, 8);
    const SaltId mine = round == 0 ? 1 : 2, theirs = 3 - mine;  // numbers change with each process
    cache.tables.NameSalt(mine, "mine");
    cache.tables.NameSalt(theirs, "theirs");
    EXPECT_EQ(cache.store.RootOf(mine), RootKey("mine"));
    if (round == 0) {
      cache.ReadAndEnd(0, TextFrom(1, 70), mine);
      cache.tables.KeepAll();
      continue;
    }
    EXPECT_EQ(cache.ReadAndEnd(0, TextFrom(1, 70), theirs), 0);
    EXPECT_EQ(cache.ReadAndEnd(0, TextFrom(1, 70)), 0);
    EXPECT_EQ(cache.store.counts().blocks_read, 0);
    // The number that was mine in the last process is theirs now, so only the name tells.
    EXPECT_EQ(cache.store.RootOf(theirs), RootKey("theirs"));
  }
}

TEST_F(StoredTables, BringBackWhatWasComputedThroughRandomPrograms) {
  std::mt19937 random(5);
  std::int64_t n_known = 0, n_read = 0;
  for (int process = 0; process < 6; ++process) {
    StoredCache cache(path, 14, process < 3 ? 1 << 20 : 12'000);  // then the file is too small, too
    for (int step = 0; step < 150; ++step) {
      StoredText text = TextFrom(1, 20 + static_cast<int>(random() % 180));
      for (int change = static_cast<int>(random() % 3); change > 0; --change)
        text[random() % text.size()] = static_cast<Token>(random() % 3);
      n_known += cache.ReadAndEnd(static_cast<SeqId>(random() % 2), text);
    }
    n_read += cache.store.counts().blocks_read;
    cache.tables.KeepAll();
  }
  EXPECT_GT(n_known, 10'000);
  EXPECT_GT(n_read, 300);
}

// Random texts go to files of their own and come back to tables that have read other texts, beside a store
// that is too small.
TEST_F(StoredTables, TextsGoThroughFilesOfTheirOwn) {
  std::mt19937 random(6);
  const std::string one = path + "_one";
  const BlockFile::Shape shape{.block_bytes = 32 * sizeof(std::uint64_t)};
  std::int64_t n_saved = 0, n_known = 0, n_dropped = 0;
  for (int process = 0; process < 40; ++process) {
    unlink(path.c_str());
    StoredText text = TextFrom(1, 20 + static_cast<int>(random() % 180));
    for (Token& token : text) token += static_cast<Token>(random() % 2);
    {
      StoredCache cache(path, 14, 8000);
      cache.ReadAndEnd(0, TextFrom(1, 20 + static_cast<int>(random() % 180)));
      cache.ReadAndEnd(1, text);
      const BlockTables::Known known = cache.tables.Gather(text, kNoSalt);
      EXPECT_EQ(known.n_tokens, static_cast<int>(text.size()));
      unlink(one.c_str());
      BlockStore to(*BlockFile::Create(one, shape, {known.n_blocks, 0}), cache.memory(), 1);
      cache.tables.Save(to);
      EXPECT_TRUE(to.Publish());
      n_saved += known.n_tokens;
    }
    unlink(path.c_str());
    StoredCache cache(path, 14, 8000);
    cache.ReadAndEnd(0, TextFrom(1, 20 + static_cast<int>(random() % 180)));
    StoredText brought;
    brought.reserve(416);
    auto file = BlockFile::OpenToRead(one, shape, {13, 0});
    ASSERT_TRUE(file) << file.error().message;
    BlockStore from(*std::move(file), cache.memory(), 1);
    cache.tables.Bring(from, kNoSalt, brought);
    EXPECT_EQ(brought, text);
    EXPECT_EQ(cache.tables.n_available_blocks(), 14);
    text.push_back(7);
    n_known += cache.ReadAndEnd(1, text);
    cache.tables.KeepAll();
    n_dropped += cache.tables.Drop(text, kNoSalt);
    EXPECT_LE(cache.Read(1, text), 192);
    cache.tables.End(1, text);
  }
  EXPECT_EQ(n_known, n_saved);
  EXPECT_GT(n_dropped, n_saved / 2);
  unlink(one.c_str());
}

}  // namespace
}  // namespace foretoken::kv
