// SPDX-License-Identifier: Apache-2.0
// Drafters with a network see a window of a long text (SpeculativeOptions::draft_window).

#include "draft/networks/assistant_drafter.h"
#include "draft/networks/block_drafter.h"
#include "draft/networks/draft_model.h"
#include "draft/networks/head_bench_testing.h"
#include "draft/networks/head_drafter.h"
#include "draft/networks/self_drafter.h"
#include "fixtures/tiny_model.h"
#include "kv/transaction.h"
#include "model/fake_runner_testing.h"
#include "model/seen_positions_testing.h"

namespace foretoken::draft {
namespace {

constexpr int kSeenWindow = 20, kLongText = 100;

class SeenBench : public HeadBench {
 public:
  explicit SeenBench(const fixtures::TinyHeadOptions& head) : HeadBench(Files(head)) {}

  // The most positions that a query of the drafter sees, from the beginning of its text on.
  template <typename Made>
  int MostSeen(int window) {
    const auto drafter = std::make_unique<Made>(LoadHead(), config(), tables(), kVocabulary,
                                                kMaxDraft, kernels(), window);
    std::mt19937 random(3);
    const auto text = RandomText(random, kLongText + 1);
    Begin(*drafter, 0, text, 0);
    model::SeenPositions::most = 0;
    Observe(*drafter, 0, {}, 0, kLongText);
    EXPECT_FALSE(Propose(*drafter, 0, 4).tokens.empty());
    return model::SeenPositions::most;
  }

 private:
  static Options Files(fixtures::TinyHeadOptions head) {
    const std::string folder = fixtures::TemporaryFolder();
    head.target = {.seed = 5, .vocab = kVocabulary};
    return {.target = fixtures::WriteTinyModel(folder, head.target),
            .head = fixtures::WriteTinyHead(folder, head),
            .kernels = &model::SeenPositions::Kernels()};
  }
};

TEST(DraftWindow, BoundsWhatHeadsSee) {
  for (const bool eagle : {true, false}) {
    SeenBench bench({.eagle = eagle});
    EXPECT_GE(bench.MostSeen<HeadDrafter>(0), kLongText);
    EXPECT_LE(bench.MostSeen<HeadDrafter>(kSeenWindow), kSeenWindow + 31 + 32);
  }
  SeenBench bench({.block = true, .layers = {0, 1, 2}});
  EXPECT_GE(bench.MostSeen<BlockDrafter>(0), kLongText);
  EXPECT_LE(bench.MostSeen<BlockDrafter>(kSeenWindow), kSeenWindow + 31 + 32);
}

std::unique_ptr<model::FakeRunner> FakeNetwork(const kv::TablesShape& tables) {
  return std::make_unique<model::FakeRunner>(
      model::FakeRunnerOptions{.max_rows = 16, .n_blocks = tables.n_blocks()});
}

// The window of the last pass of a proposal for a text whose positions but the newest were computed.
int WindowOfADraft(Drafter& drafter, const model::FakeRunner& network) {
  const std::vector<Token> text = {5, 9, 20, 7};
  drafter.Begin(
      {.seq = 0, .prompt = text, .max_new_tokens = 10, .sampling = {}, .noise = Noise(7, 0)});
  EXPECT_EQ(Proposed(drafter, 0, 2, 50).tokens.size(), 2U);
  return network.window;
}

// Their networks read the window of their passes.
TEST(DraftWindow, IsThatOfThePassesOfADraftModelAndOfTheTargetItself) {
  const kv::TablesShape shape{.n_sequences = 1, .max_positions = 64};
  const auto& kernels = kernels::KernelsFor(kernels::Isa::kScalar);
  const SpeculativeOptions options{.draft_window = kSeenWindow};
  auto network = FakeNetwork(shape);
  const model::FakeRunner* const of_model = network.get();
  DraftModel model(std::move(network), shape, 50, 4, kernels, true, {.pass = kSeenWindow});
  EXPECT_EQ(WindowOfADraft(model, *of_model), kSeenWindow);

  kv::BlockTables target(shape);
  const auto settings = [&](std::unique_ptr<model::Runner> runner) {
    return DrafterSettings{.options = options,
                           .max_sequences = 1,
                           .max_draft = 4,
                           .target_cache = &target,
                           .kernels = &kernels,
                           .runner = std::move(runner),
                           .tables = shape,
                           .shared = 50};
  };
  network = FakeNetwork(shape);
  kv::Segment segment{.n_rows = 3};
  {
    const std::vector<Token> text = {5, 9, 20};
    const int kept = 3;
    kv::Transaction transaction(target, {&segment, 1});
    network->Run({.tokens = text, .segments = {&segment, 1}, .logit_rows = {}});
    transaction.Commit({&kept, 1});
  }
  const model::FakeRunner* const of_target = network.get();
  SelfDrafter self(settings(std::move(network)));
  EXPECT_EQ(WindowOfADraft(self, *of_target), kSeenWindow);
}

}  // namespace
}  // namespace foretoken::draft
