// SPDX-License-Identifier: Apache-2.0
#include "engine/requests/speculation_rules.h"

#include <gtest/gtest.h>

#include "base/failure_testing.h"
#include "loader/drafts/fake_drafter_testing.h"
#include "verify/synthetic.h"

namespace foretoken::engine {
namespace {

// Two drafters: "model" reports its distributions, "lookup" does not. "model" drafts by default.
class SpeculationRulesTest : public testing::Test {
 protected:
  SpeculationRulesTest() {
    Add("model").reports_distributions = true;
    Add("lookup");
    EXPECT_TRUE(drafters_.SetDefaults("model"));
    options_.speculative.controller = "fixed";
    options_.speculative.num_speculative_tokens = 4;
  }

  loader::FakeDrafter& Add(const std::string& name) {
    auto drafter = std::make_unique<loader::FakeDrafter>(runner_, 50);
    loader::FakeDrafter& added = *drafter;
    drafters_.Add({.method = name, .name = name, .full_name = name, .drafter = std::move(drafter)});
    return added;
  }

  // With the options and the drafters that the test has set.
  SpeculationRules Rules() const {
    return SpeculationRules(options_, drafters_, verify::Verifiers(options_.speculative));
  }
  static Request At(float temperature) {
    Request request;
    request.sampling.temperature = temperature;
    return request;
  }
  static std::string VerifierOf(const SpeculationRules& rules, const Request& request) {
    return std::string(rules.VerifierFor(request).name());
  }
  std::string WhyNot(const Request& request) const { return MessageOf(Rules().Check(request)); }

  model::FakeRunner runner_;
  EngineOptions options_;
  loader::DrafterSet drafters_;
};

// No token may depend on a caller's drafts, whatever the engine's own are verified by.
TEST_F(SpeculationRulesTest, GivenDraftsAreVerifiedBySampleMatch) {
  Request request = At(1), greedy = At(0);
  request.drafts.emplace(), greedy.drafts.emplace();
  options_.speculative.strategy = VerifyStrategy::kTypicalAcceptance;
  options_.speculative.use_relaxed_acceptance_for_thinking = true;
  const SpeculationRules rules = Rules();
  EXPECT_EQ(VerifierOf(rules, request), "sample-match");
  EXPECT_EQ(VerifierOf(rules, greedy), "greedy");
  EXPECT_EQ(rules.ThinkingVerifierFor(request), nullptr);
  EXPECT_NE(rules.ThinkingVerifierFor(At(1)), nullptr);
  EXPECT_TRUE(rules.DraftersFor(request).empty());
  EXPECT_FALSE(rules.FollowsDrafts(request, rules.VerifierFor(request)));
  EXPECT_EQ(WhyNot(request), "");
  request.speculative.strategy = VerifyStrategy::kResidual;
  EXPECT_TRUE(WhyNot(request).starts_with("verify: 'residual' verifies no drafts that are given"));
}

// When a late network is ready is nothing that a text may depend on.
TEST_F(SpeculationRulesTest, LateDraftersDecideNoText) {
  EXPECT_EQ(VerifierOf(Rules(), At(1)), "residual");
  drafters_[0].late = true;
  const SpeculationRules rules = Rules();
  EXPECT_EQ(VerifierOf(rules, At(1)), "sample-match");
  EXPECT_FALSE(rules.FollowsDrafts(At(1), rules.VerifierFor(At(1))));
  Request typical = At(1);
  typical.speculative.strategy = VerifyStrategy::kTypicalAcceptance;
  EXPECT_EQ(rules.DraftersFor(typical), std::vector<int>());
  typical.speculative.method = "model";  // who names it, wants it
  EXPECT_EQ(rules.DraftersFor(typical), std::vector<int>{0});
  typical.sampling.temperature = 0;
  typical.speculative.method.reset();
  EXPECT_EQ(rules.DraftersFor(typical), std::vector<int>{0});
}

TEST_F(SpeculationRulesTest, ARequestChoosesItsDrafters) {
  const SpeculationRules rules = Rules();
  Request request = At(0);
  EXPECT_EQ(rules.DraftersFor(request), std::vector<int>{0});
  request.speculative.method = "lookup";
  EXPECT_EQ(rules.DraftersFor(request), std::vector<int>{1});
  request.speculative.method = "portfolio";
  EXPECT_EQ(rules.DraftersFor(request), (std::vector<int>{0, 1}));
  request.speculative.method = "none";
  EXPECT_TRUE(rules.DraftersFor(request).empty());
}

TEST_F(SpeculationRulesTest, ARequestMayDraftNothing) {
  const SpeculationRules rules = Rules();
  Request off = At(0), zero = At(0);
  off.speculative.enabled = false;
  zero.speculative.num_speculative_tokens = 0;
  EXPECT_TRUE(rules.DraftersFor(off).empty());
  EXPECT_TRUE(rules.DraftersFor(zero).empty());
}

TEST_F(SpeculationRulesTest, AtTemperature0EveryStrategyIsGreedy) {
  Request request = At(0);
  request.speculative.strategy = VerifyStrategy::kResidual;
  EXPECT_EQ(VerifierOf(Rules(), request), "greedy");
}

TEST_F(SpeculationRulesTest, DistributionsThatAreReportedAreVerifiedByResidual) {
  Request request = At(1);
  EXPECT_EQ(VerifierOf(Rules(), request), "residual");
  request.speculative.method = "lookup";  // it reports none
  EXPECT_EQ(VerifierOf(Rules(), request), "sample-match");
}

TEST_F(SpeculationRulesTest, DraftsThatAreNotDrawnHaveNoDistribution) {
  Request request = At(1);
  request.speculative.draft_sampling = SamplingParameters{.temperature = 0};
  EXPECT_EQ(VerifierOf(Rules(), request), "sample-match");
}

TEST_F(SpeculationRulesTest, LengthsThatFollowTheClockNeedATextThatNoDraftChanges) {
  for (const char* controller : {"cost-model", "batch-size"}) {
    options_.speculative.controller = controller;
    EXPECT_EQ(VerifierOf(Rules(), At(1)), "sample-match") << controller;
  }
  for (const char* controller : {"fixed", "ewma", "heuristic", "by-text"}) {
    options_.speculative.controller = controller;
    EXPECT_EQ(VerifierOf(Rules(), At(1)), "residual") << controller;
  }
}

// The two options change residual alone, so whoever sets one wants residual.
TEST_F(SpeculationRulesTest, OptionsOfResidualChooseIt) {
  options_.speculative.controller = "cost-model";
  options_.speculative.acceptance_threshold = 0.1f;
  EXPECT_EQ(VerifierOf(Rules(), At(1)), "residual");
  options_.speculative.acceptance_threshold = 0;
  options_.speculative.skip_sample_adjustment = true;
  EXPECT_EQ(VerifierOf(Rules(), At(1)), "residual");
}

TEST_F(SpeculationRulesTest, ALeastDraftLengthChoosesSampleMatch) {
  options_.speculative.min_speculative_tokens = 2;
  EXPECT_EQ(VerifierOf(Rules(), At(1)), "sample-match");
}

TEST_F(SpeculationRulesTest, TheRequestsStrategyGoesBeforeTheEngines) {
  options_.speculative.strategy = VerifyStrategy::kBlock;
  Request request = At(1);
  EXPECT_EQ(VerifierOf(Rules(), request), "block");
  request.speculative.strategy = VerifyStrategy::kTypicalAcceptance;
  EXPECT_EQ(VerifierOf(Rules(), request), "typical-acceptance");
}

TEST_F(SpeculationRulesTest, TheLeastDraftLengthIsAtMostK) {
  options_.speculative.min_speculative_tokens = 3;
  const SpeculationRules rules = Rules();
  Request request = At(0);
  EXPECT_EQ(rules.LeastDraftsOf(request), 3);
  request.speculative.num_speculative_tokens = 2;
  EXPECT_EQ(rules.LeastDraftsOf(request), 2);
  request.speculative.min_speculative_tokens = 0;
  EXPECT_EQ(rules.LeastDraftsOf(request), 1);
}

TEST_F(SpeculationRulesTest, SomeTextsDependOnTheirDrafts) {
  const SpeculationRules rules = Rules();
  const auto follows = [&](VerifyStrategy strategy, float temperature) {
    Request request = At(temperature);
    request.speculative.strategy = strategy;
    return rules.FollowsDrafts(request, rules.VerifierFor(request));
  };
  EXPECT_TRUE(follows(VerifyStrategy::kResidual, 1));
  EXPECT_TRUE(follows(VerifyStrategy::kTypicalAcceptance, 1));
  EXPECT_FALSE(follows(VerifyStrategy::kSampleMatch, 1));
  EXPECT_FALSE(follows(VerifyStrategy::kResidual, 0));
}

TEST_F(SpeculationRulesTest, ATextThatFollowsItsDraftsHasAControllerWithoutAClock) {
  options_.speculative.controller = "cost-model";
  const SpeculationRules rules = Rules();
  EXPECT_EQ(rules.ControllerOf(true, false), "cost-model");
  EXPECT_EQ(rules.ControllerOf(true, true), "by-text");
  EXPECT_EQ(rules.ControllerOf(false, true), "");
  options_.speculative.controller = "ewma";
  EXPECT_EQ(Rules().ControllerOf(true, true), "ewma");
}

TEST_F(SpeculationRulesTest, PlainDecodingIsLossless) {
  const SpeculationRules rules = Rules();
  Request request = At(1);
  request.speculative.strategy = VerifyStrategy::kTypicalAcceptance;
  const verify::Verifier& lossy = rules.VerifierFor(request);
  EXPECT_FALSE(rules.Lossless(lossy, true));
  EXPECT_TRUE(rules.Lossless(lossy, false));
  request.speculative.strategy = VerifyStrategy::kResidual;
  EXPECT_TRUE(rules.Lossless(rules.VerifierFor(request), true));
}

TEST_F(SpeculationRulesTest, NamesTheStrategiesThatSomeDrafterFits) {
  const auto has = [](const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const std::vector<std::string> names = Rules().StrategyNames();
  EXPECT_TRUE(has(names, "greedy"));
  EXPECT_TRUE(has(names, "residual"));
  EXPECT_FALSE(has(names, "logit-comparison"));  // no drafter reports logits
  Add("logits").reports_logits = true;
  EXPECT_TRUE(has(Rules().StrategyNames(), "logit-comparison"));
}

TEST_F(SpeculationRulesTest, OneVerifierForAllLeavesNoChoice) {
  options_.speculative.synthetic_acceptance_rate = 0.5;
  verify::Verifiers verifiers(options_.speculative);
  verifiers.synthetic = std::make_unique<verify::Synthetic>(0.5);
  const SpeculationRules rules(options_, drafters_, std::move(verifiers));
  EXPECT_TRUE(rules.StrategyNames().empty());
  EXPECT_EQ(VerifierOf(rules, At(0)), "synthetic");
  EXPECT_EQ(VerifierOf(rules, At(1)), "synthetic");
  // Measurements want the engine's controller, though the text depends on the drafts.
  EXPECT_FALSE(rules.FollowsDrafts(At(1), rules.VerifierFor(At(1))));
  Request request = At(1);
  request.speculative.strategy = VerifyStrategy::kBlock;
  EXPECT_EQ(MessageOf(rules.Check(request)),
            "verify: 'synthetic' verifies every request of this engine; leave 'block' out");
  Request given = At(1);
  given.drafts.emplace();
  EXPECT_TRUE(rules.Check(given).error().message.starts_with("drafts: 'synthetic' verifies every"));
}

TEST_F(SpeculationRulesTest, RefusesNumbersThatAreOutOfRange) {
  Request request = At(0);
  request.speculative.num_speculative_tokens = 65;
  EXPECT_EQ(WhyNot(request), "num_speculative_tokens: 65 is out of range; use 0 to 64");
  request.speculative.num_speculative_tokens = -1;
  EXPECT_EQ(WhyNot(request), "num_speculative_tokens: -1 is out of range; use 0 to 64");
  request = At(0);
  request.speculative.draft_p_min = 1.5f;
  EXPECT_EQ(WhyNot(request), "draft_p_min: 1.5 is out of range; use 0 to 1");
  request.speculative.draft_p_min = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(WhyNot(request), "");
}

TEST_F(SpeculationRulesTest, RefusesAStrategyThatTheDraftersDoNotFit) {
  Request request = At(1);
  request.speculative.strategy = VerifyStrategy::kResidual;
  EXPECT_EQ(WhyNot(request), "");
  request.speculative.method = "portfolio";
  EXPECT_EQ(WhyNot(request),
            "verify: 'residual' needs a drafter that reports its distributions, and lookup "
            "reports none; use sample-match");
  request.speculative.strategy = VerifyStrategy::kLogitComparison;
  EXPECT_EQ(WhyNot(request),
            "verify: 'logit-comparison' needs a drafter that reports its logits, and model "
            "reports none; use sample-match");
}

TEST_F(SpeculationRulesTest, RefusesALeastLengthWhereDistributionsAreVerified) {
  Request request = At(1);
  request.speculative.strategy = VerifyStrategy::kResidual;
  request.speculative.min_speculative_tokens = 2;
  EXPECT_TRUE(WhyNot(request).starts_with("min_speculative_tokens: under residual"));
  request.speculative.strategy = VerifyStrategy::kSampleMatch;
  EXPECT_EQ(WhyNot(request), "");
  request.speculative.min_speculative_tokens = 5;  // more than K
  EXPECT_NE(WhyNot(request), "");
}

TEST_F(SpeculationRulesTest, TheFirstTokenIsTheTargetsUnlessARequestSaysOtherwise) {
  EXPECT_TRUE(Rules().FirstTokenIsTargets(At(0)));
  Request request = At(0);
  request.speculative.first_target = false;
  EXPECT_FALSE(Rules().FirstTokenIsTargets(request));
  options_.speculative.first_target = false;
  EXPECT_FALSE(Rules().FirstTokenIsTargets(At(0)));
}

TEST_F(SpeculationRulesTest, SaysWhatARequestUses) {
  const SpeculationRules rules = Rules();
  Request request = At(1);
  const SpeculativeUse drawn = rules.UseFor(request);
  EXPECT_EQ(drawn.methods, std::vector<std::string>{"model"});
  EXPECT_EQ(drawn.strategies, std::vector<std::string>{"residual"});
  EXPECT_TRUE(drawn.sampled);
  EXPECT_TRUE(drawn.sampled_drafts);
  EXPECT_FALSE(drawn.learns_from_others);  // other drafts would give another text
  request.speculative.method = "lookup";
  const SpeculativeUse looked_up = rules.UseFor(request);
  EXPECT_EQ(looked_up.strategies, std::vector<std::string>{"sample-match"});
  EXPECT_FALSE(looked_up.sampled_drafts);
  EXPECT_TRUE(looked_up.learns_from_others);
}

TEST_F(SpeculationRulesTest, SaysWhatAnyRequestMayUse) {
  options_.max_sequences = 3;
  const SpeculativeUse use = Rules().UseForAny();
  EXPECT_EQ(use.methods, (std::vector<std::string>{"model", "lookup"}));
  EXPECT_EQ(use.strategies, Rules().StrategyNames());
  EXPECT_TRUE(use.sampled && use.sampled_drafts && use.learns_from_others);
  EXPECT_EQ(use.max_sequences, 3);
}

TEST_F(SpeculationRulesTest, NotesSettingsThatHaveNoEffect) {
  const SpeculationRules rules = Rules();
  Request request = At(0);
  EXPECT_TRUE(rules.NoticesOf(request).empty());
  request.speculative.enabled = false;
  request.speculative.num_speculative_tokens = 8;
  request.prediction = "once";
  const std::vector<std::string> notices = rules.NoticesOf(request);
  ASSERT_EQ(notices.size(), 2U);
  EXPECT_TRUE(notices[0].starts_with("num_speculative_tokens: ")) << notices[0];
  EXPECT_TRUE(notices[1].starts_with("prediction: ")) << notices[1];
}

TEST(SpeculativeUse, OfTwoHoldsWhatEitherUses) {
  SpeculativeUse use{.methods = {"ngram"}, .strategies = {"greedy"}, .max_sequences = 4};
  use.Add({.methods = {"ngram", "suffix"}, .strategies = {"block"}, .sampled = true});
  EXPECT_EQ(use.methods, (std::vector<std::string>{"ngram", "suffix"}));
  EXPECT_EQ(use.strategies, (std::vector<std::string>{"greedy", "block"}));
  EXPECT_TRUE(use.sampled);
  EXPECT_FALSE(use.sampled_drafts);
  EXPECT_EQ(use.max_sequences, 4);
}

}  // namespace
}  // namespace foretoken::engine
