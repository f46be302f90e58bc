// SPDX-License-Identifier: Apache-2.0
#include "engine/step/verification.h"

#include <gtest/gtest.h>

#include "engine/step/fake_engine_testing.h"

namespace foretoken::engine {
namespace {

// A request that decodes, with the drafts of its next round.
struct Round {
  explicit Round(int wrong_every = 0, const FakeEngine::Options& options = {}) : engine(options) {
    engine.drafter->wrong_every = wrong_every;
    engine.Begin(Ask(10, 40));
    engine.Step();
    engine.Plan(), engine.Propose();
  }
  // With rows of logits that are not finite, the pass computed.
  const SequenceVerdict& VerifyWithout(int bad_row) {
    Flatten(engine.plan, engine.drafts, engine.sequences(), engine.cache, *engine.pass);
    kv::Transaction pending(engine.cache, engine.pass->segments);
    model::PassResult result = engine.runner.Run(engine.pass->View());
    finite.assign(result.finite_rows.begin(), result.finite_rows.end());
    finite.at(static_cast<std::size_t>(bad_row)) = 0;
    result.finite_rows = finite;
    engine.verification->Verify(engine.plan, engine.drafts, *engine.pass, result,
                                engine.sequences(), engine.verdicts);
    return engine.verdicts.entries.at(0);
  }
  FakeEngine engine;
  std::vector<std::uint8_t> finite;
};

TEST(Verification, AcceptsTheDraftsThatTheTargetWouldChoose) {
  Round round;
  const SequenceVerdict verdict = round.engine.Verify().entries.at(0);
  EXPECT_EQ(verdict.verdict.accepted, 4);
  EXPECT_EQ(verdict.verdict.kind, round::NextKind::kBonus);
  EXPECT_EQ(round.engine.verdicts.kept.at(0), 5);
  EXPECT_EQ(verdict.not_finite, -1);
  EXPECT_EQ(verdict.processor_fault, -1);
}

TEST(Verification, KeepsThePrefixBeforeTheFirstWrongDraft) {
  Round round(3);
  const SequenceVerdict verdict = round.engine.Verify().entries.at(0);
  EXPECT_EQ(verdict.verdict.accepted, 2);
  EXPECT_EQ(verdict.verdict.kind, round::NextKind::kRecovered);
  EXPECT_EQ(round.engine.verdicts.kept.at(0), 3);
  EXPECT_EQ(round.engine.cache.length(0), 10 + 3);
}

TEST(Verification, APlainRoundGivesTheTargetsToken) {
  FakeEngine::Options options;
  options.drafts = 1;
  Round round(0, options);
  round.engine.drafts.entries[0].proposal = {};
  const SequenceVerdict verdict = round.engine.Verify().entries.at(0);
  EXPECT_EQ(verdict.verdict.accepted, 0);
  EXPECT_EQ(verdict.verdict.kind, round::NextKind::kPlain);
  EXPECT_EQ(verdict.verdict.next, round.engine.Expected(Ask(10, 40))[1]);
}

TEST(Verification, ALogitRowThatIsNotFiniteEndsTheTextOnlyWhereItIsReached) {
  {
    Round round;
    EXPECT_EQ(round.VerifyWithout(0).not_finite, 11);  // the prompt and one token
  }
  {
    Round round;
    const SequenceVerdict verdict = round.VerifyWithout(2);
    EXPECT_EQ(verdict.verdict.accepted, 2);  // those before it are good
    EXPECT_EQ(verdict.not_finite, 13);
  }
  {
    Round round(1);  // the first draft is wrong, so no row behind it matters
    const SequenceVerdict verdict = round.VerifyWithout(2);
    EXPECT_EQ(verdict.verdict.accepted, 0);
    EXPECT_EQ(verdict.not_finite, -1);
  }
}

TEST(Verification, APromptThatGoesOnHasNoVerdict) {
  FakeEngine engine;
  engine.Begin(Ask(200, 4));
  engine.Plan(), engine.Propose(), engine.Verify();
  ASSERT_FALSE(engine.plan.entries.at(0).decodes);
  EXPECT_EQ(engine.verdicts.entries.at(0).verdict.next, kNoToken);
  EXPECT_EQ(engine.verdicts.kept.at(0), engine.plan.entries[0].n_feed);
}

TEST(Verification, FindsTheFaultOfALogitsProcessor) {
  FakeEngine engine;
  Request request = Ask(10, 4);
  request.sampling.processors.push_back([](std::span<const Token>, std::span<float> logits) {
    logits[0] = std::numeric_limits<float>::quiet_NaN();
  });
  engine.Begin(request);
  engine.Plan(), engine.Propose(), engine.Verify();
  EXPECT_EQ(engine.verdicts.entries.at(0).processor_fault, 10);
}

TEST(Verification, EachSequenceHasItsOwnVerdict) {
  FakeEngine engine;
  engine.Begin(Ask(10, 40, 1));
  engine.Begin(Ask(12, 40, 2));
  while (engine.Step() && engine.plan.prefills()) continue;
  engine.Plan(), engine.Propose();
  ASSERT_EQ(engine.plan.size(), 2U);
  engine.drafts.entries[0].proposal = {};
  engine.Verify();
  EXPECT_EQ(engine.verdicts.entries.at(0).verdict.accepted, 0);
  EXPECT_EQ(engine.verdicts.entries.at(1).verdict.accepted, 4);
  EXPECT_EQ(engine.verdicts.kept, (std::vector<int>{1, 5}));
}

// Requests whose rows of logits are lost wherever verification asks for a token only give the same
// tokens, and those that need whole rows have them.
TEST(Verification, TakesTheTokensThatRowsChose) {
  const auto run = [](bool chooses, bool drafts, auto change, int* n_chosen) {
    FakeEngine::Options options;
    options.runner.chooses = chooses;
    FakeEngine engine(options);
    engine.drafter->wrong_every = 3;
    Request request = Ask(10, 40);
    if (!drafts) request.speculative.method = "none";
    change(request);
    const Completion completion = engine.Run(request);
    if (n_chosen != nullptr) *n_chosen = engine.runner.n_chosen();
    return completion;
  };
  using Change = std::function<void(Request&)>;
  struct Case {
    const char* name;
    bool chooses;  // expected with drafts: some row is not whole
    Change change;
  };
  const auto sampled = [](float top_p) {
    return [top_p](Request& r) { r.sampling.temperature = 0.9f, r.sampling.top_p = top_p; };
  };
  const auto with = [&](VerifyStrategy strategy) {
    return [=](Request& r) { sampled(1)(r), r.speculative.strategy = strategy; };
  };
  const Case cases[] = {
      {"greedy", true, [](Request&) {}},
      {"sample-match", true, with(*VerifyStrategy::Named("sample-match"))},
      {"log-probabilities", false, [](Request& r) { r.logprobs = 2; }},
      {"prompt log-probabilities", true, [](Request& r) { r.prompt_logprobs = 1; }},
      {"bias", false,
       [](Request& r) {
         r.sampling.logit_bias = {{3, 2.0f}};
       }},
      {"penalty", false, [](Request& r) { r.sampling.presence_penalty = 1; }},
      {"top-p", false, sampled(0.9f)},
      {"end tokens", true, [](Request& r) { r.stop_token_ids = {7}, r.min_new_tokens = 20; }},
  };
  for (const Case& c : cases)
    for (const bool drafts : {true, false}) {
      int n_chosen = 0;
      const Completion whole = run(false, drafts, c.change, &n_chosen);
      EXPECT_EQ(n_chosen, 0);
      const Completion chosen = run(true, drafts, c.change, &n_chosen);
      EXPECT_EQ(chosen.token_ids, whole.token_ids) << c.name;
      EXPECT_EQ(n_chosen > 0, c.chooses) << c.name;
      EXPECT_EQ(chosen.speculation.accepted, whole.speculation.accepted) << c.name;
      ASSERT_EQ(chosen.logprobs.size(), whole.logprobs.size());
      ASSERT_EQ(chosen.prompt_logprobs.size(), whole.prompt_logprobs.size());
      for (std::size_t i = 0; i < whole.logprobs.size(); ++i)
        EXPECT_EQ(chosen.logprobs[i].logprob, whole.logprobs[i].logprob) << c.name;
      for (std::size_t i = 0; i < whole.prompt_logprobs.size(); ++i)
        EXPECT_EQ(chosen.prompt_logprobs[i].logprob, whole.prompt_logprobs[i].logprob);
    }
}

// Strategies that compare distributions need the rows of their drafts, but not those of plain rounds.
TEST(Verification, AStrategyWithDistributionsChoosesOnlyWithoutDrafts) {
  FakeEngine::Options options;
  options.runner.chooses = true;
  FakeEngine engine(options);
  Request request = Ask(10, 40);
  request.sampling.temperature = 1;
  request.speculative.strategy = *VerifyStrategy::Named("target-probability");
  engine.Begin(request);
  engine.Step();
  const int before = engine.runner.n_chosen();
  EXPECT_EQ(before, 1);  // the first token
  engine.Plan(), engine.Propose();
  ASSERT_GT(engine.drafts.entries[0].length(), 0);
  engine.Verify();
  EXPECT_EQ(engine.runner.n_chosen(), before);
}

}  // namespace
}  // namespace foretoken::engine
