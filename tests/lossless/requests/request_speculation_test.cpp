// SPDX-License-Identifier: Apache-2.0
// A request's own strategy and shortest draft. Each request gets what an engine opened with that
// setting gives it, whatever the requests beside it use.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

constexpr VerifyStrategy kLossy[] = {VerifyStrategy::kTypicalAcceptance,
                                     VerifyStrategy::kLogitComparison, VerifyStrategy::kRelaxed};

Request AskBy(VerifyStrategy strategy, std::uint64_t seed) {
  const bool cold = strategy == VerifyStrategy::kGreedy;
  Request r = Ask(30 + static_cast<int>(seed % 7), cold ? 0.0f : 0.9f, seed);
  r.speculative.strategy = strategy;
  return r;
}

// Two of each kind, and no two equal.
std::vector<Request> MixedRequests() {
  std::vector<Request> requests;
  for (const std::uint64_t first : {10, 50})
    for (const VerifyStrategy strategy : EveryStrategy())
      requests.push_back(AskBy(strategy, first + requests.size()));
  return requests;
}

void ExpectEqual(const Completion& a, const Completion& b, const std::string& where) {
  EXPECT_EQ(a.token_ids, b.token_ids) << where;
  EXPECT_EQ(a.text, b.text) << where;
  EXPECT_EQ(a.strategy, b.strategy) << where;
  EXPECT_EQ(a.lossless, b.lossless) << where;
  EXPECT_EQ(a.speculation.k_histogram, b.speculation.k_histogram) << where;
  EXPECT_EQ(a.speculation.accepted, b.speculation.accepted) << where;
}

std::vector<Completion> AloneByRequest(const std::vector<Request>& requests) {
  return GeneratedInTurn(*OpenEngine(PairOptions()), requests);
}

std::string WhyNot(Engine& engine, const Request& request) {
  return MessageOf(engine.Generate(request));
}

TEST(RequestStrategy, GivesWhatAnEngineThatWasOpenedWithItGives) {
  const auto engine = OpenEngine(PairOptions());
  const auto other = OpenEngine(OptionsBy(VerifyStrategy::kTypicalAcceptance));
  for (const VerifyStrategy strategy : EveryStrategy()) {
    const auto own = OpenEngine(OptionsBy(strategy));
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const Request r = AskBy(strategy, seed);
      Request unsaid = r;
      unsaid.speculative.strategy.reset();
      const Completion want = Generated(*own, unsaid);
      ExpectEqual(Generated(*engine, r), want, Name(strategy));
      ExpectEqual(Generated(*other, r), want, Name(strategy));
    }
  }
}

TEST(RequestStrategy, StandsInTheResultWithItsWordOnLosslessness) {
  const auto engine = OpenEngine(PairOptions());
  for (const VerifyStrategy strategy : EveryStrategy()) {
    const Completion c = Generated(*engine, AskBy(strategy, 1));
    const bool lossy =
        std::find(std::begin(kLossy), std::end(kLossy), strategy) != std::end(kLossy);
    EXPECT_EQ(c.strategy, strategy == VerifyStrategy::kAuto ? "residual" : Name(strategy));
    EXPECT_EQ(c.lossless, !lossy) << c.strategy;
  }
  EngineOptions bent = PairOptions();
  bent.speculative.skip_sample_adjustment = true;
  const auto biased = OpenEngine(bent);
  EXPECT_FALSE(Generated(*biased, AskBy(VerifyStrategy::kAuto, 1)).lossless);
  EXPECT_FALSE(Generated(*biased, AskBy(VerifyStrategy::kResidual, 1)).lossless);
  EXPECT_TRUE(Generated(*biased, AskBy(VerifyStrategy::kSampleMatch, 1)).lossless);
}

TEST(RequestStrategy, IsGreedyAndLosslessAtTemperature0) {
  const auto engine = OpenEngine(PairOptions());
  const Completion plain = Generated(*engine, Ask(30, 0, 1, 0));
  for (const VerifyStrategy strategy : EveryStrategy()) {
    Request r = Ask(30, 0, 1);
    r.speculative.strategy = strategy;
    const auto own = OpenEngine(OptionsBy(strategy));
    for (Engine* const of : {engine.get(), own.get()}) {
      const Completion c = Generated(*of, r);
      EXPECT_EQ(c.strategy, "greedy") << Name(strategy);
      EXPECT_TRUE(c.lossless) << Name(strategy);
      EXPECT_EQ(c.token_ids, plain.token_ids) << Name(strategy);
    }
  }
  // Temperature 0 does not replace synthetic acceptance.
  EngineOptions synthetic = PairOptions();
  synthetic.speculative.synthetic_acceptance_rate = 0.9;
  const Completion c = Generated(*OpenEngine(synthetic), Ask(30, 0, 1));
  EXPECT_EQ(c.strategy, "synthetic");
  EXPECT_FALSE(c.lossless);
}

TEST(RequestStrategy, IsLosslessWhereNothingDrafts) {
  for (const VerifyStrategy strategy : kLossy) {
    const auto engine = OpenEngine(OptionsBy(strategy));
    Request none = Ask(30, 0.9f, 1), off = none;
    const Completion drafted = Generated(*engine, none);
    EXPECT_FALSE(drafted.lossless) << Name(strategy);
    none.speculative.method = "none";
    off.speculative.enabled = false;
    Request k0 = Ask(30, 0.9f, 1, 0), plain = k0;
    plain.speculative.strategy = VerifyStrategy::kSampleMatch;
    const Completion want = Generated(*engine, plain);
    for (const Request& r : {none, off, k0}) {
      const Completion c = Generated(*engine, r);
      EXPECT_EQ(c.speculation.drafted, 0);
      EXPECT_TRUE(c.lossless) << Name(strategy);
      EXPECT_EQ(c.token_ids, want.token_ids) << Name(strategy);
    }
  }
}

TEST(RequestStrategy, OfOthersInABatchChangesNoText) {
  const auto requests = MixedRequests();
  const auto alone = AloneByRequest(requests);
  const auto engine = OpenEngine(PairOptions(static_cast<int>(requests.size())));
  const auto together = GeneratedTogether(*engine, requests);
  for (std::size_t i = 0; i < requests.size(); ++i)
    ExpectEqual(together[i], alone[i], std::string("request of ") + alone[i].strategy);
}

TEST(RequestStrategy, OfOthersThatComeAndGoChangesNoText) {
  const auto requests = MixedRequests();
  const auto alone = AloneByRequest(requests);
  const auto engine = OpenEngine(PairOptions(4));
  const auto beside = GeneratedBesideOthers(*engine, requests, 5);
  for (std::size_t i = 0; i < requests.size(); ++i)
    ExpectEqual(beside[i], alone[i], std::string("request of ") + alone[i].strategy);
}

// The negative control: if strategies were mixed up or ignored, the tests above would detect it.
TEST(RequestStrategy, OfItsOwnChangesATextsDraws) {
  const auto engine = OpenEngine(PairOptions());
  for (const VerifyStrategy a : EveryStrategy())
    for (const VerifyStrategy b : EveryStrategy()) {
      const auto is = [&](VerifyStrategy one, VerifyStrategy other) {
        return a == one && b == other;
      };
      const bool same_rule = is(VerifyStrategy::kAuto, VerifyStrategy::kResidual) ||
                             is(VerifyStrategy::kResidual, VerifyStrategy::kAuto);  // by a model
      if (std::string_view(a.name()) >= b.name() || same_rule) continue;
      int differ = 0;
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        Request r = AskBy(a, seed), s = AskBy(b, seed);
        differ += Generated(*engine, r).token_ids != Generated(*engine, s).token_ids;
      }
      EXPECT_GT(differ, 0) << Name(a) << " and " << Name(b);
    }
}

// ---- Refusals -----------------------------------------------------------------------------------

TEST(RequestStrategy, IsRefusedByTheRulesOfTheFlag) {
  const auto engine = OpenEngine(PairOptions());
  Request warm = Ask(4, 0.7f);
  warm.speculative.strategy = VerifyStrategy::kGreedy;
  EXPECT_EQ(WhyNot(*engine, warm),
            "verify: 'greedy' with temperature 0.7 would give greedy text; use temperature 0, or "
            "residual or sample-match");
  for (const VerifyStrategy strategy : {VerifyStrategy::kResidual, VerifyStrategy::kBlock}) {
    Request r = AskBy(strategy, 1);
    EXPECT_EQ(WhyNot(*engine, r), "");
    r.speculative.method = "ngram";
    EXPECT_EQ(WhyNot(*engine, r),
              std::string("verify: '") + Name(strategy) +
                  "' needs a drafter that reports its distributions, and ngram reports "
                  "none; use sample-match");
  }
  Request r = AskBy(VerifyStrategy::kLogitComparison, 1);
  r.speculative.method = "ngram";
  EXPECT_EQ(WhyNot(*engine, r),
            "verify: 'logit-comparison' needs a drafter that reports its logits, and ngram reports "
            "none; use sample-match");
}

TEST(RequestStrategy, IsRefusedWhereOneVerifierServesAll) {
  EngineOptions synthetic = PairOptions();
  synthetic.speculative.synthetic_acceptance_rate = 0.5;
  EngineOptions own = PairOptions();
  own.verifier = std::make_shared<AcceptsAll>();
  for (const EngineOptions& options : {synthetic, own}) {
    const auto engine = OpenEngine(options);
    EXPECT_TRUE(engine->summary().strategies.empty());
    const std::string name = engine->summary().strategy;
    EXPECT_EQ(
        WhyNot(*engine, AskBy(VerifyStrategy::kSampleMatch, 1)),
        "verify: '" + name + "' verifies every request of this engine; leave 'sample-match' out");
    EXPECT_EQ(WhyNot(*engine, AskBy(VerifyStrategy::kAuto, 1)), "");
  }
}

TEST(RequestStrategy, NamesAreThoseThatTheDraftersOfTheEngineFit) {
  std::vector<std::string> all, unread;
  for (const StrategyInfo* const row : AllStrategies()) {
    all.emplace_back(row->name);
    if (!row->needs_q && !row->needs_logits) unread.emplace_back(row->name);
  }
  EXPECT_EQ(OpenEngine(PairOptions())->summary().strategies, all);
  const auto engine = OpenEngine(TargetOptions());
  EXPECT_EQ(engine->summary().strategies, unread);
  for (const VerifyStrategy strategy : EveryStrategy()) {
    const auto& names = engine->summary().strategies;
    const bool named = strategy == VerifyStrategy::kAuto ||
                       std::find(names.begin(), names.end(), Name(strategy)) != names.end();
    EXPECT_EQ(WhyNot(*engine, AskBy(strategy, 1)).empty(), named) << Name(strategy);
  }
}

// ---- The shortest draft -------------------------------------------------------------------------

// Its drafts end where the draft model is not certain enough, at many lengths.
Request Unsure(int seed) {
  Request r = Ask(40, 0.9f, static_cast<std::uint64_t>(seed), 6);
  r.speculative.strategy = VerifyStrategy::kSampleMatch;
  r.speculative.draft_p_min = 0.05f;
  return r;
}
std::int64_t Drafts(const Completion& c, std::size_t least, std::size_t below) {
  const auto& rounds = c.speculation.k_histogram;
  below = std::min(below, rounds.size());
  return std::accumulate(rounds.begin() + static_cast<std::ptrdiff_t>(std::min(least, below)),
                         rounds.begin() + static_cast<std::ptrdiff_t>(below), std::int64_t{0});
}

TEST(RequestLeastDrafts, KeepsShorterOnesBackAndTheTextAsItIs) {
  const auto engine = OpenEngine(PairOptions());
  std::int64_t shorter = 0, longer = 0;
  for (int seed = 0; seed < 8; ++seed) {
    Request r = Unsure(seed);
    const Completion any = Generated(*engine, r);
    r.speculative.min_speculative_tokens = 3;
    const Completion least = Generated(*engine, r);
    EXPECT_EQ(least.token_ids, any.token_ids);
    EXPECT_EQ(Drafts(least, 1, 3), 0);
    shorter += Drafts(any, 1, 3);  // the control
    longer += Drafts(least, 3, 7);
  }
  EXPECT_GT(shorter, 0);
  EXPECT_GT(longer, 0);
}

// The controller respects it: no shorter length is chosen, and no draft is made to be dropped.
TEST(RequestLeastDrafts, ArePartOfTheChoice) {
  for (const char* controller : {"cost-model", "fixed", "ewma", "heuristic", "by-text"})
    for (const char* method : {"standalone", "ngram"}) {
      EngineOptions options = PairOptions();
      options.speculative.controller = controller;
      options.speculative.min_speculative_tokens = 4;
      const auto engine = OpenEngine(options);
      std::int64_t drafted = 0;
      for (int seed = 0; seed < 6; ++seed) {
        Request r = Ask(60, 0.9f, static_cast<std::uint64_t>(seed), 7);
        r.speculative.method = method;
        r.speculative.strategy = VerifyStrategy::kSampleMatch;
        const Completion c = Generated(*engine, r);
        EXPECT_EQ(Drafts(c, 1, 4), 0) << controller << " " << method;
        drafted += c.speculation.drafted;
        // A model's drafts are all sent.
        if (std::string_view(method) == "standalone")
          EXPECT_LE(c.speculation.draft_forwards, c.speculation.drafted + c.speculation.rounds);
      }
      const auto& chosen = engine->counts().chosen;
      EXPECT_EQ(std::accumulate(chosen.begin() + 1, chosen.begin() + 4, std::int64_t{0}), 0)
          << controller << " " << method;
      if (std::string_view(controller) == "fixed") EXPECT_GT(drafted, 0) << method;
    }
}

// If no strategy is named, one is used under which it can be kept.
TEST(RequestLeastDrafts, ChooseTheStrategyThatIsLeftOpen) {
  const auto engine = OpenEngine(PairOptions());
  for (int seed = 0; seed < 8; ++seed) {
    Request r = Unsure(seed);
    r.speculative.strategy.reset();
    EXPECT_EQ(Generated(*engine, r).strategy, "residual");
    r.speculative.min_speculative_tokens = 3;
    const Completion c = Generated(*engine, r);
    EXPECT_EQ(c.strategy, "sample-match");
    EXPECT_EQ(Drafts(c, 1, 3), 0);
  }
}

// The engine's own setting is refused, not silently ignored, where a request's rule cannot keep it.
TEST(RequestLeastDrafts, OfTheEngineAreRefusedWithARuleThatVerifiesDistributions) {
  EngineOptions options = PairOptions();
  options.speculative.min_speculative_tokens = 3;
  const auto engine = OpenEngine(options);
  for (const VerifyStrategy strategy : {VerifyStrategy::kResidual, VerifyStrategy::kBlock}) {
    Request r = Unsure(1);
    r.speculative.strategy = strategy;
    EXPECT_EQ(
        WhyNot(*engine, r),
        std::string("min_speculative_tokens: under ") + Name(strategy) +
            " a drawn draft must be verified, and dropping short ones would bias the text; set "
            "it to 0 or use sample-match");
    r.speculative.min_speculative_tokens = 0;
    EXPECT_EQ(WhyNot(*engine, r), "");
    r.speculative.min_speculative_tokens.reset();
    r.sampling.temperature = 0;  // greedy, which reads no distributions
    EXPECT_EQ(WhyNot(*engine, r), "");
  }
  options.speculative.skip_sample_adjustment = true;  // residual, though it is left open
  EXPECT_TRUE(Fails(Engine::Open(options), "would bias the text"));
}

TEST(RequestLeastDrafts, StandInPlaceOfTheEnginesOwn) {
  EngineOptions options = PairOptions();
  options.speculative.min_speculative_tokens = 3;
  const auto three = OpenEngine(options), none = OpenEngine(PairOptions());
  for (int seed = 0; seed < 8; ++seed) {
    Request r = Unsure(seed), given = r;
    given.speculative.min_speculative_tokens = 3;
    ExpectEqual(Generated(*three, r), Generated(*none, given), "3");
    given.speculative.min_speculative_tokens = 0;
    ExpectEqual(Generated(*three, given), Generated(*none, r), "0");
  }
}

TEST(RequestLeastDrafts, OfTheEngineAreNoMoreThanARequestsMost) {
  EngineOptions options = PairOptions();
  options.speculative.min_speculative_tokens = 4;
  const auto engine = OpenEngine(options);
  Request r = Ask(30, 0, 3, 2);
  EXPECT_GT(Generated(*engine, r).speculation.drafted, 0);
}

TEST(RequestLeastDrafts, AreRefusedByTheRulesOfTheFlag) {
  const auto engine = OpenEngine(PairOptions());
  Request r = Unsure(1);
  r.speculative.min_speculative_tokens = 7;
  EXPECT_EQ(WhyNot(*engine, r),
            "min_speculative_tokens: 7 is more than the 6 that a round drafts at most; lower it or "
            "raise num_speculative_tokens");
  r.speculative.min_speculative_tokens = -1;
  EXPECT_TRUE(Says(WhyNot(*engine, r), "min_speculative_tokens: -1 is not in [0, 64]"));
  r.speculative.min_speculative_tokens = 2;
  EXPECT_EQ(WhyNot(*engine, r), "");
  for (const VerifyStrategy strategy : {VerifyStrategy::kResidual, VerifyStrategy::kBlock}) {
    r.speculative.strategy = strategy;
    EXPECT_TRUE(Says(WhyNot(*engine, r), "would bias the text"));
  }
}

}  // namespace
}  // namespace foretoken
