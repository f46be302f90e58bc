// SPDX-License-Identifier: Apache-2.0
#include "draft/networks/block_drafter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "fixtures/tiny_model.h"
#include "formats/checkpoint.h"
#include "kernels/dispatch.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"

namespace foretoken::draft {
namespace {

constexpr int kMaxDraft = 6, kSequences = 2, kVocabulary = 320, kFeatureRows = 200;

struct BenchOptions {
  fixtures::TinyHeadOptions head = {};
  int positions = 128, max_rows = 24, most = kMaxDraft;
};

// A target and a drafter. The features are noise: drafts are a function of tokens and features,
// whatever these mean.
class Bench {
 public:
  explicit Bench(BenchOptions options = {}) : o_(std::move(options)) {
    const std::string folder = fixtures::TemporaryFolder();
    fixtures::TinyModelOptions target{.seed = 5, .vocab = kVocabulary};
    o_.head.target = target, o_.head.block = true, o_.head.layers = {0, 1, 2};
    target_file_ = *formats::OpenCheckpoint(fixtures::WriteTinyModel(folder, target));
    head_file_ = *formats::OpenCheckpoint(fixtures::WriteTinyHead(folder, o_.head));
    auto config = model::ConfigFromMetadata(target_file_->metadata());
    config->vocabulary = kVocabulary;
    tables_ = {.n_sequences = kSequences,
               .max_positions = o_.positions,
               .window = o_.head.window,
               .pass_rows = o_.max_rows};
    options_ = {
        .max_rows = o_.max_rows,
        .max_logit_rows = kSequences * kMaxDraft,
        .max_positions = o_.positions,
        .cache = {.n_blocks = tables_.n_blocks(), .n_window_blocks = tables_.n_window_blocks()}};
    target_ = *model::LocalRunner::Load(*target_file_, *config, options_, kernels_, pool_, {});
    width_ = 3 * target.dim;
    std::mt19937 random(9);
    std::normal_distribution<float> normal;
    features_.resize(kSequences * kFeatureRows * static_cast<std::size_t>(width_));
    for (float& x : features_) x = normal(random);
  }

  std::unique_ptr<BlockDrafter> Make() {
    auto config = *model::HeadConfigFromFile(*head_file_);
    auto head =
        model::LocalRunner::LoadHead(*head_file_, config, options_, kernels_, pool_, *target_);
    EXPECT_TRUE(head) << head.error().message;
    return std::make_unique<BlockDrafter>(std::move(*head), *config.head, tables_, kVocabulary,
                                          o_.most, kernels_);
  }

  static void Begin(BlockDrafter& drafter, SeqId seq, std::span<const Token> prompt,
                    float temperature, float p_min = 0) {
    SamplingParameters sampling;
    sampling.temperature = temperature;
    drafter.Begin({.seq = seq,
                   .prompt = prompt,
                   .max_new_tokens = 150,
                   .sampling = sampling,
                   .noise = Noise(7, static_cast<std::uint64_t>(seq)),
                   .draft_p_min = p_min});
  }

  // The target has processed positions [first, first + n) of the sequence.
  void Observe(BlockDrafter& drafter, SeqId seq, std::span<const Token> committed, int first,
               int n) {
    const Observation o{.seq = seq,
                        .committed = committed,
                        .features = features_.data() + (seq * kFeatureRows + first) * width_,
                        .n_features = n,
                        .first_position = first};
    drafter.Observe({&o, 1});
  }

 private:
  BenchOptions o_;
  std::unique_ptr<formats::Checkpoint> target_file_, head_file_;
  const kernels::Kernels& kernels_ = kernels::KernelsFor(kernels::AvailableIsas().back());
  ThreadPool pool_{1};
  kv::TablesShape tables_;
  model::RunnerOptions options_;
  std::unique_ptr<model::LocalRunner> target_;
  int width_ = 0;
  std::vector<float> features_;
};

struct Drafts {
  std::vector<Token> tokens;
  std::vector<float> laws;

  bool operator==(const Drafts& other) const {
    return tokens == other.tokens && laws.size() == other.laws.size() &&
           (laws.empty() ||
            std::memcmp(laws.data(), other.laws.data(), laws.size() * sizeof(float)) == 0);
  }
  Drafts First(std::size_t n) const {
    return {{tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n)},
            {laws.begin(),
             laws.begin() + static_cast<std::ptrdiff_t>(n * laws.size() / tokens.size())}};
  }
};

Drafts Propose(BlockDrafter& drafter, SeqId seq, int n) {
  const Ask ask{seq, n};
  round::Proposal proposal;
  drafter.Propose({&ask, 1}, {&proposal, 1});
  Drafts drafts{{proposal.tokens.begin(), proposal.tokens.end()}, {}};
  for (int i = 0; proposal.q != nullptr && i < proposal.length(); ++i)
    drafts.laws.insert(drafts.laws.end(), proposal.Law(i), proposal.Law(i) + kVocabulary);
  return drafts;
}

std::vector<Token> RandomText(std::mt19937& random, int n) {
  std::vector<Token> text(static_cast<std::size_t>(n));
  for (Token& token : text) token = 3 + static_cast<Token>(random() % 300);
  return text;
}

// The drafts after a text of 21 tokens whose features were all seen.
Drafts DraftsOf(Bench& bench, int n, float temperature = 0.8F) {
  std::mt19937 random(12);
  const auto text = RandomText(random, 21);
  auto drafter = bench.Make();
  Bench::Begin(*drafter, 0, text, temperature);
  bench.Observe(*drafter, 0, {}, 0, 20);
  return Propose(*drafter, 0, n);
}

// A window, and the rank of a transition; 0: none.
struct Kind {
  int window = 0, rank = 0;
};
void PrintTo(const Kind& kind, std::ostream* out) {
  *out << "window " << kind.window << ", rank " << kind.rank;
}

class BlockDrafterTest : public testing::TestWithParam<Kind> {};

// After any pattern of rounds the drafts equal those of a drafter that got the same text at once.
// So nothing of a block stays, and no feature is lost or shifted.
TEST_P(BlockDrafterTest, DraftsDependOnCommittedTextAndFeaturesAlone) {
  Bench bench({.head = {.window = GetParam().window, .transition_rank = GetParam().rank}});
  std::mt19937 random(11);
  for (const float temperature : {0.0F, 0.8F}) {
    auto drafter = bench.Make();
    std::vector<Token> texts[kSequences];
    int processed[kSequences] = {};
    for (SeqId seq = 0; seq < kSequences; ++seq) {
      texts[seq] = RandomText(random, 3 + 30 * seq);
      Bench::Begin(*drafter, seq, texts[seq], temperature);
      // The prompt comes in chunks; the last brings the first token.
      const int n = static_cast<int>(texts[seq].size());
      for (int at = 0; at < n; at += 7) {
        const int chunk = std::min(7, n - at);
        const auto next = at + chunk == n ? RandomText(random, 1) : std::vector<Token>();
        texts[seq].insert(texts[seq].end(), next.begin(), next.end());
        bench.Observe(*drafter, seq, next, at, chunk);
        processed[seq] = at + chunk;
      }
    }
    for (int round = 0; round < 40; ++round) {
      const SeqId seq = static_cast<SeqId>(random() % kSequences);
      std::vector<Token>& text = texts[seq];
      if (text.size() > 110) break;
      const int asked = static_cast<int>(random() % (kMaxDraft + 1));
      if (asked > 0) {
        const Drafts drafts = Propose(*drafter, seq, asked);
        ASSERT_EQ(static_cast<int>(drafts.tokens.size()), asked);
        auto fresh = bench.Make();
        Bench::Begin(*fresh, seq, text, temperature);
        bench.Observe(*fresh, seq, {}, 0, processed[seq]);
        ASSERT_TRUE(Propose(*fresh, seq, asked) == drafts)
            << "round " << round << " temperature " << temperature;
      }
      const auto committed = RandomText(random, 1 + static_cast<int>(random() % 4));
      text.insert(text.end(), committed.begin(), committed.end());
      const int n = static_cast<int>(text.size()) - 1 - processed[seq];
      bench.Observe(*drafter, seq, committed, processed[seq], n);
      processed[seq] += n;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Kinds, BlockDrafterTest,
                         testing::Values(Kind{}, Kind{.window = 12}, Kind{.rank = 16}));

TEST(BlockDrafter, SequencesOfAPassDoNotChangeEachOther) {
  Bench bench;
  std::mt19937 random(14);
  auto together = bench.Make(), alone = bench.Make();
  for (SeqId seq = 0; seq < kSequences; ++seq) {
    const auto text = RandomText(random, 9 + 14 * seq);
    for (BlockDrafter* drafter : {together.get(), alone.get()}) {
      Bench::Begin(*drafter, seq, text, 0.8F);
      bench.Observe(*drafter, seq, {}, 0, 8 + 14 * seq);
    }
  }
  const Ask asks[] = {{0, 3}, {1, 5}};
  round::Proposal proposals[kSequences];
  together->Propose(asks, proposals);
  for (SeqId seq = 0; seq < kSequences; ++seq) {
    const Drafts want = Propose(*alone, seq, asks[seq].max_tokens);
    const auto& got = proposals[seq];
    ASSERT_EQ(std::vector<Token>(got.tokens.begin(), got.tokens.end()), want.tokens);
    for (int i = 0; i < got.length(); ++i)
      EXPECT_EQ(
          std::memcmp(got.Law(i), want.laws.data() + i * kVocabulary, kVocabulary * sizeof(float)),
          0);
  }
}

TEST(BlockDrafter, AShortProposalIsTheBeginningOfALongOne) {
  Bench bench;
  const Drafts whole = DraftsOf(bench, kMaxDraft);
  ASSERT_EQ(whole.tokens.size(), std::size_t{kMaxDraft});
  for (int n = 1; n < kMaxDraft; ++n)
    EXPECT_TRUE(DraftsOf(bench, n) == whole.First(static_cast<std::size_t>(n))) << n;
}

TEST(BlockDrafter, AProposalTakesTwoPassesWhateverItsLength) {
  Bench bench;
  std::mt19937 random(15);
  const auto text = RandomText(random, 12);
  for (const int n : {1, kMaxDraft}) {
    auto drafter = bench.Make();
    Bench::Begin(*drafter, 0, text, 0);
    bench.Observe(*drafter, 0, {}, 0, 11);
    Propose(*drafter, 0, n);
    EXPECT_EQ(drafter->TakeWork().forwards, 2) << n;
    EXPECT_EQ(drafter->cached(0), 11);
  }
}

// The first draft's row sees the rows behind it, unless the file says that it does not.
TEST(BlockDrafter, RowsSeeLaterRowsUnlessTheFileIsCausal) {
  for (const bool causal : {false, true}) {
    Bench wide({.head = {.causal = causal}}), narrow({.head = {.causal = causal}, .most = 1});
    EXPECT_EQ(DraftsOf(wide, 1) == DraftsOf(narrow, 1), causal);
  }
}

TEST(BlockDrafter, AWindowHidesWhatLiesBeforeItAndNothingElse) {
  Bench all, wide({.head = {.window = 21}}), narrow({.head = {.window = 20}});
  EXPECT_TRUE(DraftsOf(all, 1, 0) == DraftsOf(wide, 1, 0));
  // The rows behind the first draft's also see one position less of the text each.
  Bench two({.most = 1}), two_wide({.head = {.window = 22}, .most = 1}),
      two_narrow({.head = {.window = 20}, .most = 1});
  EXPECT_TRUE(DraftsOf(two, 1) == DraftsOf(two_wide, 1));
  EXPECT_FALSE(DraftsOf(two, 1) == DraftsOf(two_narrow, 1));
}

TEST(BlockDrafter, AFeatureChangesTheDrafts) {
  Bench bench;
  std::mt19937 random(12);
  const auto text = RandomText(random, 20);
  auto a = bench.Make();
  for (SeqId seq = 0; seq < kSequences; ++seq) {
    Bench::Begin(*a, seq, text, 0.8F);
    bench.Observe(*a, seq, {}, 0, 19);  // the same tokens, other features
  }
  EXPECT_FALSE(Propose(*a, 0, 4) == Propose(*a, 1, 4));
}

// The drafts up to the first whose best token is less probable, and no token after it.
TEST(BlockDrafter, ADraftEndsBeforeTheFirstUnsurePosition) {
  Bench bench;
  const Drafts whole = DraftsOf(bench, kMaxDraft);
  std::mt19937 random(12);
  const auto text = RandomText(random, 21);
  const auto best = [&](std::size_t i) {
    const auto law = whole.laws.begin() + static_cast<std::ptrdiff_t>(i * kVocabulary);
    return *std::max_element(law, law + kVocabulary);
  };
  for (std::size_t at = 0; at < kMaxDraft; ++at) {
    const float p_min = std::nextafter(best(at), 1.0F);
    std::size_t n = 0;
    while (n < kMaxDraft && best(n) >= p_min) ++n;
    auto drafter = bench.Make();
    Bench::Begin(*drafter, 0, text, 0.8F, p_min);
    bench.Observe(*drafter, 0, {}, 0, 20);
    EXPECT_TRUE(Propose(*drafter, 0, kMaxDraft) == whole.First(n)) << at;
  }
}

// The logits of a proposal, and its drafts.
struct Rows {
  std::vector<Token> tokens;
  std::vector<float> logits;
};

Rows LogitsOf(const fixtures::TinyHeadOptions& head, float p_min = 0) {
  Bench bench({.head = head});
  std::mt19937 random(12);
  const auto text = RandomText(random, 21);
  auto drafter = bench.Make();
  Bench::Begin(*drafter, 0, text, 0, p_min);
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
  Bench bench;
  std::mt19937 random(16);
  const auto text = RandomText(random, 12);
  auto drafter = bench.Make();
  Bench::Begin(*drafter, 0, text, 0);
  EXPECT_TRUE(Propose(*drafter, 0, 4).tokens.empty());
  bench.Observe(*drafter, 0, {}, 0, 10);
  EXPECT_TRUE(Propose(*drafter, 0, 4).tokens.empty());
  bench.Observe(*drafter, 0, {}, 10, 1);
  EXPECT_EQ(Propose(*drafter, 0, 4).tokens.size(), 4u);
}

TEST(BlockDrafter, BeyondItsContextItDraftsNothing) {
  Bench bench({.positions = 32, .max_rows = 16});
  std::mt19937 random(13);
  auto text = RandomText(random, 10);
  auto drafter = bench.Make();
  Bench::Begin(*drafter, 0, text, 0);
  bench.Observe(*drafter, 0, {}, 0, 9);
  for (int processed = 9; processed < 60; ++processed) {
    const auto drafts = Propose(*drafter, 0, 4);
    EXPECT_EQ(static_cast<int>(drafts.tokens.size()), std::clamp(32 - processed - 1, 0, 4))
        << "after " << processed;
    const auto committed = RandomText(random, 1);
    bench.Observe(*drafter, 0, committed, processed, 1);
  }
}

}  // namespace
}  // namespace foretoken::draft
