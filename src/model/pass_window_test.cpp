// SPDX-License-Identifier: Apache-2.0
// Passes whose rows see the first block of a text and its last positions alone.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "fixtures/tiny_model.h"
#include "kv/block_tables.h"
#include "kv/transaction.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"
#include "model/seen_positions_testing.h"

namespace foretoken::model {
namespace {

constexpr int kText = 160, kWindow = 20, kRowsOfAPass = 16;

class WindowedModel {
 public:
  explicit WindowedModel(const fixtures::TinyModelOptions& tiny)
      : file_(
            *formats::OpenCheckpoint(fixtures::WriteTinyModel(fixtures::TemporaryFolder(), tiny))),
        config_(*ConfigFromMetadata(file_->metadata())) {
    config_.vocabulary = *VocabularyRows(*file_);
    bool recurrent = false;
    for (const LayerConfig& layer : config_.layers) recurrent |= layer.recurrent();
    shape_ = {.n_sequences = 1,
              .max_positions = 192,
              .pass_rows = kRowsOfAPass,
              .state_rows = recurrent ? kv::TablesShape::kRollback : 0};
    const RunnerOptions options = {.max_rows = kRowsOfAPass,
                                   .max_logit_rows = 1,
                                   .max_positions = 192,
                                   .cache = {.n_blocks = shape_.n_blocks()},
                                   .state = {.n_sequences = 1, .rows = shape_.state_rows}};
    runner_ = *LocalRunner::Load(*file_, config_, options, SeenPositions::Kernels(), pool_, {});
    Restart();
    std::mt19937 random(3);
    for (Token& token : text_) token = 3 + static_cast<Token>(random() % 300);
  }

  void Restart() { tables_ = std::make_unique<kv::BlockTables>(shape_); }

  // The logits of the last of n more rows, which stay only if `keeps` says so.
  std::vector<float> Read(int n, int window, bool keeps = true) {
    const int begin = tables_->length(0), kept = keeps ? n : 0, last = n - 1;
    kv::Segment segment{.n_rows = n, .first_position = begin, .n_certain = kept};
    kv::Transaction transaction(*tables_, {&segment, 1});
    const PassResult& result =
        runner_->Run({.tokens = std::span(text_).subspan(static_cast<std::size_t>(begin),
                                                         static_cast<std::size_t>(n)),
                      .segments = {&segment, 1},
                      .logit_rows = {&last, 1},
                      .window = window});
    std::vector<float> logits(result.Logits(0), result.Logits(0) + config_.vocabulary);
    transaction.Commit({&kept, 1});
    return logits;
  }
  std::vector<float> ReadAll(int n_rows, int window) {
    std::vector<float> logits;
    for (int left = kText; left > 0; left -= n_rows) logits = Read(std::min(n_rows, left), window);
    return logits;
  }
  void Clear(int block) { runner_->ClearBlocks(tables_->Blocks(0).subspan(block, 1)); }

 private:
  ThreadPool pool_{1};
  std::unique_ptr<formats::Checkpoint> file_;
  ModelConfig config_;
  kv::TablesShape shape_;
  std::unique_ptr<LocalRunner> runner_;
  std::unique_ptr<kv::BlockTables> tables_;
  std::vector<Token> text_ = std::vector<Token>(kText);
};

fixtures::TinyModelOptions Latent() {
  return {.arch = "deepseek2",
          .seed = 72,
          .n_kv_heads = 1,
          .head_dim = 24,
          .q_rank = 16,
          .n_experts = 4,
          .shared_ff = 32,
          .n_dense = 1,
          .rope_dimensions = 8};
}

std::vector<fixtures::TinyModelOptions> WindowedFamilies() {
  std::vector<fixtures::TinyModelOptions> families;
  for (const char* arch : {"llama", "deepseek2", "gemma3", "qwen35"}) {
    fixtures::TinyModelOptions tiny{.arch = arch, .seed = 71, .n_layers = 4};
    if (tiny.arch == "deepseek2") tiny = Latent();
    if (tiny.arch == "gemma3") tiny.n_layers = 6, tiny.window = 50, tiny.head_dim = 32;
    families.push_back(tiny);
  }
  return families;
}

TEST(PassWindow, ThatHoldsTheTextChangesNothing) {
  for (const auto& tiny : WindowedFamilies()) {
    WindowedModel model(tiny);
    const auto plain = model.ReadAll(kRowsOfAPass, 0);
    model.Restart();
    EXPECT_EQ(model.ReadAll(kRowsOfAPass, kText), plain) << tiny.arch;
    model.Restart();
    EXPECT_NE(model.ReadAll(kRowsOfAPass, kWindow), plain) << tiny.arch;
  }
}

// Window, what is before it in its block, and the first block.
TEST(PassWindow, BoundsThePositionsThatAQuerySees) {
  for (const auto& tiny : WindowedFamilies())
    for (const int window : {1, kWindow, 64}) {
      WindowedModel model(tiny);
      SeenPositions::most = 0;
      model.ReadAll(kRowsOfAPass, 0);
      EXPECT_EQ(SeenPositions::most, kText) << tiny.arch;
      model.Restart();
      SeenPositions::most = 0;
      model.ReadAll(kRowsOfAPass, window);
      EXPECT_LE(SeenPositions::most, window + 31 + 32) << tiny.arch;
      EXPECT_GE(SeenPositions::most, window + 32) << tiny.arch;
    }
}

TEST(PassWindow, GivesARowTheSameBitsInAnyPass) {
  for (const auto& tiny : WindowedFamilies()) {
    WindowedModel model(tiny);
    const auto alone = model.ReadAll(1, kWindow);
    for (const int n_rows : {7, 16}) {
      model.Restart();
      EXPECT_EQ(model.ReadAll(n_rows, kWindow), alone) << tiny.arch << " " << n_rows;
    }
  }
}

// A row at position 159 with a window of 20 sees the blocks 0 and 4.
TEST(PassWindow, RowsSeeTheFirstBlockAndTheLastOnes) {
  for (const char* arch : {"llama", "deepseek2"}) {
    WindowedModel model(std::string_view(arch) == "llama" ? fixtures::TinyModelOptions{.seed = 72}
                                                          : Latent());
    for (int i = 0; i < 3; ++i) model.Read(16, 0);
    for (int left = kText - 1 - 48; left > 0; left -= 16) model.Read(std::min(16, left), 0);
    const auto before = model.Read(1, kWindow, false);
    for (const int unseen : {1, 2, 3}) model.Clear(unseen);
    EXPECT_EQ(model.Read(1, kWindow, false), before) << arch;
    model.Clear(0);
    const auto without_first = model.Read(1, kWindow, false);
    EXPECT_NE(without_first, before) << arch;
    model.Clear(4);
    EXPECT_NE(model.Read(1, kWindow, false), without_first) << arch;
  }
}

}  // namespace
}  // namespace foretoken::model
