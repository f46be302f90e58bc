// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/gather.h"

#include <gtest/gtest.h>

#include <cstring>

#include "comm/thread_ranks_testing.h"
#include "kernels/dispatch.h"
#include "model/blocks/product.h"

namespace foretoken::model {
namespace {

constexpr int kWidth = 4096;

// What blocks compute with on one rank, and an activation.
struct Room {
  Room(comm::Ranks& r, const Division& d, int max_rows)
      : ranks(r),
        division(d),
        scratch(Config(), max_rows, 1, 1, r.size()),
        memory(max_rows, kWidth),
        a(memory.View(kWidth)) {}

  static ModelConfig Config() {
    LayerConfig layer;
    layer.mixer = AttentionConfig{.n_heads = 1, .n_kv_heads = 1, .head_dim = 32};
    layer.feed_forward = GatedFfnConfig{.width = 32};
    return {.layers = {layer}, .dim = kWidth, .vocabulary = 32};
  }
  Workspace Space() { return {kernels, pool, scratch, cache, states, ranks, division}; }

  // The columns [begin, end) of n_rows rows, as this rank would compute them.
  void Write(int n_rows, int begin, int end) {
    for (int row = 0; row < n_rows; ++row)
      for (int i = begin; i < end; ++i)
        a.Row(row)[i] = static_cast<float>((row * 7 + i) % 251 - 125);
    Quantise(kernels, a, 0, n_rows, begin, end);
  }

  comm::Ranks& ranks;
  const Division& division;
  const kernels::Kernels& kernels = *kernels::KernelsFromEnvironment().value();
  ThreadPool pool{1};
  Scratch scratch;
  CacheMemory cache = *CacheMemory::Create({}, {});
  StateMemory states{{}, {}};
  ActivationMemory memory;
  Activation a;
};

template <typename T>
bool SameBytes(const T* a, const T* b, std::int64_t n) {
  return std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(T)) == 0;
}

bool SameForm(const Activation& a, const Activation& b, int n_rows, GatheredForm form) {
  if (form == GatheredForm::kFloat) return SameBytes(a.x, b.x, std::int64_t{n_rows} * kWidth);
  const std::int64_t blocks = std::int64_t{n_rows} * kWidth / tensor::kBlock;
  return SameBytes(a.q, b.q, blocks * tensor::kBlock) && SameBytes(a.d, b.d, blocks) &&
         SameBytes(a.s, b.s, 2 * blocks);
}

void RunPhases(const Gather& gather, const Pass& pass) {
  std::vector<Phase> phases;
  gather.AddPhases(phases);
  for (const Phase& phase : phases)
    if (phase.wanted == nullptr || phase.wanted(pass)) phase.run(phase.block, pass, 0);
}

// Each rank writes its columns. Afterwards all ranks have all of them. Returns the gathers of a rank.
std::int64_t Check(const std::vector<int>& speeds, GatheredForm form, int n_rows) {
  std::int64_t n_gathers = 0;
  const std::vector<Token> tokens(static_cast<std::size_t>(n_rows));
  comm::RunAsRanks(static_cast<int>(speeds.size()), [&](comm::Ranks& ranks) {
    const Division division(ranks.rank(), speeds);
    Room own(ranks, division, n_rows), whole(ranks, division, n_rows);
    whole.Write(n_rows, 0, kWidth);
    const OutputRange columns = division.Own(kWidth, tensor::kBlock);
    own.Write(n_rows, columns.begin, columns.end);
    const Gather gather(own.Space(), own.a, form, ColumnsByRank(division, kWidth));
    RunPhases(gather, {.tokens = tokens});
    EXPECT_TRUE(SameForm(own.a, whole.a, n_rows, form)) << ranks.rank();
    if (ranks.leads()) n_gathers = ranks.traffic().gathers;
  });
  return n_gathers;
}

TEST(Gather, BringsTheColumnsOfOtherRanks) {
  for (const auto form : {GatheredForm::kFloat, GatheredForm::kInt8})
    for (const auto& speeds : {std::vector<int>{1, 1}, {1, 1, 1}, {1, 3}, {10, 5, 2, 1}})
      for (const int n_rows : {1, 5}) EXPECT_EQ(Check(speeds, form, n_rows), 1);
}

// 18 MB as numbers: more than a message holds.
TEST(Gather, ManyRowsGoInParts) {
  EXPECT_EQ(Check({1, 2}, GatheredForm::kFloat, 1100), 2);
  EXPECT_EQ(Check({1, 2}, GatheredForm::kInt8, 1100), 1);
}

TEST(Gather, SomeRanksMayHaveNothing) {
  EXPECT_EQ(Check(std::vector<int>{1, 1000}, GatheredForm::kInt8, 3), 1);
}

TEST(Gather, OneRankHasNoPhase) {
  comm::Alone alone;
  const Division division;
  Room room(alone, division, 1);
  std::vector<Phase> phases;
  Gather(room.Space(), room.a, GatheredForm::kFloat, ColumnsByRank(division, kWidth))
      .AddPhases(phases);
  EXPECT_TRUE(phases.empty());
}

// Rank 0 has some whole rows, and the others keep what they have.
TEST(Gather, TakesSomeRowsToRankZeroAlone) {
  comm::RunAsRanks(3, [&](comm::Ranks& ranks) {
    const Division division(ranks.rank(), {1, 2, 1});
    Room own(ranks, division, 4), whole(ranks, division, 4), before(ranks, division, 4);
    const OutputRange columns = division.Own(kWidth, tensor::kBlock);
    whole.Write(4, 0, kWidth);
    for (Room* const room : {&own, &before}) room->Write(4, columns.begin, columns.end);
    const Gather gather(own.Space(), own.a, GatheredForm::kFloat, ColumnsByRank(division, kWidth));
    EXPECT_TRUE(gather.ToLead(1, 2));
    const Room& expected = ranks.leads() ? whole : before;
    for (const int row : {1, 2})
      EXPECT_TRUE(SameBytes(own.a.Row(row), expected.a.Row(row), kWidth))
          << ranks.rank() << " " << row;
    for (const int row : {0, 3})
      EXPECT_TRUE(SameBytes(own.a.Row(row), before.a.Row(row), kWidth))
          << ranks.rank() << " " << row;
    EXPECT_EQ(ranks.traffic().gathers, 1);
  });
}

TEST(Gather, RunsInThePassesThatWantIt) {
  const std::vector<Token> tokens(5);
  const Pass pass = {.tokens = tokens};
  comm::RunAsRanks(2, [&](comm::Ranks& ranks) {
    const Division division(ranks.rank(), {1, 1});
    Room room(ranks, division, 5);
    const Gather gather(room.Space(), room.a, GatheredForm::kFloat, ColumnsByRank(division, kWidth),
                        {.wanted = [](const Pass& p) { return p.own_features; }});
    RunPhases(gather, pass);
    EXPECT_EQ(ranks.traffic().gathers, 0);
  });
}

}  // namespace
}  // namespace foretoken::model
