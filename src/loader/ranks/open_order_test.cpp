// SPDX-License-Identifier: Apache-2.0
#include "loader/ranks/open_order.h"

#include <gtest/gtest.h>

namespace foretoken::loader {
namespace {

// Each field has a value of its own.
OpenOrder AnOrder() {
  OpenOrder order = {.path = "model.gguf",
                     .target = 1,
                     .copy = "q4_0",
                     .vocabulary = 2,
                     .shares = {17, 18},
                     .repack_cache = "on",
                     .repack_cache_gb = 3};
  model::RunnerOptions& o = order.options;
  o.max_rows = 4, o.max_logit_rows = 5, o.max_positions = 6;
  o.output_tokens = {19, 20, 21};
  o.cache.k_type = tensor::KvType::kQ8_0, o.cache.v_type = tensor::KvType::kQ4_0;
  o.cache.n_blocks = 7, o.cache.n_window_blocks = 8;
  o.cache.key_bounds = true;
  o.state.n_sequences = 9, o.state.rows = 10, o.state.n_checkpoints = 11;
  return order;
}

std::vector<std::int32_t> WordsOf(const auto& order) {
  model::Message message;
  message.Begin(model::Order::kOpen, 0);
  VisitFields(order, model::AddFields(message));
  return {message.body().begin(), message.body().end()};
}

TEST(Orders, EveryFieldOfAnOpeningArrives) {
  const OpenOrder sent = AnOrder();
  const auto got = ReadOrder<OpenOrder>(WordsOf(sent));
  ASSERT_TRUE(got);
  EXPECT_EQ(WordsOf(*got), WordsOf(sent));
  EXPECT_NE(WordsOf(*got), WordsOf(OpenOrder()));
  EXPECT_EQ(got->path, "model.gguf");
  EXPECT_EQ(got->copy, "q4_0");
  EXPECT_EQ(got->shares, (std::vector<int>{17, 18}));
  EXPECT_EQ(got->options.output_tokens, (std::vector<std::int32_t>{19, 20, 21}));
  EXPECT_EQ(got->options.cache.v_type, tensor::KvType::kQ4_0);
  EXPECT_EQ(got->options.cache.n_window_blocks, 8);
  EXPECT_TRUE(got->options.cache.key_bounds);
  EXPECT_EQ(got->options.state.n_checkpoints, 11);
  EXPECT_EQ(got->repack_cache_gb, 3);
}

TEST(Orders, ATeamArrives) {
  const auto got = ReadOrder<TeamOrder>(WordsOf(TeamOrder{"avx2", 7, true}));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->isa, "avx2");
  EXPECT_EQ(got->threads, 7);
  EXPECT_TRUE(got->pin);
}

TEST(Orders, AreRefusedWhereWordsAreMissingOrLeftOver) {
  std::vector<std::int32_t> words = WordsOf(AnOrder());
  for (std::size_t n = 0; n < words.size(); ++n)
    EXPECT_FALSE(ReadOrder<OpenOrder>(std::span(words).first(n))) << n << " words";
  words.push_back(0);
  EXPECT_FALSE(ReadOrder<OpenOrder>(words));
}

}  // namespace
}  // namespace foretoken::loader
