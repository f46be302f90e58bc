// SPDX-License-Identifier: Apache-2.0
// Faults of other designs of speculative decoding, tested where they would show in an engine.
// Faults of the rules themselves have their tests in src/verify; docs/speculation.md, "Proof",
// lists both.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "foretoken/drafter.h"
#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

// Knows the text, and makes a mistake at every draft whose place in its round is `wrong` (from 0).
class Scripted final : public Drafter {
 public:
  Scripted(std::vector<std::int32_t> text, int wrong) : text_(std::move(text)), wrong_(wrong) {}
  std::string_view name() const override { return "scripted"; }
  void Propose(int, DraftProposal& proposal) override {
    for (int i = 0; proposal.left() > 0; ++i) {
      const std::size_t at = proposal.text().size();
      const std::int32_t right = at < text_.size() ? text_[at] : 0;
      proposal.Push(i == wrong_ ? (right + 1) % 300 : right);
    }
  }

 private:
  std::vector<std::int32_t> text_;
  int wrong_;
};

Completion PlainText(Request r) {
  r.speculative.method = "none";
  return Generated(*OpenEngine(TargetOptions()), r);
}

std::unique_ptr<Engine> OpenScripted(const Completion& plain, int wrong, int max_sequences = 1) {
  EngineOptions options = TargetOptions(max_sequences);
  options.drafter = std::make_shared<Scripted>(WholeText(plain), wrong);
  return OpenEngine(options);
}

// A cache that is cut one entry too far or too little gives other log-probabilities from then on;
// tested after each number of accepted drafts, repeatedly.
TEST(KnownFaults, CacheIsCutToTheVeryEntryAfterEveryNumberOfAcceptedDrafts) {
  for (const float temperature : {0.0f, 0.9f}) {
    Request r = Ask(60, temperature, 5);
    r.logprobs = 2;
    const Completion plain = PlainText(r);
    for (int k = 1; k <= 8; ++k)
      for (int wrong = 0; wrong <= k; ++wrong) {  // k: none is
        r.speculative.num_speculative_tokens = k;
        const Completion got = Generated(*OpenScripted(plain, wrong), r);
        ExpectSame(got, plain, fmt::format("K {}, wrong {}", k, wrong));
        const auto& s = got.speculation;
        EXPECT_EQ(s.rolled_back, s.drafted - s.accepted);
        if (wrong == 0) EXPECT_EQ(s.accepted, 0);
        if (wrong == k) EXPECT_EQ(s.accepted, s.drafted);
      }
  }
}

// A cache that keeps rejected entries fills up before the context does.
TEST(KnownFaults, RejectedDraftsTakeNoRoomInTheContext) {
  Request r = Ask(1000);
  const Completion plain = PlainText(r);
  ASSERT_EQ(plain.finish_reason, FinishReason::kLength);
  r.speculative.num_speculative_tokens = 8;
  const auto engine = OpenScripted(plain, 0);
  for (int again = 0; again < 3; ++again) {
    const Completion got = Generated(*engine, r);
    EXPECT_EQ(got.token_ids, plain.token_ids);
    EXPECT_EQ(WholeText(got).size(), 96u);
    EXPECT_EQ(got.speculation.accepted, 0);
    EXPECT_GT(got.speculation.rolled_back, 400);
  }
}

TEST(KnownFaults, ATextTakesAsManyRoundsAsItNeeds) {
  const Request r = Ask(60, 0, 0, 4);
  const Completion plain = PlainText(r);
  for (const int wrong : {0, 2, 4}) {
    const Completion got = Generated(*OpenScripted(plain, wrong), r);
    // The prefill gives the first token; each round commits its right drafts and one more token.
    EXPECT_EQ(got.speculation.rounds, (59 + wrong) / (wrong + 1)) << wrong;
    EXPECT_EQ(got.speculation.emitted, 60);
  }
}

TEST(KnownFaults, OfSeveralEndTokensTheFirstInTheTextEndsItWhereverItFallsInARound) {
  const Completion plain = PlainText(Ask(40));
  const auto& text = plain.token_ids;
  for (int k = 1; k <= 8; ++k) {
    const auto engine = OpenScripted(plain, k);
    for (std::size_t i = 0; i + 3 < 30; ++i) {
      Request r = Ask(40, 0, 0, k);
      r.stop_token_ids = {text[i + 3], text[i + 1]};  // the later one is named first
      const auto first = std::find_first_of(text.begin(), text.end(), r.stop_token_ids.begin(),
                                            r.stop_token_ids.end());
      const Completion got = Generated(*engine, r);
      EXPECT_EQ(got.token_ids, std::vector<std::int32_t>(text.begin(), first + 1));
      EXPECT_EQ(got.finish_reason, FinishReason::kStop);
    }
  }
}

// Drafts behind a stop string are verified, and right; still they do not belong to the answer, the
// events or the counts.
TEST(KnownFaults, NothingBehindAnEndIsEmittedOrCounted) {
  const Completion plain = PlainText(Ask(40));
  const auto engine = OpenScripted(plain, 8);
  int behind = 0;
  for (std::size_t at = 0; at + 3 < std::min<std::size_t>(plain.text.size(), 40); ++at) {
    Request r = Ask(40, 0, 0, 8);
    r.stop = {plain.text.substr(at, 3)};
    std::string streamed;
    std::vector<std::int32_t> ids;
    const Completion got = Got(engine->Generate(r, [&](const RoundEvent& round) {
      for (const auto& event : round.events) streamed += event.text, ids.push_back(event.id);
      return true;
    }));
    EXPECT_EQ(got.text, plain.text.substr(0, plain.text.find(r.stop[0])));
    EXPECT_EQ(streamed, got.text);
    EXPECT_EQ(ids, got.token_ids);
    const auto& s = got.speculation;
    EXPECT_EQ(s.emitted, static_cast<std::int64_t>(ids.size()));
    EXPECT_EQ(s.emitted, s.accepted + s.recovered + s.bonus + s.plain);
    behind += s.accepted < s.drafted;
  }
  EXPECT_GT(behind, 10);  // drafts that were right and came too late
}

TEST(KnownFaults, NoTextIsLongerThanAskedFor) {
  const Completion plain = PlainText(Ask(40));
  const auto engine = OpenScripted(plain, 64);
  for (int n = 0; n <= 20; ++n)
    for (const int k : {1, 3, 8, 64}) {
      const Completion got = Generated(*engine, Ask(n, 0, 0, k));
      EXPECT_EQ(got.token_ids.size(), static_cast<std::size_t>(n)) << k;
      EXPECT_LE(got.speculation.drafted, std::max(0, n - 1 - 1)) << k;
    }
}

TEST(KnownFaults, WithoutDraftsThereIsNoRateAndNotOneOfZero) {
  const Completion plain = PlainText(Ask(20));
  EXPECT_FALSE(plain.speculation.acceptance_rate());
  EXPECT_FALSE(plain.speculation.mean_acceptance_length());
  const Completion wrong = Generated(*OpenScripted(plain, 0), Ask(20));
  ASSERT_TRUE(wrong.speculation.acceptance_rate());
  EXPECT_EQ(*wrong.speculation.acceptance_rate(), 0);
  EXPECT_EQ(*wrong.speculation.mean_acceptance_length(), 1);
}

// A threshold lowers the probability of acceptance by its value; drafts can still pass it. Drafts
// here come from the target itself, so that p = q.
TEST(KnownFaults, AnAcceptanceThresholdIsNoShutGate) {
  const auto rate = [](float threshold) {
    EngineOptions options = PairOptions(8);
    options.draft_model = Pair().target;
    options.speculative.strategy = VerifyStrategy::kResidual;
    options.speculative.acceptance_threshold = threshold;
    const auto engine = OpenEngine(options);
    EXPECT_EQ(engine->summary().lossless, threshold == 0);
    std::vector<Request> requests;
    for (unsigned i = 0; i < 100; ++i) requests.push_back(Ask(31, 1, i, 1));
    double drafted = 0, accepted = 0;
    for (const Completion& c : GeneratedTogether(*engine, requests))
      drafted += static_cast<double>(c.speculation.drafted),
          accepted += static_cast<double>(c.speculation.accepted);
    return accepted / drafted;
  };
  EXPECT_EQ(rate(0), 1);
  EXPECT_NEAR(rate(0.3f), 0.7, 0.05);  // about 1,800 drafts: four deviations
  EXPECT_EQ(rate(1), 0);
}

// One number for every distribution, or distributions of another round, would accept other shares:
// with p = q all drafts are accepted, for every temperature and every filter.
TEST(KnownFaults, DistributionsOfDraftsAreThoseTheyWereDrawnFrom) {
  EngineOptions options = PairOptions(8);
  options.draft_model = Pair().target;
  for (const VerifyStrategy strategy : {VerifyStrategy::kResidual, VerifyStrategy::kBlock}) {
    options.speculative.strategy = strategy;
    const auto engine = OpenEngine(options);
    std::vector<Request> requests;
    for (unsigned i = 0; i < 40; ++i) {
      Request& r = requests.emplace_back(Ask(40, 0.5f + 0.03f * static_cast<float>(i), i, 5));
      if (i % 4 == 1) r.sampling.top_p = 0.8f;
      if (i % 4 == 2) r.sampling.repetition_penalty = 1.4f, r.sampling.top_k = 30;
      if (i % 4 == 3) r.sampling.presence_penalty = 1, r.sampling.min_p = 0.02f;
    }
    for (const Completion& c : GeneratedTogether(*engine, requests)) {
      EXPECT_GT(c.speculation.drafted, 0);
      EXPECT_EQ(c.speculation.accepted, c.speculation.drafted) << Name(strategy);
    }
  }
}

// The bonus token is drawn, not the best one.
TEST(KnownFaults, BonusTokensAreDrawn) {
  EngineOptions options = PairOptions(8);
  options.draft_model = Pair().target;
  options.speculative.strategy = VerifyStrategy::kResidual;
  const auto engine = OpenEngine(options);
  std::vector<Request> requests;
  for (unsigned i = 0; i < 30; ++i) {
    requests.push_back(Ask(30, 1, i, 2));
    requests.back().logprobs = 1;
  }
  int best = 0, bonus = 0;
  const auto completions = engine->GenerateBatch(requests, [&](const RoundEvent& round) {
    for (const auto& event : round.events)
      if (event.origin == TokenOrigin::kBonus) {
        ++bonus;
        best += event.logprobs->top.at(0).first == event.id;
      }
    return true;
  });
  ASSERT_TRUE(completions);
  EXPECT_GT(bonus, 200);
  EXPECT_LT(best, bonus * 3 / 4);
}

// One sequence's short draft, or its nearness to the end, does not shorten another's draft.
TEST(KnownFaults, OneSequenceNeverShortensAnothersDraft) {
  const Completion plain = PlainText(Ask(40));
  const auto engine = OpenScripted(plain, 64, 4);
  std::vector<Request> requests = {Ask(40, 0, 0, 8), Ask(40, 0, 0, 1), Ask(4, 0, 0, 8),
                                   Ask(40, 0, 0, 0)};
  const auto together = GeneratedTogether(*engine, requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Completion alone = Generated(*engine, requests[i]);
    EXPECT_EQ(together[i].token_ids, alone.token_ids) << i;
    EXPECT_EQ(together[i].speculation.k_histogram, alone.speculation.k_histogram) << i;
  }
  EXPECT_GE(together[0].speculation.k_histogram[8], 4);
}

}  // namespace
}  // namespace foretoken
