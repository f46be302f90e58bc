// SPDX-License-Identifier: Apache-2.0
// The fake network keeps a real one's promises: a row's logits depend on its own text alone.
#include <gtest/gtest.h>

#include <random>

#include "kv/block_tables.h"
#include "kv/transaction.h"
#include "model/fake_runner_testing.h"

namespace foretoken::model {
namespace {

std::vector<float> RowOf(const FakeRunner& runner, const PassResult& result, int i) {
  return {result.Logits(i), result.Logits(i) + runner.info().vocabulary};
}

TEST(FakeRunner, GivesTheSameLogitsHoweverATextIsDividedIntoPassesAndRolledBack) {
  FakeRunner runner;
  kv::BlockTables tables({.n_sequences = 2, .max_positions = 200});
  std::mt19937 random(3);
  std::vector<Token> texts[2];
  for (int step = 0; step < 200; ++step) {
    std::vector<kv::Segment> segments;
    std::vector<Token> tokens;
    std::vector<int> logit_rows, kept;
    for (SeqId seq = 0; seq < 2; ++seq) {
      if (tables.length(seq) > 150) tables.Truncate(seq, 0), texts[seq].clear();
      const int n = 1 + static_cast<int>(random() % 20);
      segments.push_back({seq, static_cast<int>(tokens.size()), n, tables.length(seq)});
      for (int i = 0; i < n; ++i) {
        logit_rows.push_back(static_cast<int>(tokens.size()));
        tokens.push_back(static_cast<Token>(random() % 50));
      }
      kept.push_back(static_cast<int>(random() % static_cast<unsigned>(n + 1)));
    }
    kv::Transaction pending(tables, segments);
    const PassResult& result =
        runner.Run({.tokens = tokens, .segments = segments, .logit_rows = logit_rows});
    for (std::size_t s = 0; s < 2; ++s) {
      std::vector<Token> text = texts[s];
      for (int i = 0; i < segments[s].n_rows; ++i) {
        const int row = segments[s].row_begin + i;
        text.push_back(tokens[static_cast<std::size_t>(row)]);
        ASSERT_EQ(RowOf(runner, result, row), runner.LogitsAfter(text));
        ASSERT_TRUE(result.Finite(row));
      }
      text.resize(texts[s].size() + static_cast<std::size_t>(kept[s]));
      texts[s] = text;
    }
    pending.Commit(kept);
  }
}

TEST(FakeRunner, KeepsFeaturesAndGivesRowsThatAreNotFinite) {
  FakeRunner runner({.not_finite_every = 2});
  runner.KeepFeatures({.layers = {0, 1}, .normed = true});
  kv::BlockTables tables({.max_positions = 64});
  kv::Segment segment{.n_rows = 30};
  kv::Transaction pending(tables, {&segment, 1});
  std::vector<Token> tokens(30);
  std::vector<int> logit_rows(30);
  for (int i = 0; i < 30; ++i)
    tokens[static_cast<std::size_t>(i)] = logit_rows[static_cast<std::size_t>(i)] = i;
  const PassResult& result =
      runner.Run({.tokens = tokens, .segments = {&segment, 1}, .logit_rows = logit_rows});
  EXPECT_EQ(result.features_width, 3 * runner.info().dim);
  EXPECT_NE(result.Features(0)[0], result.Features(1)[0]);
  int n_finite = 0;
  for (int i = 0; i < 30; ++i) {
    n_finite += result.Finite(i);
    EXPECT_EQ(result.Finite(i), result.Logits(i)[0] == result.Logits(i)[0]);
  }
  EXPECT_GT(n_finite, 5);
  EXPECT_LT(n_finite, 25);
}

}  // namespace
}  // namespace foretoken::model
