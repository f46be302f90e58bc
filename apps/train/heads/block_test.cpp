// SPDX-License-Identifier: Apache-2.0
// The engine reads the file of a block drafter and drafts as the trainer's blocks do.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <random>

#include "base/failure_testing.h"
#include "base/machine/thread_pool.h"
#include "fixtures/tiny_model.h"
#include "formats/checkpoint.h"
#include "kernels/dispatch.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"
#include "train/heads/block_network.h"
#include "train/heads/head_task.h"

namespace foretoken::train {
namespace {

using torch::Tensor;

constexpr int kBlockTestSize = 5, kBlockTestLength = 40;  // of a block; of the text

class BlockAgreement : public testing::TestWithParam<const char*> {
 protected:
  BlockAgreement() : folder_(fixtures::TemporaryFolder()) {
    fixtures::TinyModelOptions target = fixtures::SmallestOf(GetParam());
    target.seed = 3, target.window = 0;
    options_.kind = TrainedHead::kBlock;
    options_.target = fixtures::WriteTinyModel(folder_, target);
    options_.text = {folder_ + "/text.txt"};
    options_.block_size = kBlockTestSize, options_.blocks = 2, options_.mask = 7;
    options_.type = FileType::kF32;
    std::ofstream out(folder_ + "/text.txt");
    for (int i = 0; i < 3000; ++i) out << std::array{"the ", "fox ", "runs.\n"}[random_() % 3];
    training_.out = folder_ + "/block.gguf";
    training_.steps = 1, training_.batch = 4, training_.window = kBlockTestLength,
    training_.threads = 1;
  }

  // Disturbed, so that no weight is zero or one.
  Parameters& Write(Task& task) {
    for (Parameter& p : task.parameters().all())
      p.value += Normal(7, p.name, p.value.size(0), p.value.numel() / p.value.size(0), 0.05)
                     .view(p.value.sizes());
    EXPECT_TRUE(task.Export());
    return task.parameters();
  }

  std::string folder_;
  std::mt19937 random_{1};
  HeadOptions options_;
  TrainingOptions training_;
};

// A target's runner and a drafter's, whose only sequence has these blocks of positions.
struct Runners {
  Runners(const TargetReader& target, const formats::Checkpoint& file) {
    const model::RunnerOptions room{
        .max_rows = 64,
        .max_logit_rows = kBlockTestSize,
        .max_positions = 64,
        .cache = {.k_type = tensor::KvType::kF32, .v_type = tensor::KvType::kF32, .n_blocks = 2},
        .state = {.n_sequences = 1, .rows = 1}};
    of_target = *model::LocalRunner::Load(target.file(), target.config(), room, kernels, pool, {});
    of_block = Got(model::LocalRunner::LoadHead(file, *model::HeadConfigFromFile(file), room,
                                                kernels, pool, *of_target));
  }
  const model::PassResult& Run(model::Pass pass, int position) {
    const std::array<std::int32_t, 2> blocks = {0, 1};
    const kv::Segment segment{
        .n_rows = pass.n_rows(), .first_position = position, .blocks = blocks};
    pass.segments = {&segment, 1};
    return of_block->Run(pass);
  }

  ThreadPool pool{1};
  const kernels::Kernels& kernels = kernels::KernelsFor(kernels::Isa::kScalar);
  std::unique_ptr<model::LocalRunner> of_target, of_block;
};

TEST_P(BlockAgreement, TheEngineDraftsAsTheTrainersBlocks) {
  torch::NoGradGuard none;
  const auto task = Got(MakeHeadTask(options_, training_));
  const Parameters& weights = Write(*task);
  const auto file = *formats::OpenCheckpoint(training_.out);
  const auto config = *model::HeadConfigFromFile(*file);
  const auto target = *TargetReader::Open(options_.target, training_);
  HeadConfig head{.kind = TrainedHead::kBlock, .block = BlockLike(target->config(), false)};
  head.block.n_layers = options_.blocks, head.block.qk_norm = true;
  head.layers = config.head->feature_layers;
  head.block_size = kBlockTestSize, head.mask = options_.mask;
  target->Keep(head.layers);
  Runners runners(*target, *file);

  torch::manual_seed(4);
  const Tensor tokens = torch::randint(3, 300, {1, kBlockTestLength + 1}, torch::kLong);
  constexpr int kFirst = 2;
  const Drafts drafts =
      RunBlocks(head, Leaves(weights, torch::kFloat, false), *target, tokens, kFirst);
  const Tensor output = target->OutputRows({}, torch::kFloat);
  const Tensor features =
      target->Read(tokens.narrow(1, 0, kBlockTestLength)).features[0].contiguous();
  std::vector<int> logit_rows;
  for (int row = 1; row < kBlockTestSize; ++row) logit_rows.push_back(row);
  const int n_blocks = static_cast<int>(drafts.hidden.size(2));
  ASSERT_GE(n_blocks, 6);
  for (int block = 0; block < n_blocks; ++block) {
    const int start = 1 + kFirst + block * kBlockTestSize;
    const std::vector<Token> unread(static_cast<std::size_t>(start));
    runners.Run({.tokens = unread,
                 .segments = {},
                 .logit_rows = {},
                 .features = features.data_ptr<float>()},
                0);
    std::vector<Token> ids(kBlockTestSize, head.mask);
    ids[0] = static_cast<Token>(tokens[0][start].item<std::int64_t>());
    const model::PassResult& result =
        runners.Run({.tokens = ids, .segments = {}, .logit_rows = logit_rows}, start);
    for (int draft = 0; draft < kBlockTestSize - 1; ++draft) {
      const Tensor known = output.mv(drafts.hidden[draft][0][block]);
      const Tensor measured =
          torch::from_blob(const_cast<float*>(result.Logits(draft)), {known.size(0)});
      EXPECT_LT((known - measured).abs().max().item<float>(), 1e-3) << block << ", " << draft;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, BlockAgreement,
                         testing::Values("llama", "qwen3", "qwen35moe", "deepseek2"));

}  // namespace
}  // namespace foretoken::train
