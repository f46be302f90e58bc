// SPDX-License-Identifier: Apache-2.0
#include "draft/networks/output_views.h"

#include <algorithm>

#include "draft/networks/head_bench_testing.h"
#include "draft/networks/head_drafter.h"
#include "fixtures/tiny_model.h"

namespace foretoken::draft {
namespace {

constexpr float kTemperature = 0.9F;

// Tokens of the reduced output: every third, in runs and alone.
std::vector<Token> Subset() {
  std::vector<Token> tokens;
  for (Token token = 0; token < HeadBench::kVocabulary; ++token)
    if (token % 3 == 0 || token / 40 == 2) tokens.push_back(token);
  return tokens;
}

// A head with a reduced output, which it takes from its own output head or from the target's.
class ViewBench : public HeadBench {
 public:
  explicit ViewBench(bool eagle, bool own_output = false) : HeadBench(Files(eagle, own_output)) {}

  std::unique_ptr<Drafter> Make() {
    return std::make_unique<HeadDrafter>(LoadHead(), config(), tables(), kVocabulary, kMaxDraft,
                                         kernels());
  }

 private:
  static Options Files(bool eagle, bool own_output) {
    const std::string folder = fixtures::TemporaryFolder();
    const fixtures::TinyModelOptions target{.seed = 15, .vocab = kVocabulary};
    fixtures::TinyHeadOptions head{.target = target, .eagle = eagle};
    head.own_output = own_output;
    return {.target = fixtures::WriteTinyModel(folder, target),
            .head = fixtures::WriteTinyHead(folder, head),
            .reduced = Subset()};
  }
};

std::vector<Token> ProposeInView(Drafter& drafter, int n) {
  return ViewBench::Propose(drafter, 0, n).tokens;
}

class OutputViewsTest : public testing::TestWithParam<bool> {};  // whether it is an EAGLE-3 head

// The reduced output has the very logits of the whole one, for its own tokens.
TEST_P(OutputViewsTest, TheReducedOutputIsAPartOfTheWholeOne) {
  for (const bool own_output : {false, true}) {
    if (own_output && !GetParam()) continue;  // only EAGLE-3 fixtures have one
    ViewBench bench(GetParam(), own_output);
    const auto head = bench.LoadHead();
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
    const std::vector<float> whole(logits, logits + ViewBench::kVocabulary);
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
  ViewBench bench(GetParam());
  std::mt19937 random(11);
  OutputViews views = ViewsOf(bench.Make(), 1);
  std::vector<Token> text = RandomText(random, 9);
  for (Drafter* view : {views.whole.get(), views.reduced.get()})
    ViewBench::Begin(*view, 0, text, kTemperature);
  const std::vector<Token> subset = Subset();
  int processed = 0, outside = 0;
  for (int round = 0; round < 24; ++round) {
    const auto committed = RandomText(random, 1 + static_cast<int>(random() % 3));
    text.insert(text.end(), committed.begin(), committed.end());
    const int n = static_cast<int>(text.size()) - 1 - processed;
    for (Drafter* view : {views.whole.get(), views.reduced.get()})
      bench.Observe(*view, 0, committed, processed, n);
    processed += n;
    const bool reduced = random() % 2 == 0;
    Drafter& view = reduced ? *views.reduced : *views.whole;
    const auto drafts = ProposeInView(view, 4);
    ASSERT_EQ(drafts.size(), 4U);
    auto fresh = bench.Make();
    fresh->UseReducedOutput(reduced);
    ViewBench::Begin(*fresh, 0, text, kTemperature);
    bench.Observe(*fresh, 0, {}, 0, processed);
    EXPECT_EQ(drafts, ProposeInView(*fresh, 4)) << "round " << round;
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
  ViewBench bench(GetParam());
  std::mt19937 random(13);
  OutputViews views = ViewsOf(bench.Make(), 1);
  const auto text = RandomText(random, 12);
  for (Drafter* view : {views.reduced.get(), views.whole.get(), views.reduced.get()}) {
    ViewBench::Begin(*view, 0, text, kTemperature);
    bench.Observe(*view, 0, {}, 0, 11);
    EXPECT_EQ(ProposeInView(*view, 3).size(), 3U);
    view->End(0);
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, OutputViewsTest, testing::Bool(), [](const auto& kind) {
  return std::string(kind.param ? "Eagle" : "Mtp");
});

}  // namespace
}  // namespace foretoken::draft
