// SPDX-License-Identifier: Apache-2.0
#include "calibrate/copy_comparison.h"

#include <gtest/gtest.h>

#include "fixtures/tiny_model.h"
#include "kernels/dispatch.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"

namespace foretoken::calibrate {
namespace {

// A model and its cache. Time passes with each reading of the clock.
struct ComparedModel {
  explicit ComparedModel(const fixtures::TinyModelOptions& tiny)
      : file(*formats::OpenCheckpoint(fixtures::WriteTinyModel(fixtures::TemporaryFolder(), tiny))),
        config(*model::ConfigFromMetadata(file->metadata())) {
    config.vocabulary = *model::VocabularyRows(*file);
    bool recurrent = false;
    for (const model::LayerConfig& layer : config.layers) recurrent |= layer.recurrent();
    const kv::TablesShape shape = {.n_sequences = 1,
                                   .max_positions = 64,
                                   .pass_rows = 16,
                                   .state_rows = recurrent ? kv::TablesShape::kRollback : 0};
    options = {.max_rows = 16,
               .max_logit_rows = 16,
               .max_positions = 64,
               .cache = {.n_blocks = shape.n_blocks()},
               .state = {.n_sequences = 1, .rows = shape.state_rows}};
    target = *model::LocalRunner::Load(*file, config, options, kernels, pool, {});
    tables.emplace(shape);
  }

  std::unique_ptr<model::LocalRunner> Copy(const model::CopyTypes& types,
                                           std::vector<std::int32_t> reduced = {}) {
    options.output_tokens = std::move(reduced);
    return *model::LocalRunner::LoadCopy(*file, options, types, kernels, {pool, pool}, *target, {});
  }

  std::optional<CopyComparison> Compare(model::Runner& copy, std::span<const Token> ends = {}) {
    const std::vector<std::vector<Token>> beginnings = {{1, 5}, {9}};
    return CompareCopy({.pool = pool,
                        .kernels = kernels,
                        .target = *target,
                        .cache = *tables,
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

  const kernels::Kernels& kernels = kernels::KernelsFor(kernels::Isa::kScalar);
  ThreadPool pool{1};
  std::unique_ptr<formats::Checkpoint> file;
  model::ModelConfig config;
  model::RunnerOptions options;
  std::unique_ptr<model::LocalRunner> target;
  std::optional<kv::BlockTables> tables;
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
    EXPECT_EQ(model.tables->length(0), 0);
  }
}

TEST(CopyComparison, ReadsTheReducedOutput) {
  ComparedModel model({.seed = 99});
  const auto copy = model.Copy(kMany, {0});
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
  EXPECT_EQ(model.tables->length(0), 0);
}

}  // namespace
}  // namespace foretoken::calibrate
