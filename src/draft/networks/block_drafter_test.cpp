// SPDX-License-Identifier: Apache-2.0
#include "draft/networks/block_drafter.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "draft/networks/head_bench_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken::draft {
namespace {

constexpr int kMaxDraft = HeadBench::kMaxDraft, kSequences = HeadBench::kSequences,
              kVocabulary = HeadBench::kVocabulary;

struct BenchOptions {
  fixtures::TinyHeadOptions head = {};
  int positions = 128, max_rows = 24, most = kMaxDraft;
};

class BlockBench : public HeadBench {
 public:
  explicit BlockBench(BenchOptions options = {}) : HeadBench(Files(options)), most_(options.most) {}

  std::unique_ptr<BlockDrafter> Make() {
    return std::make_unique<BlockDrafter>(LoadHead(), config(), tables(), kVocabulary, most_,
                                          kernels());
  }

 private:
  static Options Files(const BenchOptions& options) {
    const std::string folder = fixtures::TemporaryFolder();
    fixtures::TinyHeadOptions head = options.head;
    head.target = {.seed = 5, .vocab = kVocabulary};
    head.block = true, head.layers = {0, 1, 2};
    return {.target = fixtures::WriteTinyModel(folder, head.target),
            .head = fixtures::WriteTinyHead(folder, head),
            .positions = options.positions,
            .max_rows = options.max_rows,
            .window = head.window};
  }
  int most_;
};

Drafts ProposeBlock(BlockDrafter& drafter, SeqId seq, int n) {
  return HeadBench::Propose(drafter, seq, n);
}

// The drafts after a text of 21 tokens whose features were all seen.
Drafts DraftsOf(BlockBench& bench, int n, float temperature = 0.8F) {
  std::mt19937 random(12);
  const auto text = RandomText(random, 21);
  auto drafter = bench.Make();
  BlockBench::Begin(*drafter, 0, text, temperature);
  bench.Observe(*drafter, 0, {}, 0, 20);
  return ProposeBlock(*drafter, 0, n);
}

// A window, the rank of a transition, the candidates of a selector; 0: none. The latter has convolutions,
// too.
struct BlockKind {
  int window = 0, rank = 0, candidates = 0;
};
void PrintTo(const BlockKind& kind, std::ostream* out) {
  *out << "window " << kind.window << ", rank " << kind.rank << ", candidates " << kind.candidates;
}
fixtures::TinyHeadOptions HeadOf(const BlockKind& kind) {
  return {.window = kind.window,
          .transition_rank = kind.rank,
          .taps = kind.candidates == 0 ? 0 : 2,
          .n_candidates = kind.candidates};
}

class BlockDrafterTest : public testing::TestWithParam<BlockKind> {};

TEST_P(BlockDrafterTest, DraftsDependOnCommittedTextAndFeaturesAlone) {
  BlockBench bench({.head = HeadOf(GetParam())});
  bench.ExpectDraftsOfTextAndFeaturesAlone([&bench] { return bench.Make(); });
}
INSTANTIATE_TEST_SUITE_P(Kinds, BlockDrafterTest,
                         testing::Values(BlockKind{}, BlockKind{.window = 12},
                                         BlockKind{.rank = 16},
                                         BlockKind{.window = 12, .candidates = 5}));

TEST_P(BlockDrafterTest, TellsWhatItReadsBeforeItDrafts) {
  BlockBench bench({.head = HeadOf(GetParam())});
  bench.ExpectReadsFirst(*bench.Make(), 12);
}

TEST_P(BlockDrafterTest, SequencesOfAPassDoNotChangeEachOther) {
  BlockBench bench({.head = HeadOf(GetParam())});
  std::mt19937 random(14);
  auto together = bench.Make(), alone = bench.Make();
  for (SeqId seq = 0; seq < kSequences; ++seq) {
    const auto text = RandomText(random, 9 + 14 * seq);
    for (BlockDrafter* drafter : {together.get(), alone.get()}) {
      BlockBench::Begin(*drafter, seq, text, 0.8F);
      bench.Observe(*drafter, seq, {}, 0, 8 + 14 * seq);
    }
  }
  const Ask asks[] = {{0, 3}, {1, 5}};
  round::Proposal proposals[kSequences];
  together->Propose(asks, proposals);
  for (SeqId seq = 0; seq < kSequences; ++seq) {
    const Drafts want = ProposeBlock(*alone, seq, asks[seq].max_tokens);
    const auto& got = proposals[seq];
    ASSERT_EQ(std::vector<Token>(got.tokens.begin(), got.tokens.end()), want.tokens);
    for (int i = 0; i < got.length(); ++i)
      EXPECT_EQ(std::memcmp(got.Distribution(i), want.distributions.data() + i * kVocabulary,
                            kVocabulary * sizeof(float)),
                0);
  }
}

TEST_P(BlockDrafterTest, AShortProposalIsTheBeginningOfALongOne) {
  BlockBench bench({.head = HeadOf(GetParam())});
  const Drafts whole = DraftsOf(bench, kMaxDraft);
  ASSERT_EQ(whole.tokens.size(), std::size_t{kMaxDraft});
  for (int n = 1; n < kMaxDraft; ++n)
    EXPECT_TRUE(DraftsOf(bench, n) == whole.First(static_cast<std::size_t>(n))) << n;
}

// With a transition it takes one more for each draft.
class BlocksInOnePass : public testing::TestWithParam<BlockKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, BlocksInOnePass,
                         testing::Values(BlockKind{}, BlockKind{.candidates = 5}));

TEST_P(BlocksInOnePass, AProposalTakesTwoPassesWhateverItsLength) {
  BlockBench bench({.head = HeadOf(GetParam())});
  std::mt19937 random(15);
  const auto text = RandomText(random, 12);
  for (const int n : {1, kMaxDraft}) {
    auto drafter = bench.Make();
    BlockBench::Begin(*drafter, 0, text, 0);
    bench.Observe(*drafter, 0, {}, 0, 11);
    ProposeBlock(*drafter, 0, n);
    EXPECT_EQ(drafter->TakeWork().forwards, 2) << n;
    EXPECT_EQ(drafter->cached(0), 11);
  }
}

// The first draft's row sees the rows behind it, unless the file says that it does not.
TEST(BlockDrafter, RowsSeeLaterRowsUnlessTheFileIsCausal) {
  for (const bool causal : {false, true}) {
    BlockBench wide({.head = {.causal = causal}}), narrow({.head = {.causal = causal}, .most = 1});
    EXPECT_EQ(DraftsOf(wide, 1) == DraftsOf(narrow, 1), causal);
  }
}

TEST(BlockDrafter, AWindowHidesWhatLiesBeforeItAndNothingElse) {
  BlockBench all, wide({.head = {.window = 21}}), narrow({.head = {.window = 20}});
  EXPECT_TRUE(DraftsOf(all, 1, 0) == DraftsOf(wide, 1, 0));
  // The rows behind the first draft's also see one position less of the text each.
  BlockBench two({.most = 1}), two_wide({.head = {.window = 22}, .most = 1}),
      two_narrow({.head = {.window = 20}, .most = 1});
  EXPECT_TRUE(DraftsOf(two, 1) == DraftsOf(two_wide, 1));
  EXPECT_FALSE(DraftsOf(two, 1) == DraftsOf(two_narrow, 1));
}

TEST(BlockDrafter, AFeatureChangesTheDrafts) {
  BlockBench bench;
  std::mt19937 random(12);
  const auto text = RandomText(random, 20);
  auto a = bench.Make();
  for (SeqId seq = 0; seq < kSequences; ++seq) {
    BlockBench::Begin(*a, seq, text, 0.8F);
    bench.Observe(*a, seq, {}, 0, 19);  // the same tokens, other features
  }
  EXPECT_FALSE(ProposeBlock(*a, 0, 4) == ProposeBlock(*a, 1, 4));
}

// The drafts up to the first whose best token is less probable, and no token after it.
TEST(BlockDrafter, ADraftEndsBeforeTheFirstUnsurePosition) {
  BlockBench bench;
  const Drafts whole = DraftsOf(bench, kMaxDraft);
  std::mt19937 random(12);
  const auto text = RandomText(random, 21);
  const auto best = [&](std::size_t i) {
    const auto distribution =
        whole.distributions.begin() + static_cast<std::ptrdiff_t>(i * kVocabulary);
    return *std::max_element(distribution, distribution + kVocabulary);
  };
  for (std::size_t at = 0; at < kMaxDraft; ++at) {
    const float p_min = std::nextafter(best(at), 1.0F);
    std::size_t n = 0;
    while (n < kMaxDraft && best(n) >= p_min) ++n;
    auto drafter = bench.Make();
    BlockBench::Begin(*drafter, 0, text, 0.8F, p_min);
    bench.Observe(*drafter, 0, {}, 0, 20);
    EXPECT_TRUE(ProposeBlock(*drafter, 0, kMaxDraft) == whole.First(n)) << at;
  }
}

// The logits of a proposal, and its drafts.
struct Rows {
  std::vector<Token> tokens;
  std::vector<float> logits;
};

Rows LogitsOf(const fixtures::TinyHeadOptions& head, float p_min = 0) {
  BlockBench bench({.head = head});
  std::mt19937 random(12);
  const auto text = RandomText(random, 21);
  auto drafter = bench.Make();
  BlockBench::Begin(*drafter, 0, text, 0, p_min);
  bench.Observe(*drafter, 0, {}, 0, 20);
  const Ask ask{.seq = 0, .max_tokens = kMaxDraft, .with_logits = true};
  round::Proposal proposal;
  drafter->Propose({&ask, 1}, {&proposal, 1});
  const auto n = static_cast<std::size_t>(proposal.length()) * kVocabulary;
  return {{proposal.tokens.begin(), proposal.tokens.end()}, {proposal.logits, proposal.logits + n}};
}

std::vector<float> MatrixOf(const formats::Checkpoint& file, const char* name) {
  const formats::TensorView& t = *file.Find(name);
  const auto* const values = reinterpret_cast<const float*>(t.data.data());
  return {values, values + t.n_values()};
}

// The logits of a draft are those of the block's row and what the token before it adds.
TEST(BlockDrafter, ATransitionAddsWhatTheTokenBeforeADraftSays) {
  constexpr int kRank = 16;
  const fixtures::TinyHeadOptions head{.target = {.seed = 5, .vocab = kVocabulary},
                                       .block = true,
                                       .transition_rank = kRank,
                                       .from_anchor = false};
  const Rows plain = LogitsOf({}), rows = LogitsOf(head);
  ASSERT_EQ(rows.tokens.size(), std::size_t{kMaxDraft});
  const auto file =
      formats::OpenCheckpoint(fixtures::WriteTinyHead(fixtures::TemporaryFolder(), head));
  const auto w1 = MatrixOf(**file, "markov_w1.weight"), w2 = MatrixOf(**file, "markov_w2.weight");
  std::mt19937 random(12);
  auto before = static_cast<std::size_t>(RandomText(random, 21).back());
  double largest = 0;
  for (std::size_t draft = 0; draft < rows.tokens.size(); ++draft) {
    for (std::size_t token = 0; token < kVocabulary; ++token) {
      const std::size_t at = draft * kVocabulary + token;
      double want = static_cast<double>(plain.logits[at]);
      for (std::size_t i = 0; i < kRank; ++i)
        want += static_cast<double>(w2[token * kRank + i]) *
                static_cast<double>(w1[before * kRank + i]);
      largest = std::max(largest, std::abs(static_cast<double>(rows.logits[at]) - want));
    }
    before = static_cast<std::size_t>(rows.tokens[draft]);
  }
  EXPECT_LT(largest, 1e-4);
  EXPECT_NE(rows.logits, plain.logits);
}

// Without what the token before says, the candidates keep their logits, and others have none.
TEST(BlockDrafter, ASelectorLeavesTheBestColumnsOfARow) {
  constexpr std::size_t kCandidates = 7;
  const Rows plain = LogitsOf({}), rows = LogitsOf({.n_candidates = kCandidates, .selection = 0});
  ASSERT_EQ(rows.tokens, plain.tokens);
  for (std::size_t draft = 0; draft < kMaxDraft; ++draft) {
    const auto* const all = plain.logits.data() + draft * kVocabulary;
    const auto* const some = rows.logits.data() + draft * kVocabulary;
    std::vector<float> sorted(all, all + kVocabulary);
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (std::size_t token = 0; token < kVocabulary; ++token)
      EXPECT_EQ(some[token], all[token] >= sorted[kCandidates - 1]
                                 ? all[token]
                                 : -std::numeric_limits<float>::infinity())
          << draft << ", " << token;
  }
}

TEST(BlockDrafter, ASelectorsCandidatesDependOnTheTokenBefore) {
  const Rows plain = LogitsOf({}), rows = LogitsOf({.n_candidates = 7});
  EXPECT_NE(rows.tokens, plain.tokens);
}

// Then as many rows give one draft more.
TEST(BlockDrafter, TheNewestTokensRowMayGiveTheFirstDraft) {
  for (const bool from_anchor : {true, false})
    EXPECT_EQ(LogitsOf({.block_size = 4, .transition_rank = 16, .from_anchor = from_anchor})
                  .tokens.size(),
              from_anchor ? 4u : 3u);
}

// Certainties are a function of the text and of the drafts before: a draft ends before the first that
// is too small, and without such an end it is the same.
TEST(BlockDrafter, ACertaintyDecidesWhereADraftEnds) {
  const fixtures::TinyHeadOptions head{.transition_rank = 32, .certainty = true};
  const Rows whole = LogitsOf(head);
  ASSERT_EQ(whole.tokens.size(), std::size_t{kMaxDraft});
  std::set<std::size_t> lengths;
  for (float p_min = 0.02F; p_min < 1; p_min += 0.02F) {
    const Rows rows = LogitsOf(head, p_min);
    lengths.insert(rows.tokens.size());
    EXPECT_TRUE(std::equal(rows.tokens.begin(), rows.tokens.end(), whole.tokens.begin()));
  }
  EXPECT_GT(lengths.size(), 1u);
}

TEST(BlockDrafter, WithoutAllFeaturesItDraftsNothing) {
  BlockBench bench;
  std::mt19937 random(16);
  const auto text = RandomText(random, 12);
  auto drafter = bench.Make();
  BlockBench::Begin(*drafter, 0, text, 0);
  EXPECT_TRUE(ProposeBlock(*drafter, 0, 4).tokens.empty());
  bench.Observe(*drafter, 0, {}, 0, 10);
  EXPECT_TRUE(ProposeBlock(*drafter, 0, 4).tokens.empty());
  bench.Observe(*drafter, 0, {}, 10, 1);
  EXPECT_EQ(ProposeBlock(*drafter, 0, 4).tokens.size(), 4u);
}

TEST(BlockDrafter, BeyondItsContextItDraftsNothing) {
  BlockBench bench({.positions = 32, .max_rows = 16});
  std::mt19937 random(13);
  auto text = RandomText(random, 10);
  auto drafter = bench.Make();
  BlockBench::Begin(*drafter, 0, text, 0);
  bench.Observe(*drafter, 0, {}, 0, 9);
  for (int processed = 9; processed < 60; ++processed) {
    const auto drafts = ProposeBlock(*drafter, 0, 4);
    EXPECT_EQ(static_cast<int>(drafts.tokens.size()), std::clamp(32 - processed - 1, 0, 4))
        << "after " << processed;
    const auto committed = RandomText(random, 1);
    bench.Observe(*drafter, 0, committed, processed, 1);
  }
}

}  // namespace
}  // namespace foretoken::draft
