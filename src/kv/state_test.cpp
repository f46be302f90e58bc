// SPDX-License-Identifier: Apache-2.0
// Which positions a recurrent state takes in: after any series of commits and rollbacks it holds
// what reading the kept tokens one by one would have made of it. Without copies of states; with
// them: checkpoints_test.cpp.
#include <gtest/gtest.h>

#include <random>

#include "kv/block_tables.h"
#include "kv/transaction.h"

namespace foretoken::kv {
namespace {

constexpr int kStateRows = 9;

TablesShape StateShape() {
  return {.n_sequences = 2, .max_positions = 400, .state_rows = kStateRows};
}

// What a runner has of a sequence: a state, and the newest inputs by position.
struct Kept {
  std::uint64_t state = 0;
  std::vector<std::uint64_t> inputs = std::vector<std::uint64_t>(kStateRows);

  static std::uint64_t Next(std::uint64_t state, std::uint64_t input) {
    return (state ^ input) * 0x9E3779B97F4A7C15u + 1;
  }
  // Returns the state behind each row.
  std::vector<std::uint64_t> Run(const Segment& s, const std::vector<std::uint64_t>& rows) {
    if (s.state.from == 0) state = 0;
    std::uint64_t now = state;
    std::vector<std::uint64_t> results;
    for (Pos p = s.state.from; p < s.first_position + s.n_rows; ++p) {
      if (p == s.state.to) state = now;
      const auto row = static_cast<std::size_t>(p - s.first_position);
      now = Next(
          now, p < s.first_position ? inputs[static_cast<std::size_t>(p % kStateRows)] : rows[row]);
      if (p >= s.first_position) results.push_back(now);
    }
    if (s.state.to == s.first_position + s.n_rows) state = now;
    for (Pos p = s.state.to; p < s.first_position + s.n_rows; ++p)
      if (p >= s.first_position)
        inputs[static_cast<std::size_t>(p % kStateRows)] =
            rows[static_cast<std::size_t>(p - s.first_position)];
    return results;
  }
};

std::uint64_t Reread(const std::vector<std::uint64_t>& text) {
  std::uint64_t state = 0;
  for (const std::uint64_t input : text) state = Kept::Next(state, input);
  return state;
}

TEST(States, HoldWhatWasCommittedThroughRandomPrograms) {
  BlockTables tables(StateShape());
  std::vector<Kept> kept(2);
  std::vector<std::vector<std::uint64_t>> texts(2);
  std::mt19937 random(7);
  int taken_back = 0;
  for (int step = 0; step < 4000; ++step) {
    const auto seq = static_cast<SeqId>(random() % 2);
    auto& text = texts[static_cast<std::size_t>(seq)];
    if (random() % 8 == 0) {
      const int length =
          std::max(0, static_cast<int>(text.size()) - static_cast<int>(random() % 12));
      text.resize(static_cast<std::size_t>(tables.Truncate(seq, length)));
      taken_back += length != 0 && static_cast<int>(text.size()) == length;
      continue;
    }
    const int certain = random() % 3 == 0 ? static_cast<int>(random() % 30) : 1 - random() % 2,
              drafts = static_cast<int>(random() % kStateRows), n = certain + drafts;
    if (n == 0 || n > tables.room(seq)) {
      text.resize(static_cast<std::size_t>(tables.Truncate(seq, 0)));
      continue;
    }
    std::vector<std::uint64_t> rows;
    for (int i = 0; i < n; ++i) rows.push_back(random());
    Segment segment{
        .seq = seq, .n_rows = n, .first_position = tables.length(seq), .n_certain = certain};
    Transaction transaction(tables, {&segment, 1});
    ASSERT_LE(segment.state.from, segment.first_position);
    ASSERT_LE(segment.first_position + n - segment.state.to, kStateRows);
    const auto results = kept[static_cast<std::size_t>(seq)].Run(segment, rows);
    std::vector<std::uint64_t> whole = text;
    for (int i = 0; i < n; ++i) {
      whole.push_back(rows[static_cast<std::size_t>(i)]);
      ASSERT_EQ(results[static_cast<std::size_t>(i)], Reread(whole)) << "step " << step;
    }
    const int stay = certain + (drafts == 0 ? 0 : static_cast<int>(random() % (drafts + 1)));
    transaction.Commit({&stay, 1});
    text.insert(text.end(), rows.begin(), rows.begin() + stay);
    ASSERT_EQ(tables.length(seq), static_cast<int>(text.size()));
  }
  EXPECT_GT(taken_back, 50);
}

TEST(States, TakeInCertainRowsAtOnceAndDraftsWhenTheyAreCommitted) {
  BlockTables tables(StateShape());
  const auto move = [&](int n_rows, int n_certain, int kept) {
    Segment segment{.n_rows = n_rows, .first_position = tables.length(0), .n_certain = n_certain};
    Transaction transaction(tables, {&segment, 1});
    transaction.Commit({&kept, 1});
    return std::pair(segment.state.from, segment.state.to);
  };
  EXPECT_EQ(move(40, 40, 40), std::pair(0, 40));
  EXPECT_EQ(move(5, 1, 3), std::pair(40, 41));    // two of four drafts are committed
  EXPECT_EQ(move(1, 1, 1), std::pair(41, 44));    // and taken in by the next pass
  EXPECT_EQ(move(20, 0, 20), std::pair(44, 55));  // nine rows can be taken back at most
}

TEST(States, ForgetAllPositionsWhereTheyHaveTakenInOneThatIsTakenBack) {
  BlockTables tables(StateShape());
  Segment segment{.n_rows = 40, .n_certain = 35};
  const int all = 40;
  Transaction(tables, {&segment, 1}).Commit({&all, 1});
  EXPECT_EQ(tables.Truncate(0, 36), 36);
  EXPECT_EQ(tables.Truncate(0, 35), 35);
  EXPECT_EQ(tables.Truncate(0, 34), 0);
  EXPECT_EQ(tables.n_free_blocks(), tables.n_blocks());
}

TEST(States, KeepSequencesFromSharingBlocksWhereThereAreNoCopies) {
  BlockTables tables(StateShape());
  const std::vector<Token> text(64, 5);
  Segment segment{.n_rows = 64, .n_certain = 64};
  const int all = 64;
  Transaction(tables, {&segment, 1}).Commit({&all, 1});
  tables.Publish(0, text);
  EXPECT_EQ(tables.SharedBlocks(text), 0);
  EXPECT_EQ(tables.Share(1, text), 0);
}

}  // namespace
}  // namespace foretoken::kv
