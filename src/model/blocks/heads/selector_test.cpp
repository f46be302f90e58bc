// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/heads/selector.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/normal_testing.h"
#include "fixtures/tiny_model.h"
#include "kernels/dispatch.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"

namespace foretoken::model {
namespace {

constexpr int kVocabulary = 320, kCandidates = 6, kRank = 32;

// Block drafters of a target, with features that are noise.
class Bench {
 public:
  explicit Bench(fixtures::TinyHeadOptions head, int threads = 1) : pool_(threads) {
    const std::string folder = fixtures::TemporaryFolder();
    head.target = {.seed = 5, .vocab = kVocabulary};
    head.block = true, head.taps = 2, head.n_candidates = kCandidates, head.selector_rank = kRank;
    target_file_ = *formats::OpenCheckpoint(fixtures::WriteTinyModel(folder, head.target));
    file_ = *formats::OpenCheckpoint(fixtures::WriteTinyHead(folder, head));
    auto config = *ConfigFromMetadata(target_file_->metadata());
    config.vocabulary = kVocabulary;
    const RunnerOptions options = {
        .max_rows = 32, .max_logit_rows = 16, .max_positions = 64, .cache = {.n_blocks = 4}};
    target_ = *LocalRunner::Load(*target_file_, config, options, kernels_, pool_, {});
    const auto head_config = *HeadConfigFromFile(*file_);
    runner_ = *LocalRunner::LoadHead(*file_, head_config, options, kernels_, pool_, *target_);
    Inject(head_config.head->features_width());
  }

  const formats::Checkpoint& file() const { return *file_; }
  const PassResult& Block(std::span<const Token> tokens, std::span<const int> logit_rows) {
    const int half = static_cast<int>(tokens.size()) / 2;
    const std::int32_t first[] = {0, 1}, second[] = {2, 3};
    const kv::Segment segments[] = {
        {.seq = 0, .row_begin = 0, .n_rows = half, .first_position = kInjected, .blocks = first},
        {.seq = 1, .row_begin = half, .n_rows = half, .first_position = 0, .blocks = second}};
    return runner_->Run({.tokens = tokens, .segments = segments, .logit_rows = logit_rows});
  }

 private:
  static constexpr int kInjected = 12;
  void Inject(int width) {
    const std::vector<float> features = Normal(kInjected * width, 9);
    const std::vector<Token> tokens(kInjected);
    const std::int32_t blocks[] = {0, 1};
    const kv::Segment segment = {.n_rows = kInjected, .blocks = blocks};
    runner_->Run({.tokens = tokens,
                  .segments = {&segment, 1},
                  .logit_rows = {},
                  .features = features.data()});
  }

  const kernels::Kernels& kernels_ = *kernels::KernelsFromEnvironment().value();
  ThreadPool pool_;
  std::unique_ptr<formats::Checkpoint> target_file_, file_;
  std::unique_ptr<LocalRunner> target_, runner_;
};

class Table {
 public:
  Table(const formats::Checkpoint& file, const char* name) {
    const formats::TensorView& t = *file.Find(name);
    width_ = static_cast<std::size_t>(t.shape[0]);
    const auto* const values = reinterpret_cast<const float*>(t.data.data());
    values_.assign(values, values + t.n_values());
  }
  double At(std::size_t row, std::size_t i) const {
    return static_cast<double>(values_[row * width_ + i]);
  }

 private:
  std::size_t width_;
  std::vector<float> values_;
};

// Two blocks of four rows. Their first rows have no logits.
constexpr Token kTokens[] = {20, 258, 258, 258, 70, 258, 258, 258};
constexpr int kLogitRows[] = {1, 2, 3, 5, 6, 7};

void ExpectFormula(const fixtures::TinyHeadOptions& head, const std::vector<Token>& ids) {
  Bench bench(head);
  const PassResult& result = bench.Block(kTokens, kLogitRows);
  const Candidates& candidates = result.candidates;
  ASSERT_EQ(candidates.n, kCandidates);
  const Table before(bench.file(), "selector_predecessor.weight"),
      behind(bench.file(), "selector_successor.weight"),
      hidden(bench.file(), "selector_hidden.weight");
  const auto token = [&](std::int32_t column) {
    return static_cast<std::size_t>(ids.empty() ? column : ids[static_cast<std::size_t>(column)]);
  };
  const auto columns = ids.empty() ? kVocabulary : static_cast<int>(ids.size());
  for (int row = 0; row < 6; ++row) {
    const float* const logits = result.Logits(row);
    std::vector<std::int32_t> order(static_cast<std::size_t>(columns));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return logits[a] > logits[b]; });
    order.resize(kCandidates);
    const auto best = candidates.Columns(row);
    ASSERT_EQ(std::vector<std::int32_t>(best.begin(), best.end()), order) << row;
    for (int p = 0; p < kCandidates; ++p) {
      const std::size_t predecessor =
          row % 3 == 0 ? static_cast<std::size_t>(kTokens[row / 3 * 4])
                       : token(candidates.Columns(row - 1)[static_cast<std::size_t>(p)]);
      for (std::size_t c = 0; c < kCandidates; ++c) {
        double score = static_cast<double>(logits[best[c]]);
        for (std::size_t k = 0; k < kRank; ++k) {
          double gate = 0;
          for (std::size_t i = 0; i < 64; ++i)
            gate += hidden.At(k, i) * static_cast<double>(result.OwnFeature(row)[i]);
          score += before.At(predecessor, k) * gate * behind.At(token(best[c]), k);
        }
        EXPECT_NEAR(static_cast<double>(candidates.Scores(row, p)[c]), score, 2e-4)
            << row << ", " << p << ", " << c;
      }
    }
  }
}

TEST(Selector, ScoresEachPairOfCandidates) {
  ExpectFormula({}, {});
}

// Its tables are of all tokens, its output head of every other one.
TEST(Selector, KnowsTheTokensOfTheColumns) {
  std::vector<Token> ids;
  for (Token id = 1; id < 240; id += 2) ids.push_back(id);
  ExpectFormula({.draft_vocabulary = 120}, ids);
}

TEST(Selector, GivesTheSameBitsWhateverTheThreads) {
  Bench one({}), three({}, 3);
  const Candidates a = one.Block(kTokens, kLogitRows).candidates,
                   b = three.Block(kTokens, kLogitRows).candidates;
  EXPECT_TRUE(std::equal(a.columns, a.columns + 6 * kCandidates, b.columns));
  EXPECT_TRUE(std::equal(a.scores, a.scores + 6 * kCandidates * kCandidates, b.scores));
}

}  // namespace
}  // namespace foretoken::model
