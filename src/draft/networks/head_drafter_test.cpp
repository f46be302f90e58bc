// SPDX-License-Identifier: Apache-2.0
#include "draft/networks/head_drafter.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "fixtures/tiny_model.h"
#include "formats/checkpoint.h"
#include "kernels/dispatch.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"

namespace foretoken::draft {
namespace {

constexpr int kMaxDraft = 6, kSequences = 2;

// A target and one of its heads. The features are noise: a head's drafts are a function of tokens
// and features, whatever these mean.
class Bench {
 public:
  explicit Bench(bool eagle, int positions = 128, int max_rows = 16) : eagle_(eagle) {
    const std::string folder = fixtures::TemporaryFolder();
    fixtures::TinyModelOptions options{.seed = 5};
    fixtures::TinyHeadOptions head{.target = options, .eagle = eagle};
    if (eagle) head.draft_vocabulary = 100;
    target_file_ = Open(fixtures::WriteTinyModel(folder, options));
    head_file_ = Open(fixtures::WriteTinyHead(folder, head));
    auto config = model::ConfigFromMetadata(target_file_->metadata());
    config->vocabulary = options.vocab;
    kernels_ = &kernels::KernelsFor(kernels::AvailableIsas().back());
    tables_ = {.n_sequences = kSequences, .max_positions = positions};
    options_ = {.max_rows = max_rows,
                .max_logit_rows = kSequences,
                .max_positions = positions,
                .cache = {.n_blocks = tables_.n_blocks()}};
    target_ = *model::LocalRunner::Load(*target_file_, *config, options_, *kernels_, pool_, {});
    vocabulary_ = options.vocab;
    width_ = (eagle ? 3 : 1) * options.dim;
    std::mt19937 random(9);
    std::normal_distribution<float> normal;
    features_.resize(kSequences * 200 * static_cast<std::size_t>(width_));
    for (float& x : features_) x = normal(random);
  }

  std::unique_ptr<HeadDrafter> Make() {
    auto config = *model::HeadConfigFromFile(*head_file_);
    auto head =
        model::LocalRunner::LoadHead(*head_file_, config, options_, *kernels_, pool_, *target_);
    EXPECT_TRUE(head) << head.error().message;
    return std::make_unique<HeadDrafter>(std::move(*head), *config.head, tables_, vocabulary_,
                                         kMaxDraft, *kernels_);
  }

  void Begin(HeadDrafter& drafter, SeqId seq, std::span<const Token> prompt, float temperature) {
    SamplingParameters sampling;
    sampling.temperature = temperature;
    drafter.Begin({.seq = seq,
                   .prompt = prompt,
                   .max_new_tokens = 150,
                   .sampling = sampling,
                   .noise = Noise(7, static_cast<std::uint64_t>(seq))});
  }

  // The target has processed positions [first, first + n) of the sequence; its drafter's text begins
  // `cut` positions later.
  void Observe(HeadDrafter& drafter, SeqId seq, std::span<const Token> committed, int first, int n,
               int cut = 0) {
    const Observation o{.seq = seq,
                        .committed = committed,
                        .features = features_.data() + (seq * 200 + first) * width_,
                        .n_features = n,
                        .first_position = first - cut};
    drafter.Observe({&o, 1});
  }

  bool eagle() const { return eagle_; }
  int vocabulary() const { return vocabulary_; }

 private:
  static std::unique_ptr<formats::Checkpoint> Open(const std::string& path) {
    return *formats::OpenCheckpoint(path);
  }
  bool eagle_;
  std::unique_ptr<formats::Checkpoint> target_file_, head_file_;
  const kernels::Kernels* kernels_;
  ThreadPool pool_{1};
  kv::TablesShape tables_;
  model::RunnerOptions options_;
  std::unique_ptr<model::LocalRunner> target_;
  int vocabulary_ = 0, width_ = 0;
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
};

Drafts Propose(HeadDrafter& drafter, SeqId seq, int n, int vocabulary) {
  const Ask ask{seq, n};
  round::Proposal proposal;
  drafter.Propose({&ask, 1}, {&proposal, 1});
  Drafts drafts{{proposal.tokens.begin(), proposal.tokens.end()}, {}};
  for (int i = 0; proposal.q != nullptr && i < proposal.length(); ++i)
    drafts.laws.insert(drafts.laws.end(), proposal.Law(i), proposal.Law(i) + vocabulary);
  return drafts;
}

std::vector<Token> RandomText(std::mt19937& random, int n) {
  std::vector<Token> text(static_cast<std::size_t>(n));
  for (Token& token : text) token = 3 + static_cast<Token>(random() % 300);
  return text;
}

class HeadDrafterTest : public testing::TestWithParam<bool> {};

// After any pattern of rounds the drafts equal those of a drafter that got the same text at once.
// So nothing of a rejected draft stays, and no feature is lost or shifted.
TEST_P(HeadDrafterTest, DraftsDependOnCommittedTextAndFeaturesAlone) {
  Bench bench(GetParam());
  std::mt19937 random(11);
  for (const float temperature : {0.0F, 0.8F}) {
    auto drafter = bench.Make();
    std::vector<Token> texts[kSequences];
    int processed[kSequences] = {};
    for (SeqId seq = 0; seq < kSequences; ++seq) {
      texts[seq] = RandomText(random, 3 + 20 * seq);
      bench.Begin(*drafter, seq, texts[seq], temperature);
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
        const Drafts drafts = Propose(*drafter, seq, asked, bench.vocabulary());
        ASSERT_FALSE(drafts.tokens.empty());
        auto fresh = bench.Make();
        bench.Begin(*fresh, seq, text, temperature);
        bench.Observe(*fresh, seq, {}, 0, processed[seq]);
        ASSERT_TRUE(Propose(*fresh, seq, asked, bench.vocabulary()) == drafts)
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

TEST_P(HeadDrafterTest, AFeatureChangesTheDrafts) {
  Bench bench(GetParam());
  std::mt19937 random(12);
  const auto text = RandomText(random, 20);
  auto a = bench.Make(), b = bench.Make();
  for (HeadDrafter* drafter : {a.get(), b.get()}) bench.Begin(*drafter, 0, text, 0.8F);
  bench.Begin(*b, 1, text, 0.8F);
  bench.Observe(*a, 0, {}, 0, 19);
  bench.Observe(*b, 1, {}, 0, 19);  // the same tokens, other features
  EXPECT_FALSE(Propose(*a, 0, 4, bench.vocabulary()) == Propose(*b, 1, 4, bench.vocabulary()));
}

// As after a prefix that came from a cache: the head drafts as for a text that begins behind it.
TEST_P(HeadDrafterTest, ABeginningWithoutFeaturesIsLeftOut) {
  constexpr int kCut = 12;
  Bench bench(GetParam());
  std::mt19937 random(14);
  auto text = RandomText(random, 30);
  auto whole = bench.Make(), rest = bench.Make();
  bench.Begin(*whole, 0, text, 0);
  bench.Begin(*rest, 0, std::span(text).subspan(kCut), 0);
  bench.Observe(*whole, 0, {}, kCut, 17);
  bench.Observe(*rest, 0, {}, kCut, 17, kCut);
  for (int processed = 29; processed < 60;) {
    const Drafts drafts = Propose(*whole, 0, 4, bench.vocabulary());
    ASSERT_EQ(drafts.tokens.size(), 4U);
    ASSERT_TRUE(drafts == Propose(*rest, 0, 4, bench.vocabulary())) << processed;
    const auto committed = RandomText(random, 1 + static_cast<int>(random() % 3));
    const int n = static_cast<int>(committed.size());
    bench.Observe(*whole, 0, committed, processed, n);
    bench.Observe(*rest, 0, committed, processed, n, kCut);
    processed += n;
  }
}

TEST_P(HeadDrafterTest, BeyondItsContextItDraftsNothing) {
  Bench bench(GetParam(), 32, 8);
  std::mt19937 random(13);
  auto text = RandomText(random, 10);
  auto drafter = bench.Make();
  bench.Begin(*drafter, 0, text, 0);
  bench.Observe(*drafter, 0, {}, 0, 9);
  int processed = 9;
  for (int round = 0; round < 60; ++round) {
    const auto drafts = Propose(*drafter, 0, 4, bench.vocabulary());
    const int rows = processed + (bench.eagle() ? 0 : 1);  // the head's rows without drafts
    EXPECT_EQ(static_cast<int>(drafts.tokens.size()), std::clamp(32 - rows + 1, 0, 4))
        << "after " << processed;
    const auto committed = RandomText(random, 1);
    text.push_back(committed[0]);
    bench.Observe(*drafter, 0, committed, processed, 1);
    ++processed;
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, HeadDrafterTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Eagle" : "Mtp"; });

}  // namespace
}  // namespace foretoken::draft
