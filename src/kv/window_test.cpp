// SPDX-License-Identifier: Apache-2.0
// Layers that see a window: what is kept, what is dropped, and how far known texts can be shared.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kv/transaction.h"

namespace foretoken::kv {
namespace {

constexpr int kWindow = 40;

TablesShape WindowShape(int n_sequences = 3, int max_positions = 1600) {
  return {.n_sequences = n_sequences,
          .max_positions = max_positions,
          .window = kWindow,
          .pass_rows = 64};
}

// Texts that begin alike: text k differs from text 0 from position 100 k on.
Token TokenAt(int text, int position) {
  return position % 7 + (position >= 100 * text ? 10 * text : 0);
}

// What the row of a position would hold: it depends on the whole text up to there.
std::vector<std::uint64_t> RowsOf(std::span<const Token> text) {
  std::vector<std::uint64_t> rows;
  std::uint64_t hash = 1;
  for (const Token t : text)
    rows.push_back(hash = (hash ^ static_cast<std::uint64_t>(t)) * 0x100000001B3u + 7);
  return rows;
}

// The memories that a runner would have, and texts that are read in passes.
class WindowProgram {
 public:
  explicit WindowProgram(const TablesShape& shape)
      : tables(shape),
        memory_(static_cast<std::size_t>(tables.n_blocks() * tensor::kKvBlock)),
        window_memory_(static_cast<std::size_t>(shape.n_window_blocks() * tensor::kKvBlock)) {
    for (int i = 0; i < shape.n_sequences; ++i) texts.emplace_back();
  }

  // Begins another text, which may be known.
  int Begin(SeqId seq, int text, int length) {
    tables.Truncate(seq, 0);
    texts[seq].clear();
    for (int i = 0; i < length; ++i) texts[seq].push_back(TokenAt(text, i));
    return tables.Share(seq, texts[seq]);
  }
  void End(SeqId seq) { tables.End(seq, texts[seq]); }
  bool AtEnd(SeqId seq) const { return tables.length(seq) == static_cast<int>(texts[seq].size()); }

  // Reads n rows, checks all that they see, and keeps some.
  void Read(SeqId seq, int n, int kept) {
    const std::vector<std::uint64_t> rows = RowsOf(texts[seq]);
    Segment segment{.seq = seq, .n_rows = n, .first_position = tables.length(seq)};
    Transaction transaction(tables, {&segment, 1});
    const auto at = [](auto& memory, std::span<const std::int32_t> blocks, int p) -> auto& {
      const std::int32_t block = blocks[static_cast<std::size_t>(p / tensor::kKvBlock)];
      return memory.at(static_cast<std::size_t>(block * tensor::kKvBlock + p % tensor::kKvBlock));
    };
    for (int p = segment.first_position; p < segment.first_position + n; ++p) {
      at(memory_, segment.blocks, p) = rows[static_cast<std::size_t>(p)];
      at(window_memory_, segment.window_blocks, p) = rows[static_cast<std::size_t>(p)];
      for (int seen = 0; seen <= p; ++seen) {
        const std::uint64_t expected = rows[static_cast<std::size_t>(seen)];
        ASSERT_EQ(at(memory_, segment.blocks, seen), expected);
        if (seen <= p - kWindow) continue;
        ASSERT_EQ(at(window_memory_, segment.window_blocks, seen), expected)
            << "position " << p << " sees " << seen;
      }
    }
    transaction.Commit({&kept, 1});
  }
  void Publish(SeqId seq) {
    tables.Publish(seq, std::span(texts[seq]).first(static_cast<std::size_t>(tables.length(seq))));
  }
  void ReadToTheEnd(SeqId seq) {
    while (!AtEnd(seq)) {
      const int n = std::min(64, static_cast<int>(texts[seq].size()) - tables.length(seq));
      Read(seq, n, n);
      Publish(seq);
    }
  }
  int HeldWindowBlocks(SeqId seq) const {
    const auto blocks = tables.WindowBlocksOf(seq);
    return static_cast<int>(
        std::count_if(blocks.begin(), blocks.end(), [](int b) { return b >= 0; }));
  }

  BlockTables tables;
  std::vector<std::vector<Token>> texts;

 private:
  std::vector<std::uint64_t> memory_, window_memory_;
};

TEST(Windows, KeepWhatIsSeenThroughRandomPrograms) {
  WindowProgram program(WindowShape());
  BlockTables& tables = program.tables;
  std::mt19937 random(7);
  std::vector<int> published_length(3), longest(3);
  int shared = 0, tails = 0;
  for (SeqId seq = 0; seq < 3; ++seq) program.Begin(seq, 0, 300);
  for (int step = 0; step < 1500; ++step) {
    const auto seq = static_cast<SeqId>(random() % 3);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    if (program.AtEnd(seq) || below(20) == 0) {
      if (below(3) > 0) program.End(seq);
      published_length[seq] = program.Begin(seq, below(4), 1 + below(500));
      shared += longest[seq] = published_length[seq];
      tails += published_length[seq] % tensor::kKvBlock != 0;
      continue;
    }
    const int left = static_cast<int>(program.texts[seq].size()) - tables.length(seq);
    const int n = 1 + below(std::min(left, 64));
    program.Read(seq, n, below(4) == 0 ? below(n + 1) : n);
    longest[seq] = std::max(longest[seq], tables.length(seq));
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "step " << step;
    if (below(3) == 0) {
      program.Publish(seq);
      published_length[seq] = tables.length(seq) / tensor::kKvBlock * tensor::kKvBlock;
    } else if (below(3) == 0) {
      const int length = longest[seq] - below(TablesShape::kRollback + 1);
      if (length > tables.length(seq)) continue;
      if (length < published_length[seq]) continue;
      EXPECT_EQ(tables.Truncate(seq, length), length);
    }
    // Only what the next position sees, a rollback's, and the rows of the passes before it.
    EXPECT_LE(program.HeldWindowBlocks(seq), BlocksFor(kWindow + TablesShape::kRollback + 64) + 2);
  }
  EXPECT_GT(shared, 3000);
  EXPECT_GT(tails, 10);
  for (SeqId seq = 0; seq < 3; ++seq) tables.Truncate(seq, 0);
  EXPECT_EQ(tables.window_blocks().n_free() + tables.window_blocks().n_idle(),
            tables.window_blocks().n_blocks());
  EXPECT_EQ(tables.n_available_blocks(), tables.n_blocks());
}

TEST(Windows, TakeFewerBlocksThanTheTextHas) {
  const TablesShape shape = WindowShape(1);
  EXPECT_EQ(shape.n_blocks(), 50);
  EXPECT_GT(shape.n_window_blocks(), 0);
  EXPECT_LT(shape.n_window_blocks(), 15);
  // Where the context is short, nothing would be saved.
  EXPECT_EQ(WindowShape(1, 256).n_window_blocks(), 0);
  EXPECT_EQ((TablesShape{.max_positions = 1600}).n_window_blocks(), 0);
}

TEST(Windows, LetTheEndOfATextBeShared) {
  WindowProgram program(WindowShape(2));
  EXPECT_EQ(program.Begin(0, 0, 1300), 0);
  program.ReadToTheEnd(0);
  program.tables.Truncate(0, 0);
  // The text goes on where the first one ended.
  EXPECT_EQ(program.Begin(1, 0, 1400), 1300 / 32 * 32);
  program.ReadToTheEnd(1);
}

TEST(Windows, LetATextGoOnBehindATail) {
  WindowProgram program(WindowShape(2));
  program.Begin(0, 0, 1301);
  program.ReadToTheEnd(0);
  program.End(0);
  EXPECT_EQ(program.Begin(1, 0, 1400), 1301);
  EXPECT_EQ(program.Begin(0, 0, 1400), 1301 / 32 * 32) << "it is taken";
  program.ReadToTheEnd(1);
  program.ReadToTheEnd(0);
}

TEST(Windows, DoNotLetATextBeSharedUpToWhereTheyAreDropped) {
  WindowProgram program(WindowShape(2));
  program.Begin(0, 0, 1300);
  program.ReadToTheEnd(0);
  program.tables.Truncate(0, 0);
  // It parts from the first text at position 100, long dropped: nothing can be used.
  EXPECT_EQ(program.Begin(1, 1, 600), 0);
  program.ReadToTheEnd(1);
  EXPECT_EQ(program.Begin(0, 1, 700), 600 / 32 * 32);
}

TEST(Windows, ForgetATextThatIsCutTooFarBack) {
  WindowProgram program(WindowShape(1));
  program.Begin(0, 0, 1000);
  while (!program.AtEnd(0)) program.Read(0, 50, 50);
  EXPECT_EQ(program.tables.Truncate(0, 1000 - TablesShape::kRollback),
            1000 - TablesShape::kRollback);
  EXPECT_EQ(program.tables.Truncate(0, 500), 0);
  EXPECT_EQ(program.HeldWindowBlocks(0), 0);
  program.ReadToTheEnd(0);
}

}  // namespace
}  // namespace foretoken::kv
