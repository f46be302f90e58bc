// SPDX-License-Identifier: Apache-2.0
// Passes whose rows see the first block of a text and its last positions alone.

#include <random>

#include "fixtures/tiny_model.h"
#include "model/seen_positions_testing.h"
#include "model/tiny_runner_testing.h"

namespace foretoken::model {
namespace {

constexpr int kText = 160, kWindow = 20, kRowsOfAPass = 16;

class WindowedModel : TinyRunner {
 public:
  explicit WindowedModel(const fixtures::TinyModelOptions& tiny)
      : TinyRunner(fixtures::WriteTinyModel(fixtures::TemporaryFolder(), tiny), 192, kRowsOfAPass,
                   SeenPositions::Kernels()) {
    Restart();
    std::mt19937 random(3);
    for (Token& token : text_) token = 3 + static_cast<Token>(random() % 300);
  }

  void Restart() { tables_ = std::make_unique<kv::BlockTables>(shape); }

  // The logits of the last of n more rows, which stay only if `keeps` says so.
  std::vector<float> Read(int n, int window, bool keeps = true) {
    const int begin = tables_->length(0);
    const auto all = LogitsOf(*runner, *tables_, text_, begin, begin + n, keeps ? n : 0, window);
    return {all.end() - config.vocabulary, all.end()};
  }
  std::vector<float> ReadAll(int n_rows, int window) {
    std::vector<float> logits;
    for (int left = kText; left > 0; left -= n_rows) logits = Read(std::min(n_rows, left), window);
    return logits;
  }
  void Clear(int block) { runner->ClearBlocks(tables_->Blocks(0).subspan(block, 1)); }

 private:
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
