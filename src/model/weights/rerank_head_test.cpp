// SPDX-License-Identifier: Apache-2.0
#include "model/weights/rerank_head.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/failure_testing.h"
#include "formats/gguf_writer.h"

namespace foretoken::model {
namespace {

constexpr int kHeadDim = 4;
constexpr std::uint32_t kHeadF32 = 0;

struct RerankHeadFile {
  std::vector<float> weight = {1, 2, 3, 4, -1, 0.5, 0, 2};
  std::vector<std::int64_t> shape = {kHeadDim, 2};
  std::vector<float> bias = {};

  Result<std::unique_ptr<RerankHead>> Load(std::string_view architecture) const {
    formats::GgufWriter writer;
    writer.Set("general.architecture", std::string("qwen3"));
    writer.AddTensor("cls.output.weight", kHeadF32, shape, std::as_bytes(std::span(weight)));
    const std::int64_t n = std::ssize(bias);
    if (n > 0)
      writer.AddTensor("cls.output.bias", kHeadF32, {&n, 1}, std::as_bytes(std::span(bias)));
    const std::string path =
        fmt::format("{}/rerank_head_{}.gguf", testing::TempDir(),
                    testing::UnitTest::GetInstance()->current_test_info()->name());
    EXPECT_TRUE(writer.Write(path).has_value());
    return RerankHead::Load(*formats::OpenCheckpoint(path).value(), architecture, kHeadDim);
  }
};

std::vector<float> ScoresOf(const RerankHeadFile& file, std::string_view architecture) {
  const auto head = file.Load(architecture).value();
  std::vector<float> scores(static_cast<std::size_t>(head->labels()));
  head->Score(std::vector<float>{0.5, 0, 1, -0.25}, scores);
  return scores;
}

TEST(RerankHead, GivesANumberForEachLabel) {
  EXPECT_EQ(ScoresOf({}, "llama"), (std::vector<float>{2.5, -1}));
  EXPECT_EQ(ScoresOf({.bias = {1, -2}}, "llama"), (std::vector<float>{3.5, -3}));
}

TEST(RerankHead, GivesProbabilitiesForQwen3) {
  const std::vector<float> scores = ScoresOf({}, "qwen3");
  EXPECT_NEAR(scores[0], 1 / (1 + std::exp(-3.5)), 1e-7);
  EXPECT_NEAR(scores[0] + scores[1], 1, 1e-7);
  RerankHeadFile large;
  for (float& x : large.weight) x *= 1e30F;
  EXPECT_EQ(ScoresOf(large, "qwen3"), (std::vector<float>{1, 0}));
}

TEST(RerankHead, RefusesWhatDoesNotFit) {
  RerankHeadFile infinite;
  infinite.weight[5] = std::numeric_limits<float>::infinity();
  const std::vector<float> many(kHeadDim * 1025);
  for (const auto& [file, why] : std::vector<std::pair<RerankHeadFile, std::string>>{
           {{.shape = {2, 4}}, "2 by 4 numbers"},
           {{.shape = {kHeadDim, 1, 2}}, "4 by 2 numbers"},
           {{.weight = many, .shape = {kHeadDim, 1025}}, "4 by 1025 numbers"},
           {{.bias = {1, 2, 3}}, "3 numbers for 2 labels"},
           {infinite, "not finite"}}) {
    EXPECT_TRUE(Fails(file.Load("qwen3"), why));
  }
}

}  // namespace
}  // namespace foretoken::model
