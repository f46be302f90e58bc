// SPDX-License-Identifier: Apache-2.0
#include "draft/networks/output_views.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "draft/networks/head_drafter.h"
#include "fixtures/tiny_model.h"
#include "formats/checkpoint.h"
#include "kernels/dispatch.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"

namespace foretoken::draft {
namespace {

constexpr int kMaxDraft = 6, kVocabulary = 320, kPositions = 128;

// Tokens of the reduced output: every third, in runs and alone.
std::vector<Token> Subset() {
  std::vector<Token> tokens;
  for (Token token = 0; token < kVocabulary; ++token)
    if (token % 3 == 0 || token / 40 == 2) tokens.push_back(token);
  return tokens;
}

// A head with a reduced output, which it takes from its own output head or from the target's.
class Bench {
 public:
  explicit Bench(bool eagle, bool own_output = false) {
    const std::string folder = fixtures::TemporaryFolder();
    const fixtures::TinyModelOptions options{.seed = 15, .vocab = kVocabulary};
    fixtures::TinyHeadOptions head{.target = options, .eagle = eagle};
    head.own_output = own_output;
    target_file_ = *formats::OpenCheckpoint(fixtures::WriteTinyModel(folder, options));
    head_file_ = *formats::OpenCheckpoint(fixtures::WriteTinyHead(folder, head));
    auto config = *model::ConfigFromMetadata(target_file_->metadata());
    config.vocabulary = kVocabulary;
    options_ = {.max_rows = 16,
                .max_logit_rows = 1,
                .max_positions = kPositions,
                .cache = {.n_blocks = tables_.n_blocks()}};
    target_ = *model::LocalRunner::Load(*target_file_, config, options_, kernels_, pool_, {});
    width_ = (eagle ? 3 : 1) * options.dim;
    std::mt19937 random(9);
    std::normal_distribution<float> normal;
    features_.resize(kPositions * static_cast<std::size_t>(width_));
    for (float& x : features_) x = normal(random);
  }

  std::unique_ptr<model::LocalRunner> Head() {
    model::RunnerOptions options = options_;
    options.output_tokens = Subset();
    auto config = *model::HeadConfigFromFile(*head_file_);
    return *model::LocalRunner::LoadHead(*head_file_, config, options, kernels_, pool_, *target_);
  }
  std::unique_ptr<Drafter> Make() {
    return std::make_unique<HeadDrafter>(Head(), *model::HeadConfigFromFile(*head_file_)->head,
                                         tables_, kVocabulary, kMaxDraft, kernels_);
  }

  void Begin(Drafter& drafter, std::span<const Token> prompt) const {
    SamplingParameters sampling;
    sampling.temperature = 0.9F;
    drafter.Begin(
        {.prompt = prompt, .max_new_tokens = 100, .sampling = sampling, .noise = Noise(7, 1)});
  }
  // The target has processed n positions from `first` on.
  void Observe(Drafter& drafter, std::span<const Token> committed, int first, int n) const {
    const Observation o{.committed = committed,
                        .features = features_.data() + first * width_,
                        .n_features = n,
                        .first_position = first};
    drafter.Observe({&o, 1});
  }
  const float* features() const { return features_.data(); }

 private:
  std::unique_ptr<formats::Checkpoint> target_file_, head_file_;
  const kernels::Kernels& kernels_ = kernels::KernelsFor(kernels::AvailableIsas().back());
  ThreadPool pool_{1};
  const kv::TablesShape tables_{.n_sequences = 1, .max_positions = kPositions};
  model::RunnerOptions options_;
  std::unique_ptr<model::LocalRunner> target_;
  int width_ = 0;
  std::vector<float> features_;
};

std::vector<Token> Propose(Drafter& drafter, int n) {
  const Ask ask{0, n};
  round::Proposal proposal;
  drafter.Propose({&ask, 1}, {&proposal, 1});
  return {proposal.tokens.begin(), proposal.tokens.end()};
}

std::vector<Token> RandomText(std::mt19937& random, int n) {
  std::vector<Token> text(static_cast<std::size_t>(n));
  for (Token& token : text) token = 3 + static_cast<Token>(random() % 300);
  return text;
}

class OutputViewsTest : public testing::TestWithParam<bool> {};  // whether it is an EAGLE-3 head

// The reduced output has the very logits of the whole one, for its own tokens.
TEST_P(OutputViewsTest, TheReducedOutputIsAPartOfTheWholeOne) {
  for (const bool own_output : {false, true}) {
    if (own_output && !GetParam()) continue;  // only EAGLE-3 fixtures have one
    Bench bench(GetParam(), own_output);
    const auto head = bench.Head();
    const std::vector<Token> subset = Subset(), tokens = {5, 6, 7, 8};
    EXPECT_TRUE(std::equal(subset.begin(), subset.end(), head->info().reduced_tokens.begin(),
                           head->info().reduced_tokens.end()));
    const std::vector<int> rows = {3};
    const std::vector<std::int32_t> blocks = {0, 1, 2, 3};
    const kv::Segment segment = {
        .row_begin = 0, .n_rows = 4, .first_position = 0, .blocks = blocks};
    model::Pass pass = {.tokens = tokens,
                        .segments = {&segment, 1},
                        .logit_rows = rows,
                        .features = bench.features()};
    const float* logits = head->Run(pass).Logits(0);
    const std::vector<float> whole(logits, logits + kVocabulary);
    pass.reduced = true;
    const model::PassResult& result = head->Run(pass);
    EXPECT_TRUE(result.Finite(0));
    for (std::size_t i = 0; i < subset.size(); ++i)
      EXPECT_EQ(std::memcmp(&result.Logits(0)[i], &whole[static_cast<std::size_t>(subset[i])], 4),
                0)
          << subset[i];
  }
}

// Whichever of the two drafted before: each drafts as if it had always drafted alone.
TEST_P(OutputViewsTest, EitherMayDraftInAnyRound) {
  Bench bench(GetParam());
  std::mt19937 random(11);
  OutputViews views = ViewsOf(bench.Make(), 1);
  std::vector<Token> text = RandomText(random, 9);
  for (Drafter* view : {views.whole.get(), views.reduced.get()}) bench.Begin(*view, text);
  const std::vector<Token> subset = Subset();
  int processed = 0, outside = 0;
  for (int round = 0; round < 24; ++round) {
    const auto committed = RandomText(random, 1 + static_cast<int>(random() % 3));
    text.insert(text.end(), committed.begin(), committed.end());
    const int n = static_cast<int>(text.size()) - 1 - processed;
    for (Drafter* view : {views.whole.get(), views.reduced.get()})
      bench.Observe(*view, committed, processed, n);
    processed += n;
    const bool reduced = random() % 2 == 0;
    Drafter& view = reduced ? *views.reduced : *views.whole;
    const auto drafts = Propose(view, 4);
    ASSERT_EQ(drafts.size(), 4U);
    auto fresh = bench.Make();
    fresh->UseReducedOutput(reduced);
    bench.Begin(*fresh, text);
    bench.Observe(*fresh, {}, 0, processed);
    EXPECT_EQ(drafts, Propose(*fresh, 4)) << "round " << round;
    for (const Token draft : drafts) {
      const bool in = std::binary_search(subset.begin(), subset.end(), draft);
      EXPECT_TRUE(in || !reduced) << draft;
      outside += !in;
    }
  }
  EXPECT_GT(outside, 0);  // of the whole output
}

// A request may use one of them alone; the next one the other.
TEST_P(OutputViewsTest, EachServesATextAlone) {
  Bench bench(GetParam());
  std::mt19937 random(13);
  OutputViews views = ViewsOf(bench.Make(), 1);
  const auto text = RandomText(random, 12);
  for (Drafter* view : {views.reduced.get(), views.whole.get(), views.reduced.get()}) {
    bench.Begin(*view, text);
    bench.Observe(*view, {}, 0, 11);
    EXPECT_EQ(Propose(*view, 3).size(), 3U);
    view->End(0);
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, OutputViewsTest, testing::Bool(), [](const auto& kind) {
  return std::string(kind.param ? "Eagle" : "Mtp");
});

}  // namespace
}  // namespace foretoken::draft
