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
  explicit WindowedModel(const fixtures::TinyModelOptions& tiny, const CacheOptions& cache = {})
      : TinyRunner(fixtures::WriteTinyModel(fixtures::TemporaryFolder(), tiny), 192, kRowsOfAPass,
                   SeenPositions::Kernels(), cache) {
    Restart();
    std::mt19937 random(3);
    for (Token& token : text_) token = 3 + static_cast<Token>(random() % 300);
  }

  void Restart() { tables_ = std::make_unique<kv::BlockTables>(shape); }

  // The logits of the last of n more rows, which stay only if `keeps` says so.
  std::vector<float> Read(int n, int window, bool keeps = true, int best_blocks = 0) {
    const int begin = tables_->length(0);
    const auto all =
        LogitsOf(*runner, *tables_, text_, begin, begin + n, keeps ? n : 0, window, best_blocks);
    return {all.end() - config.vocabulary, all.end()};
  }
  std::vector<float> ReadAll(int n_rows, int window) {
    std::vector<float> logits;
    for (int left = kText; left > 0; left -= n_rows) logits = Read(std::min(n_rows, left), window);
    return logits;
  }
  // All but the last row without a window.
  std::vector<float> ReadLast(int window, int best_blocks) {
    for (int left = kText - 1; left > 0; left -= kRowsOfAPass)
      Read(std::min(kRowsOfAPass, left), 0);
    return Read(1, window, false, best_blocks);
  }
  // Takes positions back, and reads other tokens in their place.
  void Rewrite(int begin) {
    tables_->Truncate(0, std::min(begin, tables_->length(0)));
    for (int i = begin; i < kText; ++i) text_[static_cast<std::size_t>(i)] = 3 + i % 300;
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

// ---- Blocks that a row chooses ------------------------------------------------------------------

constexpr CacheOptions kWithBounds = {.key_bounds = true};

// The layers of latent attention choose none, and those with a window see no more than it.
TEST(BestBlocks, AllOfThemAreTheWholeText) {
  for (auto tiny : WindowedFamilies())
    for (const tensor::KvType type :
         {tensor::KvType::kF32, tensor::KvType::kF16, tensor::KvType::kBF16, tensor::KvType::kQ8_0,
          tensor::KvType::kQ4_0}) {
      if (tiny.arch != "deepseek2")
        tiny.head_dim = 32;
      else if (tensor::HasScales(type))
        continue;
      CacheOptions cache = kWithBounds;
      cache.k_type = cache.v_type = type;
      WindowedModel model(tiny, cache);
      const int window = tiny.arch == "gemma3" ? 50 : kWindow;
      const auto plain = model.ReadLast(0, 0), windowed = model.Read(1, window, false, 0),
                 all = model.Read(1, window, false, 100), one = model.Read(1, window, false, 1);
      EXPECT_NE(windowed, plain) << tiny.arch;
      EXPECT_EQ(all, tiny.arch == "deepseek2" ? windowed : plain) << tiny.arch;
      if (tiny.arch == "llama") EXPECT_TRUE(one != plain && one != windowed);
    }
}

TEST(BestBlocks, BoundThePositionsThatAQuerySees) {
  WindowedModel model({.seed = 71}, kWithBounds);
  model.ReadLast(0, 0);
  for (const int best : {0, 1, 2}) {
    SeenPositions::most = 0;
    model.Read(1, kWindow, false, best);
    EXPECT_EQ(SeenPositions::most, 64 + 32 * best);  // of blocks 0 and 4, and those
  }
}

// A row chooses by its own queries, whatever else is in the pass.
TEST(BestBlocks, GiveARowTheSameBitsInAnyPass) {
  for (const char* arch : {"llama", "qwen35"}) {
    WindowedModel model({.arch = arch, .seed = 71, .n_layers = 4}, kWithBounds);
    const auto read = [&model](int n_rows) {
      model.Restart();
      std::vector<float> logits;
      for (int left = kText; left > 0; left -= n_rows)
        logits = model.Read(std::min(n_rows, left), kWindow, true, 1);
      return logits;
    };
    const auto alone = read(1);
    EXPECT_EQ(read(7), alone) << arch;
    EXPECT_EQ(read(16), alone) << arch;
  }
}

// Bounds that were learned of keys that are no longer there would choose otherwise.
TEST(BestBlocks, FollowWhatIsWrittenToTheCache) {
  const fixtures::TinyModelOptions tiny{.seed = 73, .n_layers = 4};
  for (const int begin : {30, 64, 95}) {
    WindowedModel model(tiny, kWithBounds), fresh(tiny, kWithBounds);
    model.ReadLast(kWindow, 1);
    model.Rewrite(begin);
    fresh.Rewrite(begin);
    fresh.Restart();
    const auto read = [](WindowedModel& of, int from) {
      for (int i = from; i < kText - 1; ++i) of.Read(1, 0);
      return of.Read(1, kWindow, false, 1);
    };
    EXPECT_EQ(read(model, begin), read(fresh, 0)) << begin;
    model.Clear(1);
    const auto cleared = model.Read(1, kWindow, false, 3);
    fresh.Clear(1);
    EXPECT_EQ(fresh.Read(1, kWindow, false, 3), cleared) << begin;
  }
}

}  // namespace
}  // namespace foretoken::model
