// SPDX-License-Identifier: Apache-2.0
#include "calibrate/copy_comparison.h"

#include "fixtures/tiny_model.h"
#include "model/tiny_runner_testing.h"

namespace foretoken::calibrate {
namespace {

// A model and its cache. Time passes with each reading of the clock.
struct ComparedModel : model::TinyRunner {
  explicit ComparedModel(const fixtures::TinyModelOptions& tiny)
      : TinyRunner(fixtures::WriteTinyModel(fixtures::TemporaryFolder(), tiny)), tables(shape) {}

  std::optional<CopyComparison> Compare(model::Runner& copy, std::span<const Token> ends = {}) {
    const std::vector<std::vector<Token>> beginnings = {{1, 5}, {9}};
    return CompareCopy({.pool = pool,
                        .kernels = kernels,
                        .target = *runner,
                        .cache = tables,
                        .vocabulary = config.vocabulary,
                        .context = 64,
                        .most_positions = 64,
                        .now = [this] { return now_us += 5; }},
                       copy, beginnings, ends, [this](double share) {
                         EXPECT_GE(share, done);
                         EXPECT_LT(share, 1);
                         done = share;
                         return ++steps < most_steps;
                       });
  }

  kv::BlockTables tables;
  double now_us = 0, done = 0;
  int steps = 0, most_steps = 1000;
};

constexpr model::CopyTypes kFew = {tensor::DType::kQ2_K, tensor::DType::kQ2_K},
                           kMany = {tensor::DType::kQ8_0, tensor::DType::kQ8_0};

TEST(CopyComparison, CountsWhereBothSayTheSame) {
  for (const char* arch : {"llama", "qwen35"}) {
    ComparedModel model({.arch = arch, .seed = 98, .dim = 256, .ff = 256});
    const auto few = model.Compare(*model.Copy(kFew));
    model.done = 0;
    const auto many = model.Compare(*model.Copy(kMany));
    ASSERT_TRUE(few && many) << arch;
    EXPECT_EQ(few->positions, 48);  // 24 behind each beginning
    EXPECT_EQ(many->positions, 48);
    EXPECT_LT(few->agreed, many->agreed) << arch;
    EXPECT_GT(many->agreed, 40) << arch;
    EXPECT_DOUBLE_EQ(few->cost, 1);  // each reading takes the same
    EXPECT_EQ(model.tables.length(0), 0);
  }
}

TEST(CopyComparison, ReadsTheReducedOutput) {
  ComparedModel model({.seed = 99});
  const std::vector<Token> only = {0};
  model.options.output_tokens = only;
  const auto copy = model.Copy(kMany);
  ASSERT_EQ(copy->info().reduced_tokens.size(), 1U);
  const auto one = model.Compare(*copy);
  ASSERT_TRUE(one);
  EXPECT_LT(one->agreed, one->positions / 2);  // it has one token to say
}

TEST(CopyComparison, StopsAtAnEndTokenAndWhereItIsTold) {
  ComparedModel model({.seed = 100});
  const auto copy = model.Copy(kMany);
  std::vector<Token> ends;
  for (int i = 0; i < model.config.vocabulary; ++i) ends.push_back(i);
  EXPECT_EQ(model.Compare(*copy, ends)->positions, 2);
  model.done = 0, model.steps = 0, model.most_steps = 5;
  EXPECT_FALSE(model.Compare(*copy));
  EXPECT_EQ(model.tables.length(0), 0);
}

}  // namespace
}  // namespace foretoken::calibrate
