// SPDX-License-Identifier: Apache-2.0
#include "train/targets/target_reader.h"

#include <gtest/gtest.h>

#include "base/failure_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/catalogue.h"
#include "foretoken/engine.h"
#include "train/run/machine.h"
#include "train/written_testing.h"

namespace foretoken::train {
namespace {

using torch::Tensor;

[[maybe_unused]] const bool kOneThread = (UseThreads(1), true);

TrainingOptions Training(int window) {
  TrainingOptions training;
  training.out = TestFolder() + "/out.gguf";
  training.window = window, training.threads = 1;
  return training;
}

std::vector<std::string> Architectures() {
  std::vector<std::string> names = {"mixtral"};
  for (const ArchitectureInfo* info : AllArchitectures()) names.emplace_back(info->name);
  return names;
}

class TargetReaderTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, TargetReaderTest, testing::ValuesIn(Architectures()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Two windows, one after the other: the second begins as if there had been no first.
TEST_P(TargetReaderTest, GivesTheDistributionsOfTheEngine) {
  const std::string path = fixtures::WriteTinyModel(TestFolder(), fixtures::SmallestOf(GetParam()));
  constexpr int kLength = 40;
  auto reader = Got(TargetReader::Open(path, Training(kLength)));
  torch::manual_seed(3);
  const Tensor tokens = torch::randint(3, 300, {2, kLength}, torch::kLong);
  const Tensor normed = reader->Read(tokens).normed,
               products = torch::matmul(normed, reader->OutputRows({}, torch::kFloat).t());
  const Tensor distributions = torch::log_softmax(Shaped(products, reader->logit_shape()), -1);
  auto engine = Got(Engine::Open({.model = path, .speculative = {.method = "none"}, .threads = 1}));
  for (int row = 0; row < 2; ++row) {
    const auto* begin = tokens[row].data_ptr<std::int64_t>();
    const std::vector<std::int32_t> ids(begin, begin + kLength);
    const auto scores = Got(engine->Score(ids));
    for (int i = 0; i + 1 < kLength; ++i)
      ASSERT_NEAR(distributions[row][i][ids[static_cast<std::size_t>(i) + 1]].item<float>(),
                  scores[static_cast<std::size_t>(i)], 2e-3)
          << "row " << row << " position " << i;
  }
}

TEST(TargetReader, GivesTheLayersThatAreKept) {
  const std::string path =
      fixtures::WriteTinyModel(TestFolder(), {.n_layers = 3, .dim = 32, .ff = 48, .vocab = 300});
  const auto reader = *TargetReader::Open(path, Training(16));
  torch::manual_seed(4);
  const Tensor tokens = torch::randint(3, 300, {1, 16}, torch::kLong);
  EXPECT_EQ(reader->Read(tokens).features.size(-1), 0);
  reader->Keep({0, 3});
  const auto states = reader->Read(tokens);
  ASSERT_EQ(states.features.sizes(), (torch::IntArrayRef{1, 16, 64}));
  EXPECT_TRUE(states.features.narrow(-1, 0, 32).equal(reader->Embedded(tokens)));
  const Tensor last = states.features.narrow(-1, 32, 32),
               gain = *reader->Values("output_norm.weight");
  const Tensor normed = last * torch::rsqrt(last.square().mean(-1, true) + 1e-5) * gain;
  EXPECT_LT((normed - states.normed).abs().max().item<float>(), 1e-4);
  EXPECT_FALSE(reader->Values("no such tensor"));
}

TEST(TargetReader, RefusesWhatCannotBeRead) {
  const auto code = [](const std::string& path, int window) {
    const auto reader = TargetReader::Open(path, Training(window));
    return reader ? ErrorCode::kIo : reader.error().code;
  };
  const std::string path = fixtures::WriteTinyModel(TestFolder(), {.context_length = 64});
  EXPECT_EQ(code("", 16), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(path, 65), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(TestFolder() + "/missing.gguf", 16), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace foretoken::train
