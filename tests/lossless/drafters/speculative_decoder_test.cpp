// SPDX-License-Identifier: Apache-2.0
#include "foretoken/speculative_decoder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

void ExpectSameSteps(const Completion& got, const Completion& want) {
  EXPECT_EQ(got.token_ids, want.token_ids);
  EXPECT_EQ(got.text, want.text);
  EXPECT_EQ(got.finish_reason, want.finish_reason);
  EXPECT_EQ(got.speculation.drafted, want.speculation.drafted);
  EXPECT_EQ(got.speculation.accepted, want.speculation.accepted);
}

TEST(SpeculativeDecoder, RoundByRoundItGivesTheEnginesText) {
  const auto engine = OpenEngine(PairOptions());
  const auto decoder = MakeDecoder(PairOptions());
  for (const float temperature : {0.0f, 0.9f})
    for (const int k : {0, 1, 5}) {
      const Request request = Ask(40, temperature, 3, k);
      const auto want = Generated(*engine, request);
      auto round = decoder->Begin(request);
      ASSERT_TRUE(round) << round.error().message;
      ASSERT_EQ(round->tokens.size(), 1u);
      std::vector<std::int32_t> tokens(round->tokens.begin(), round->tokens.end());
      std::string text = round->text;
      while (!decoder->done()) {
        const auto drafts = Got(decoder->Draft());
        const std::vector<std::int32_t> drafted(drafts.tokens.begin(), drafts.tokens.end());
        EXPECT_LE(static_cast<int>(drafted.size()), k);
        EXPECT_EQ(drafts.probabilities.size(), temperature > 0 ? drafted.size() : 0u);
        for (const float p : drafts.probabilities) EXPECT_TRUE(p > 0 && p <= 1) << p;
        const auto again = decoder->Draft();
        EXPECT_EQ(std::vector<std::int32_t>(again->tokens.begin(), again->tokens.end()), drafted);
        round = decoder->Verify();
        ASSERT_TRUE(round) << round.error().message;
        EXPECT_EQ(round->drafted, static_cast<int>(drafted.size()));
        for (int i = 0; i < round->accepted; ++i)
          EXPECT_EQ(round->tokens[static_cast<std::size_t>(i)],
                    drafted[static_cast<std::size_t>(i)]);
        EXPECT_EQ(round->done, decoder->done());
        tokens.insert(tokens.end(), round->tokens.begin(), round->tokens.end());
        text += round->text;
        EXPECT_EQ(decoder->completion().token_ids, tokens);
      }
      EXPECT_EQ(tokens, want.token_ids);
      EXPECT_EQ(text, want.text);
      ExpectSameSteps(decoder->completion(), want);
      ExpectSameSteps(Got(decoder->Generate(request)), want);
    }
}

TEST(SpeculativeDecoder, DraftsOfTheCallersAreVerifiedInPlaceOfItsOwn) {
  const auto plain = Generated(*OpenEngine(PairOptions()), Ask(40, 0, 0, 0)).token_ids;
  for (const char* method : {"standalone", "none", "ngram"}) {
    const auto decoder = MakeDecoder(OptionsOfMethod(method));
    ASSERT_TRUE(decoder->Begin(Ask(40)));
    for (int step = 0; !decoder->done(); ++step) {
      const auto at = decoder->completion().token_ids.size();
      const auto left = plain.size() - at;
      std::vector<std::int32_t> drafts(
          plain.begin() + static_cast<std::ptrdiff_t>(at),
          plain.begin() + static_cast<std::ptrdiff_t>(at + std::min<std::size_t>(3, left - 1)));
      const bool spoil = step % 2 == 1 && drafts.size() == 3;
      if (spoil) drafts[1] = (drafts[1] + 1) % 300;
      const auto round = Got(decoder->Verify(drafts));
      EXPECT_EQ(round.drafted, static_cast<int>(drafts.size()));
      EXPECT_EQ(round.accepted, spoil ? 1 : static_cast<int>(drafts.size()));
    }
    EXPECT_EQ(decoder->completion().token_ids, plain) << method;
  }
}

TEST(SpeculativeDecoder, RefusesDraftsThatCannotBeAndGoesOn) {
  const auto want = Generated(*OpenEngine(PairOptions()), Ask(10));
  const auto decoder = MakeDecoder(PairOptions());
  ASSERT_TRUE(decoder->Begin(Ask(10)));
  for (const auto& drafts : {std::vector<std::int32_t>{-1}, std::vector<std::int32_t>{100000},
                             std::vector<std::int32_t>(9, 1)}) {
    EXPECT_TRUE(Fails(decoder->Verify(drafts), ErrorCode::kInvalidArgument));
  }
  while (!decoder->done()) ASSERT_TRUE(decoder->Step());
  ExpectSameSteps(decoder->completion(), want);
}

TEST(SpeculativeDecoder, SaysWhatIsOutOfTurn) {
  EXPECT_FALSE(SpeculativeDecoder::Create(PairOptions(2)));
  const auto decoder = MakeDecoder(PairOptions());
  EXPECT_TRUE(decoder->done());
  EXPECT_FALSE(decoder->Draft());
  EXPECT_FALSE(decoder->Verify());
  EXPECT_FALSE(decoder->Step());
  ASSERT_TRUE(decoder->Begin(Ask(10)));
  EXPECT_FALSE(decoder->Begin(Ask(10)));
  EXPECT_FALSE(decoder->Verify());
  Request bad = Ask(10);
  bad.sampling.temperature = -1;
  decoder->Cancel();
  EXPECT_EQ(decoder->completion().finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(decoder->completion().token_ids.size(), 1u);
  EXPECT_FALSE(decoder->Begin(bad));
  EXPECT_FALSE(decoder->Generate(bad));
}

TEST(SpeculativeDecoder, ARequestCancelledBetweenDraftAndVerifyLeavesTheNextOneAsItIs) {
  const auto want = Generated(*OpenEngine(PairOptions()), Ask(30, 0.9f, 5));
  const auto decoder = MakeDecoder(PairOptions());
  ASSERT_TRUE(decoder->Begin(Ask(30, 0.9f, 4)));
  ASSERT_TRUE(decoder->Step());
  ASSERT_TRUE(decoder->Draft());
  decoder->Cancel();
  EXPECT_TRUE(decoder->done());
  EXPECT_FALSE(decoder->Verify());
  ExpectSameSteps(Got(decoder->Generate(Ask(30, 0.9f, 5))), want);
}

TEST(SpeculativeDecoder, ARequestForNothingIsDoneAtOnce) {
  const auto decoder = MakeDecoder(PairOptions());
  const auto round = Got(decoder->Begin(Ask(0)));
  EXPECT_TRUE(round.tokens.empty());
  EXPECT_TRUE(round.done);
  EXPECT_EQ(decoder->completion().finish_reason, FinishReason::kLength);
}

TEST(SpeculativeDecoder, StatisticsAreTheRequestsCountersSinceTheReset) {
  const auto decoder = MakeDecoder(PairOptions());
  EXPECT_EQ(decoder->statistics().total_steps, 0);
  EXPECT_FALSE(decoder->statistics().acceptance_rate);
  EXPECT_FALSE(decoder->statistics().speedup_estimate);
  const auto first = decoder->Generate(Ask(30, 0, 0, 3)), second = decoder->Generate(Ask(20));
  ASSERT_TRUE(first && second);
  const auto s = decoder->statistics();
  EXPECT_EQ(s.total_steps, first->speculation.rounds + second->speculation.rounds);
  EXPECT_EQ(s.total_draft_tokens, first->speculation.drafted + second->speculation.drafted);
  EXPECT_EQ(s.total_accepted_tokens, first->speculation.accepted + second->speculation.accepted);
  ASSERT_TRUE(s.acceptance_rate && s.speedup_estimate);
  EXPECT_EQ(*s.acceptance_rate, static_cast<double>(s.total_accepted_tokens) /
                                    static_cast<double>(s.total_draft_tokens));
  // (1 - a^(K+1)) / ((1 - a) (c K + 1)), computed as the sum that it stands for, with whole K below
  // and above.
  const SpeculationStats stats = decoder->stats();
  const double a = *s.acceptance_rate;
  const double k = static_cast<double>(stats.drafted) / static_cast<double>(stats.draft_rounds);
  const double c = (stats.draft_ms - stats.draft_prompt_ms) / static_cast<double>(stats.drafted) /
                   (stats.verify_ms / static_cast<double>(stats.rounds));
  const auto tokens = [a](int n) {
    double sum = 0;
    for (int i = 0; i <= n; ++i) sum += std::pow(a, i);
    return sum;
  };
  EXPECT_GE(*s.speedup_estimate * (c * k + 1), tokens(static_cast<int>(std::floor(k))) - 1e-9);
  EXPECT_LE(*s.speedup_estimate * (c * k + 1), tokens(static_cast<int>(std::ceil(k))) + 1e-9);

  ASSERT_TRUE(decoder->Begin(Ask(30)));
  ASSERT_TRUE(decoder->Step());
  ASSERT_TRUE(decoder->Step());
  decoder->ResetStats();  // in the middle of a request
  EXPECT_EQ(decoder->statistics().total_steps, 0);
  EXPECT_FALSE(decoder->statistics().acceptance_rate);
  int drafted = 0;
  const auto round = Got(decoder->Step());
  drafted += round.drafted;
  EXPECT_EQ(decoder->statistics().total_steps, 1);
  EXPECT_EQ(decoder->statistics().total_draft_tokens, drafted);
  const SpeculationStats one = decoder->stats();
  EXPECT_EQ(one.k_histogram[static_cast<std::size_t>(drafted)], 1);
  decoder->Cancel();
  EXPECT_EQ(decoder->statistics().total_steps, 1);
}

TEST(SpeculativeDecoder, ShowsTheAdaptiveLookaheadInUse) {
  EXPECT_EQ(MakeDecoder(PairOptions())->adaptive_lookahead(), nullptr);
  EngineOptions options = PairOptions();
  options.speculative.controller = "ewma";
  const auto decoder = MakeDecoder(options);
  ASSERT_NE(decoder->adaptive_lookahead(), nullptr);
  Request request = Ask(60);
  request.speculative.num_speculative_tokens = 12;
  ASSERT_TRUE(decoder->Begin(request));
  auto reference = AdaptiveLookahead::Create(decoder->adaptive_lookahead()->config());
  ASSERT_TRUE(reference);
  EXPECT_EQ(decoder->adaptive_lookahead()->observations(), 0);
  while (!decoder->done()) {
    const auto drafts = Got(decoder->Draft());
    const auto room = 60 - 1 - static_cast<int>(decoder->completion().token_ids.size());
    EXPECT_EQ(static_cast<int>(drafts.tokens.size()), std::min(room, reference->lookahead()));
    const auto round = Got(decoder->Verify());
    if (round.drafted > 0) reference->Observe(round.drafted, round.accepted);
    EXPECT_EQ(decoder->adaptive_lookahead()->lookahead(), reference->lookahead());
    EXPECT_EQ(decoder->adaptive_lookahead()->mean_accepted(), reference->mean_accepted());
  }
  EXPECT_GT(decoder->adaptive_lookahead()->observations(), 5);
}

}  // namespace
}  // namespace foretoken
