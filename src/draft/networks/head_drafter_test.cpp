// SPDX-License-Identifier: Apache-2.0
#include "draft/networks/head_drafter.h"

#include <algorithm>

#include "draft/networks/head_bench_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken::draft {
namespace {

class HeadDrafterBench : public HeadBench {
 public:
  explicit HeadDrafterBench(bool eagle, int positions = 128, int max_rows = 16)
      : HeadBench(Files(eagle, positions, max_rows)), eagle_(eagle) {}

  std::unique_ptr<HeadDrafter> Make() {
    return std::make_unique<HeadDrafter>(LoadHead(), config(), tables(), kVocabulary, kMaxDraft,
                                         kernels());
  }
  bool eagle() const { return eagle_; }

 private:
  static Options Files(bool eagle, int positions, int max_rows) {
    const std::string folder = fixtures::TemporaryFolder();
    const fixtures::TinyModelOptions target{.seed = 5, .vocab = kVocabulary};
    fixtures::TinyHeadOptions head{.target = target, .eagle = eagle};
    if (eagle) head.draft_vocabulary = 100;
    return {.target = fixtures::WriteTinyModel(folder, target),
            .head = fixtures::WriteTinyHead(folder, head),
            .positions = positions,
            .max_rows = max_rows};
  }

  bool eagle_;
};

class HeadDrafterTest : public testing::TestWithParam<bool> {};

TEST_P(HeadDrafterTest, DraftsDependOnCommittedTextAndFeaturesAlone) {
  HeadDrafterBench bench(GetParam());
  bench.ExpectDraftsOfTextAndFeaturesAlone([&bench] { return bench.Make(); });
}

TEST_P(HeadDrafterTest, AFeatureChangesTheDrafts) {
  HeadDrafterBench bench(GetParam());
  std::mt19937 random(12);
  const auto text = RandomText(random, 20);
  auto a = bench.Make(), b = bench.Make();
  for (HeadDrafter* drafter : {a.get(), b.get()}) HeadDrafterBench::Begin(*drafter, 0, text, 0.8F);
  HeadDrafterBench::Begin(*b, 1, text, 0.8F);
  bench.Observe(*a, 0, {}, 0, 19);
  bench.Observe(*b, 1, {}, 0, 19);  // the same tokens, other features
  EXPECT_FALSE(HeadDrafterBench::Propose(*a, 0, 4) == HeadDrafterBench::Propose(*b, 1, 4));
}

// As after a prefix that came from a cache: the head drafts as for a text that begins behind it.
TEST_P(HeadDrafterTest, ABeginningWithoutFeaturesIsLeftOut) {
  constexpr int kCut = 12;
  HeadDrafterBench bench(GetParam());
  std::mt19937 random(14);
  auto text = RandomText(random, 30);
  auto whole = bench.Make(), rest = bench.Make();
  HeadDrafterBench::Begin(*whole, 0, text, 0);
  HeadDrafterBench::Begin(*rest, 0, std::span(text).subspan(kCut), 0);
  bench.Observe(*whole, 0, {}, kCut, 17);
  bench.Observe(*rest, 0, {}, kCut, 17, kCut);
  for (int processed = 29; processed < 60;) {
    const Drafts drafts = HeadDrafterBench::Propose(*whole, 0, 4);
    ASSERT_EQ(drafts.tokens.size(), 4U);
    ASSERT_TRUE(drafts == HeadDrafterBench::Propose(*rest, 0, 4)) << processed;
    const auto committed = RandomText(random, 1 + static_cast<int>(random() % 3));
    const int n = static_cast<int>(committed.size());
    bench.Observe(*whole, 0, committed, processed, n);
    bench.Observe(*rest, 0, committed, processed, n, kCut);
    processed += n;
  }
}

TEST_P(HeadDrafterTest, BeyondItsContextItDraftsNothing) {
  HeadDrafterBench bench(GetParam(), 32, 8);
  std::mt19937 random(13);
  auto text = RandomText(random, 10);
  auto drafter = bench.Make();
  HeadDrafterBench::Begin(*drafter, 0, text, 0);
  bench.Observe(*drafter, 0, {}, 0, 9);
  int processed = 9;
  for (int round = 0; round < 60; ++round) {
    const auto drafts = HeadDrafterBench::Propose(*drafter, 0, 4);
    const int rows = processed + (bench.eagle() ? 0 : 1);  // the head's rows without drafts
    EXPECT_EQ(static_cast<int>(drafts.tokens.size()), std::clamp(32 - rows + 1, 0, 4))
        << "after " << processed;
    const auto committed = RandomText(random, 1);
    text.push_back(committed[0]);
    bench.Observe(*drafter, 0, committed, processed, 1);
    ++processed;
  }
}

TEST_P(HeadDrafterTest, TellsWhatItReadsBeforeItDrafts) {
  HeadDrafterBench bench(GetParam());
  bench.ExpectReadsFirst(*bench.Make(), bench.eagle() ? 12 : 13);
}

INSTANTIATE_TEST_SUITE_P(Heads, HeadDrafterTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Eagle" : "Mtp"; });

}  // namespace
}  // namespace foretoken::draft
