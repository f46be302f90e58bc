// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/own_copy.h"

#include <gtest/gtest.h>

#include "fixtures/tiny_model.h"
#include "foretoken/tools/model_file.h"

namespace foretoken::loader {
namespace {

constexpr std::int64_t kNetworkBytes = std::int64_t{1} << 30;

model::CopySize Share(double share, std::int64_t network = kNetworkBytes) {
  const auto read = static_cast<std::int64_t>(share * static_cast<double>(network));
  return {.own = read, .read = read, .network = network};
}

TEST(OwnCopy, ReadsOneTypeOrTwo) {
  const auto types = CopyTypesFor("Q3_K,Q4_K");
  ASSERT_TRUE(types);
  EXPECT_EQ(types->layers, tensor::DType::kQ3_K);
  EXPECT_EQ(types->output, tensor::DType::kQ4_K);
  for (const char* usual : {"", "off"}) EXPECT_EQ(*CopyTypesFor(usual), model::CopyTypes());
  for (const char* wrong : {"Q9", "q2_k", ",", "Q2_K,", "Q2_K,Q2_K,Q2_K"})
    EXPECT_FALSE(CopyTypesFor(wrong)) << wrong;
}

TEST(OwnCopy, NamesTheUsualTypes) {
  SpeculativeOptions options;
  EXPECT_EQ(SelfDraftOf(options), "Q2_K");
  options.self_draft = "off";
  EXPECT_EQ(SelfDraftOf(options), "Q2_K");
  options.self_draft = "Q3_K,Q4_K";
  EXPECT_EQ(SelfDraftOf(options), "Q3_K,Q4_K");
  options.self_draft = "Q4_0, Q4_0";
  EXPECT_EQ(SelfDraftOf(options), "Q4_0");
}

TEST(OwnCopy, GainsByTheBytesOfItsPasses) {
  EXPECT_NEAR(GainOfCopy(Share(0.31)), 1.42, 0.01);  // three drafts: 3.19 tokens in 2.23 passes
  EXPECT_NEAR(GainOfCopy(Share(0.54)), 1.13, 0.01);  // one draft: 1.85 tokens in 1.64 passes
  EXPECT_EQ(GainOfCopy(Share(0.9)), 1);              // none: plain decoding is faster
}

TEST(OwnCopy, IsMadeUnaskedOfLargeModelsOfManyBits) {
  EXPECT_TRUE(CopyPays(Share(0.31)));  // Q8_0 in Q2_K
  EXPECT_TRUE(CopyPays(Share(0.54)));  // Q4_K_M
  EXPECT_FALSE(CopyPays(Share(0.6)));  // IQ4_XS
  EXPECT_FALSE(CopyPays(Share(0.31, kNetworkBytes / 8)));
  EXPECT_FALSE(IsLarge(Share(0.31, kNetworkBytes / 8)));
  EXPECT_FALSE(CopyPays({}));
}

// Matrices that would not become smaller are the network's own, and its passes read them too.
TEST(OwnCopy, TellsWhatItTakesBeforeItIsMade) {
  const std::string path = fixtures::WriteTinyModel(
      fixtures::TemporaryFolder(), {.n_kv_heads = 4, .weight_type = tensor::DType::kQ8_0});
  EngineOptions options;
  options.model = path;
  options.context_size = 64;
  options.speculative.self_draft = "Q4_0";
  const auto smaller = DescribeCopy(options);
  ASSERT_TRUE(smaller) << smaller.error().message;
  EXPECT_EQ(smaller->types, "Q4_0");
  EXPECT_GT(smaller->bytes, 0);
  EXPECT_NEAR(smaller->pass_share, 4.5 / 8.5, 0.02);
  EXPECT_FALSE(smaller->is_likely_to_pay);
  EXPECT_EQ(smaller->obstacle, "");
  options.speculative.self_draft = "Q8_0";
  const auto same = DescribeCopy(options);
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(same->bytes, 0);
  EXPECT_EQ(same->pass_share, 1);
  options.speculative.self_draft = "Q9";
  EXPECT_FALSE(DescribeCopy(options));
}

}  // namespace
}  // namespace foretoken::loader
