// SPDX-License-Identifier: Apache-2.0
#include "model/pass_work.h"

#include <gtest/gtest.h>

namespace foretoken::model {
namespace {

constexpr int kStreamWidth = 64;

LayerConfig LayerWithWindow(int window) {
  LayerConfig layer;
  layer.mixer = AttentionConfig{.n_heads = 4, .n_kv_heads = 2, .head_dim = 16, .window = window};
  layer.feed_forward = GatedFfnConfig{.width = 128};
  return layer;
}
constexpr std::int64_t kRowWork = kStreamWidth * (2 * 16 * (4 + 2) + 3 * 128),
                       kPositionWork = 2 * 4 * 16;

ModelConfig ConfigOf(std::vector<LayerConfig> layers) {
  ModelConfig config;
  config.layers = std::move(layers);
  config.dim = kStreamWidth;
  return config;
}

// The work of a pass of one sequence.
std::int64_t WorkOfOne(const ModelConfig& config, Pos first_position, int n_rows, int window = 0,
                       int best_blocks = 0) {
  const std::vector<Token> tokens(static_cast<std::size_t>(n_rows));
  const kv::Segment segment{.n_rows = n_rows, .first_position = first_position};
  Pass pass{.tokens = tokens, .segments = {&segment, 1}, .logit_rows = {}};
  pass.window = window, pass.best_blocks = best_blocks;
  return static_cast<std::int64_t>(PassWork(config).Of(pass));
}

TEST(PassWork, CountsWeightsAndPositions) {
  const ModelConfig config = ConfigOf({LayerWithWindow(0), LayerWithWindow(0)});
  EXPECT_EQ(WorkOfOne(config, 0, 1), kRowWork + kPositionWork);
  EXPECT_EQ(WorkOfOne(config, 999, 1), kRowWork + 1000 * kPositionWork);
  EXPECT_EQ(WorkOfOne(config, 999, 3),
            3 * (kRowWork + 1001 * kPositionWork));  // the middle one sees 1001
}

TEST(PassWork, PositionsOutsideWindowsDoNotCount) {
  const ModelConfig all = ConfigOf({LayerWithWindow(0)}),
                    mixed = ConfigOf({LayerWithWindow(100), LayerWithWindow(0)});
  EXPECT_EQ(WorkOfOne(mixed, 999, 1), kRowWork + (100 + 1000) * kPositionWork / 2);
  EXPECT_EQ(WorkOfOne(mixed, 49, 1), kRowWork + 50 * kPositionWork);
  // The window of the pass hides whole blocks, but for the first one and the best ones.
  EXPECT_EQ(WorkOfOne(all, 1023, 1, 256), kRowWork + (1024 - 32 * 23) * kPositionWork);
  EXPECT_EQ(WorkOfOne(all, 1023, 1, 256, 3), kRowWork + (1024 - 32 * 20) * kPositionWork);
  EXPECT_EQ(WorkOfOne(all, 1023, 1, 256, 100), kRowWork + 1024 * kPositionWork);
  EXPECT_EQ(WorkOfOne(mixed, 1023, 1, 64), kRowWork + (64 + 1024 - 32 * 29) * kPositionWork / 2);
}

TEST(PassWork, AddsSequences) {
  const ModelConfig config = ConfigOf({LayerWithWindow(0)});
  const std::vector<Token> tokens(3);
  const std::vector<kv::Segment> segments = {
      {.seq = 0, .n_rows = 1, .first_position = 9},
      {.seq = 1, .row_begin = 1, .n_rows = 2, .first_position = 99}};
  const Pass pass{.tokens = tokens, .segments = segments, .logit_rows = {}};
  EXPECT_EQ(static_cast<std::int64_t>(PassWork(config).Of(pass)),
            3 * kRowWork + (10 + 2 * 100) * kPositionWork);
}

TEST(PassWork, LatentsAreReadByAllHeads) {
  LayerConfig layer;
  layer.mixer = LatentAttentionConfig{
      .n_heads = 4, .rank = 32, .head_dim = 16, .value_dim = 16, .rope = {.n_rot = 8}};
  layer.feed_forward = NoPart{};
  const ModelConfig config = ConfigOf({layer});
  EXPECT_EQ(WorkOfOne(config, 999, 1) - WorkOfOne(config, 0, 1), 999 * 4 * (32 + 8 + 32));
}

TEST(PassWork, ARecurrentLayerSeesNoPositions) {
  LayerConfig layer;
  layer.mixer = ShortConvConfig{.taps = 3};
  layer.feed_forward = NoPart{};
  const ModelConfig config = ConfigOf({layer});
  EXPECT_EQ(WorkOfOne(config, 999, 1), 4 * kStreamWidth * kStreamWidth);
}

}  // namespace
}  // namespace foretoken::model
