// SPDX-License-Identifier: Apache-2.0
#include "draft/networks/chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "draft/networks/wide_logits.h"
#include "kernels/dispatch.h"

namespace foretoken::draft {
namespace {

constexpr int kChainVocabulary = 8, kChainDrafts = 4;

Chain Make(Stream stream, std::uint64_t id, const SamplingParameters& sampling = {}) {
  Chain chain(kChainVocabulary, kChainDrafts, kernels::KernelsFor(kernels::AvailableIsas().back()));
  const std::vector<Token> prompt = {1, 2};
  chain.Start({.prompt = prompt,
               .max_new_tokens = 20,
               .sampling = sampling,
               .noise = Noise(7, id),
               .stream = stream});
  return chain;
}

std::vector<Token> ProposeChain(Chain& chain, const std::vector<float>& logits) {
  chain.BeginProposal(kChainDrafts);
  while (chain.drafting()) chain.Draw(logits.data());
  const auto proposal = chain.Finish();
  return {proposal.tokens.begin(), proposal.tokens.end()};
}

// Drafts the same two positions twice: in one proposal, and in the next one after two tokens were
// committed. Returns for how many of `texts` the two agree.
int Agreements(Stream stream, int texts) {
  const std::vector<float> flat(kChainVocabulary, 0.0f);
  int n = 0;
  for (int text = 0; text < texts; ++text) {
    auto chain = Make(stream, static_cast<std::uint64_t>(text));
    const auto first = ProposeChain(chain, flat);
    chain.Commit(std::vector<Token>{3, 4});
    const auto second = ProposeChain(chain, flat);
    n += (first[2] == second[0]) + (first[3] == second[1]);
  }
  return n;
}

TEST(Chain, DraftsAPositionAnewWithNewNoise) {
  // chance gives 2 * 2000 / 8; four standard deviations are 84
  EXPECT_NEAR(Agreements(Stream::kDraft, 2000), 500, 84);
}

TEST(Chain, DraftsWithTheTargetsNoiseOfThePositionAlone) {
  EXPECT_EQ(Agreements(Stream::kTarget, 200), 400);
}

// A drafter that has the target's distribution then drafts the target's own text, after other
// proposals too.
TEST(Chain, DraftsTheTargetsTextWhereItHasItsDistributionAndNoise) {
  const std::vector<float> logits = {0, 1, 2, 0, 1, 2, 0, 1};
  int equal = 0, own = 0;
  for (std::uint64_t id = 0; id < 100; ++id) {
    sampling::Sampler target({.parameters = {}, .end_tokens = {}, .noise = Noise(7, id)},
                             kChainVocabulary,
                             kernels::KernelsFor(kernels::AvailableIsas().back()));
    target.Begin(std::vector<Token>{1, 2}, kChainDrafts);
    std::vector<float> distribution(kChainVocabulary);
    std::vector<Token> text;
    for (int i = 0; i < kChainDrafts; ++i) {
      text.push_back(target.Sample(logits.data(), distribution.data()));
      target.Push(text.back());
    }
    auto one = Make(Stream::kTarget, id), other = Make(Stream::kDraft, id);
    equal += ProposeChain(one, logits) == text;
    own += ProposeChain(other, logits) == text;
  }
  EXPECT_EQ(equal, 100);
  EXPECT_LT(own, 10);
}

TEST(Chain, DraftsTheSameForTheSameTextAndNoise) {
  const std::vector<float> logits = {0, 1, 2, 0, 1, 2, 0, 1};
  auto one = Make(Stream::kDraft, 5), other = Make(Stream::kDraft, 5);
  EXPECT_EQ(ProposeChain(one, logits), ProposeChain(other, logits));
  EXPECT_EQ(ProposeChain(one, logits), ProposeChain(other, logits));
}

TEST(Chain, ReportsTheLogitsThatTheModelGave) {
  const std::vector<float> logits = {-3, 1, 2.5f, 0, -1, 2, 0.25f, 1};
  SamplingParameters processed;
  processed.temperature = 0.7f, processed.presence_penalty = 0.9f;
  processed.logit_bias[3] = 4.0f;
  for (const auto& sampling : {processed, SamplingParameters{.temperature = 0, .logit_bias = {}}}) {
    auto chain = Make(Stream::kDraft, 1, sampling);
    chain.BeginProposal(kChainDrafts);
    while (chain.drafting()) chain.Draw(logits.data());
    const auto proposal = chain.Finish();
    ASSERT_EQ(proposal.length(), kChainDrafts);
    for (int i = 0; i < kChainDrafts; ++i)
      EXPECT_EQ(proposal.raw_logits[i],
                logits[static_cast<std::size_t>(proposal.tokens[static_cast<std::size_t>(i)])]);
  }
}

// The head has three columns, which are tokens 6, 1 and 4.
TEST(Chain, ReportsTheLogitsOfAReducedHead) {
  const std::vector<Token> ids = {6, 1, 4};
  const std::vector<float> head = {0.5f, -1.5f, 0.75f};
  WideLogits wide(kChainVocabulary, ids);
  auto chain = Make(Stream::kDraft, 2);
  chain.BeginProposal(kChainDrafts);
  while (chain.drafting()) chain.Draw(wide.Of(head.data()));
  const auto proposal = chain.Finish();
  for (int i = 0; i < kChainDrafts; ++i) {
    const auto column =
        std::find(ids.begin(), ids.end(), proposal.tokens[static_cast<std::size_t>(i)]);
    ASSERT_NE(column, ids.end());
    EXPECT_EQ(proposal.raw_logits[i], head[static_cast<std::size_t>(column - ids.begin())]);
  }
}

// The drafter has six tokens, the target kVocabulary, and token 2 differs between them. So the
// distribution covers the other five and sums to 1.
TEST(Chain, DrawsFromADistributionOverSharedTokensAlone) {
  const SharedTokens shared(kChainVocabulary, 6, {2});
  const std::vector<float> logits = {0.5F, -1.5F, 9, 0.75F, 0, 1};
  WideLogits wide(shared, {});
  auto chain = Make(Stream::kDraft, 2);
  chain.BeginProposal(kChainDrafts);
  while (chain.drafting()) chain.Draw(wide.Of(logits.data()));
  const auto proposal = chain.Finish();
  ASSERT_EQ(proposal.length(), kChainDrafts);
  for (int i = 0; i < kChainDrafts; ++i) {
    double sum = 0;
    for (Token id = 0; id < kChainVocabulary; ++id) {
      EXPECT_EQ(proposal.Distribution(i)[id] > 0, shared.Has(id)) << id;
      sum += static_cast<double>(proposal.Distribution(i)[id]);
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_TRUE(shared.Has(proposal.tokens[static_cast<std::size_t>(i)]));
  }
}

TEST(WideLogits, LeaveOutColumnsThatAreNotShared) {
  const SharedTokens shared(5, 4, {1});
  const std::vector<Token> ids = {4, 1, 3};  // 4: the target's alone; 1: another token
  const std::vector<float> head = {1, 2, 3};
  WideLogits wide(shared, ids);
  const float* logits = wide.Of(head.data());
  for (const Token id : {0, 1, 2, 4}) EXPECT_TRUE(std::isinf(logits[id])) << id;
  EXPECT_EQ(logits[3], 3);
  EXPECT_EQ(WideLogits(5, {}).Of(head.data()), head.data());  // nothing to copy
}

}  // namespace
}  // namespace foretoken::draft
