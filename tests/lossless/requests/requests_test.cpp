// SPDX-License-Identifier: Apache-2.0
// Requests from end to end: where they end, what is counted, what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

std::unique_ptr<Engine> OpenMethod(const std::string& method,
                                   const std::string& controller = "fixed") {
  EngineOptions options = OptionsOfMethod(method);
  options.speculative.controller = controller;
  return OpenEngine(options);
}

// With as many drafts as the engine makes.
Request Greedy(int n) {
  Request r = Ask(n);
  r.speculative = {};
  return r;
}

// Ends at every offset of a round: the first occurrence of each token of the plain text is made an
// end token, for every K.
TEST(Ends, AnEndTokenStopsAtItsFirstPlaceWhereverItFallsInARound) {
  const auto plain = Generated(*OpenMethod("none"), Greedy(40)).token_ids;
  for (const char* method : {"standalone", "ngram"}) {
    const auto engine = OpenMethod(method);
    for (int k = 1; k <= 8; ++k)
      for (std::size_t at = 0; at < 20; ++at) {
        Request r = Greedy(40);
        r.speculative.num_speculative_tokens = k;
        r.stop_token_ids = {plain[at]};
        const auto first = std::find(plain.begin(), plain.end(), plain[at]) - plain.begin();
        const auto c = Generated(*engine, r);
        ASSERT_EQ(c.token_ids, std::vector<std::int32_t>(plain.begin(), plain.begin() + first + 1))
            << method << " K " << k << " at " << at;
        ASSERT_EQ(c.finish_reason, FinishReason::kStop);
        ASSERT_EQ(c.speculation.emitted, static_cast<std::int64_t>(c.token_ids.size()));
      }
  }
}

TEST(Ends, OfSeveralEndTokensTheEarliestInTheTextWinsNotTheFirstInTheList) {
  const auto plain = Generated(*OpenMethod("none"), Greedy(30)).token_ids;
  Request r = Greedy(30);
  r.stop_token_ids = {plain[9], plain[4]};
  const auto c = Generated(*OpenMethod("standalone"), r);
  const auto first = std::min(std::find(plain.begin(), plain.end(), plain[4]),
                              std::find(plain.begin(), plain.end(), plain[9]));
  EXPECT_EQ(c.token_ids.size(), static_cast<std::size_t>(first - plain.begin()) + 1);
}

TEST(Ends, AStopStringCutsTheTextWhereverItStraddlesTokensAndRounds) {
  const std::string plain = Generated(*OpenMethod("none"), Greedy(40)).text;
  for (const char* method : {"none", "standalone", "ngram"}) {
    const auto engine = OpenMethod(method);
    for (std::size_t at = 0; at + 4 < std::min<std::size_t>(plain.size(), 40); ++at) {
      Request r = Greedy(40);
      r.stop = {"never in the text", plain.substr(at, 4)};
      std::string streamed;
      const Completion c = Got(engine->Generate(r, [&](const RoundEvent& round) {
        for (const auto& event : round.events) streamed += event.text;
        return true;
      }));
      ASSERT_EQ(c.text, plain.substr(0, plain.find(r.stop[1]))) << method << " " << at;
      ASSERT_EQ(streamed, c.text) << method << " " << at;
      ASSERT_EQ(c.finish_reason, FinishReason::kStop);
    }
  }
}

TEST(Ends, MaxTokensIsNeverOvershotAndTheContextEndIsALength) {
  for (const char* method : {"none", "standalone", "ngram"}) {
    const auto engine = OpenMethod(method);
    for (int n = 0; n <= 12; ++n)
      for (const int k : {1, 4, 8, 64}) {
        Request r = Greedy(n);
        r.speculative.num_speculative_tokens = k;
        const auto c = Generated(*engine, r);
        ASSERT_EQ(c.token_ids.size(), static_cast<std::size_t>(n)) << method << " K " << k;
        ASSERT_EQ(c.finish_reason, FinishReason::kLength);
      }
    const auto full = Generated(*engine, Greedy(1000));
    EXPECT_EQ(full.token_ids.size() + full.prompt_token_ids.size(), 96u) << method;
    EXPECT_EQ(full.finish_reason, FinishReason::kLength);
  }
}

TEST(Ends, AnEndTokenOutranksTheLengthLimit) {
  const auto plain = Generated(*OpenMethod("none"), Greedy(40)).token_ids;
  const auto engine = OpenMethod("standalone");
  int tried = 0;
  for (auto last = plain.begin(); last != plain.end(); ++last) {
    if (std::find(plain.begin(), last, *last) != last) continue;  // it also comes earlier
    Request r = Greedy(static_cast<int>(last - plain.begin()) + 1);
    r.stop_token_ids = {*last};
    EXPECT_EQ(Generated(*engine, r).finish_reason, FinishReason::kStop) << r.max_new_tokens;
    ++tried;
  }
  EXPECT_GT(tried, 3);
}

TEST(Ends, MinTokensHoldsEndTokensBack) {
  const auto plain = Generated(*OpenMethod("none"), Greedy(10)).token_ids;
  for (const char* method : {"none", "standalone", "ngram"}) {
    Request r = Greedy(20);
    r.stop_token_ids = {plain[0], plain[3]};
    r.min_new_tokens = 7;
    const auto c = Generated(*OpenMethod(method), r);
    EXPECT_GE(c.token_ids.size(), 8u) << method;
    for (std::size_t i = 0; i < 7; ++i)
      EXPECT_TRUE(c.token_ids[i] != plain[0] && c.token_ids[i] != plain[3]) << method;
    EXPECT_EQ(c.token_ids, Generated(*OpenMethod("none"), r).token_ids);
  }
}

TEST(Ends, CancellingKeepsWhatWasCommittedAndTheEngineGoesOn) {
  const auto engine = OpenMethod("standalone");
  int rounds = 0;
  auto cancelled = engine->Generate(
      Greedy(60), [&](const RoundEvent& round) { return round.events.empty() || ++rounds < 4; });
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->finish_reason, FinishReason::kCancelled);
  const auto plain = Generated(*OpenMethod("none"), Greedy(60)).token_ids;
  EXPECT_TRUE(std::equal(cancelled->token_ids.begin(), cancelled->token_ids.end(), plain.begin()));
  EXPECT_LT(cancelled->token_ids.size(), plain.size());
  EXPECT_EQ(Generated(*engine, Greedy(60)).token_ids, plain);
}

TEST(Numbers, AddUp) {
  for (const char* method : {"none", "standalone", "ngram"}) {
    const auto engine = OpenMethod(method);
    for (const float temperature : {0.0f, 1.0f}) {
      Request r = Greedy(60);
      r.sampling.temperature = temperature;
      r.seed = 3;
      r.speculative.num_speculative_tokens = 5;
      const auto c = Generated(*engine, r);
      const auto& s = c.speculation;
      const auto sum = [](const std::vector<std::int64_t>& v) {
        return std::accumulate(v.begin(), v.end(), std::int64_t{0});
      };
      EXPECT_EQ(s.emitted, static_cast<std::int64_t>(c.token_ids.size()));
      EXPECT_EQ(s.emitted, s.accepted + s.recovered + s.bonus + s.plain);
      EXPECT_EQ(sum(s.drafted_per_position), s.drafted);
      EXPECT_EQ(sum(s.accepted_per_position), s.accepted);
      EXPECT_EQ(sum(s.k_histogram), s.rounds);
      EXPECT_EQ(s.rolled_back, s.drafted - s.accepted);
      EXPECT_EQ(s.target_forwards, s.rounds + 1);  // and the prompt's
      for (std::size_t i = 0; i < s.drafted_per_position.size(); ++i)
        EXPECT_LE(s.accepted_per_position[i], s.verified_per_position[i]);
      if (std::string(method) == "none") {
        EXPECT_FALSE(s.acceptance_rate());
        EXPECT_FALSE(s.mean_acceptance_length());
      } else if (std::string(method) == "standalone") {
        EXPECT_GT(s.drafted, 0);
        EXPECT_GE(s.draft_forwards, s.draft_rounds);
      }
    }
  }
}

TEST(Score, GivesTheLogprobsThatGenerationReports) {
  const auto engine = OpenMethod("none");
  Request r = Greedy(20);
  r.logprobs = 0;
  const auto c = Generated(*engine, r);
  const auto tokens = WholeText(c);
  const auto scores = Got(engine->Score(tokens));
  ASSERT_EQ(scores.size(), tokens.size() - 1);
  for (std::size_t i = 0; i < c.token_ids.size(); ++i)
    EXPECT_EQ(scores[c.prompt_token_ids.size() - 1 + i], c.logprobs[i].logprob);
}

struct BadRequest {
  const char* name;
  void (*break_it)(Request&);
  const char* says;
  ErrorCode code = ErrorCode::kInvalidArgument;
};
constexpr BadRequest kBadRequests[] = {
    {"temperature", [](Request& r) { r.sampling.temperature = 3; }, "temperature"},
    {"top_p", [](Request& r) { r.sampling.top_p = 2; }, "top_p"},
    {"max_tokens", [](Request& r) { r.max_new_tokens = -1; }, "max_new_tokens"},
    {"min_tokens", [](Request& r) { r.min_new_tokens = 9; }, "min_new_tokens"},
    {"logprobs", [](Request& r) { r.logprobs = 65; }, "logprobs"},
    {"k", [](Request& r) { r.speculative.num_speculative_tokens = 65; }, "num_speculative_tokens"},
    {"empty_stop", [](Request& r) { r.stop = {""}; }, "stop"},
    {"prompt_id",
     [](Request& r) {
       r.prompt_tokens = {1, 99999};
     },
     "99999"},
    {"long_prompt", [](Request& r) { r.prompt_tokens.assign(96, 5); }, "context of 96",
     ErrorCode::kTooLarge}};
class Refusals : public testing::TestWithParam<BadRequest> {};
TEST_P(Refusals, NameTheFieldAndTheWayOut) {
  Request r = Greedy(4);
  GetParam().break_it(r);
  const auto c = OpenMethod("ngram")->Generate(r);
  EXPECT_TRUE(Fails(c, GetParam().code, GetParam().says));
  EXPECT_TRUE(Fails(c, "; "));
}
INSTANTIATE_TEST_SUITE_P(Requests, Refusals, testing::ValuesIn(kBadRequests),
                         [](const auto& row) { return row.param.name; });

TEST(Open, RefusesWhatDoesNotBelongTogether) {
  const auto refused = [](EngineOptions options, const char* says,
                          ErrorCode code = ErrorCode::kInvalidArgument) {
    if (options.model.empty()) options.model = Pair().target;
    EXPECT_TRUE(Fails(Engine::Open(std::move(options)), code, says));
  };
  refused({.speculative = {.method = "standalone"}}, "EngineOptions::draft_model");
  refused({.speculative = {.method = "ngram", .strategy = VerifyStrategy::kResidual}},
          "sample-match");
  refused({.draft_model = Pair().draft, .speculative = {.method = "ngram"}}, "drop one");
  refused({.speculative = {.method = "medusa"}}, "medusa");
  refused({.speculative = {.num_speculative_tokens = 65}}, "[0, 64]");
  refused({.threads = -1}, "threads");
  refused({.cache_type_k = CacheType::kQ8_0}, "EngineOptions::cache_type_k",
          ErrorCode::kUnsupported);
  refused({.cache_type_v = CacheType::kQ4_0}, "EngineOptions::cache_type_v",
          ErrorCode::kUnsupported);
  refused({.isa = "sse9"}, "sse9");
  refused({.model = "/no/such/file.gguf"}, "/no/such/file.gguf", ErrorCode::kNotFound);
}

TEST(Open, RefusesGreedyVerificationOfSampledText) {
  const auto engine =
      OpenEngine({.model = Pair().target, .speculative = {.strategy = VerifyStrategy::kGreedy}});
  Request r = Greedy(4);
  EXPECT_TRUE(engine->Generate(r));
  r.sampling.temperature = 1;
  EXPECT_FALSE(engine->Generate(r));
}

// ---- Draft length -------------------------------------------------------------------------------

class Controllers : public testing::TestWithParam<const char*> {};

TEST_P(Controllers, ChangeTheDraftLengthAndNeverTheText) {
  const auto plain = Generated(*OpenMethod("none"), Greedy(60)).token_ids;
  for (const char* method : {"standalone", "ngram"}) {
    const auto engine = OpenMethod(method, GetParam());
    EXPECT_EQ(engine->summary().controller, GetParam());
    const Completion c = Generated(*engine, Greedy(60));
    EXPECT_EQ(c.token_ids, plain) << method;
    // For such a small model it depends on the machine's speed whether any draft pays.
    if (GetParam() == std::string("cost-model")) continue;
    EXPECT_GT(c.speculation.drafted, 0) << method;
    const auto& rounds = c.speculation.k_histogram;
    EXPECT_GE(std::count_if(rounds.begin(), rounds.end(), [](auto n) { return n > 0; }), 2)
        << "always the same length, " << method;
  }
}

TEST_P(Controllers, KeepToTheCeilingOfARequest) {
  const auto engine = OpenMethod("standalone", GetParam());
  for (const int ceiling : {1, 3}) {
    Request r = Greedy(50);
    r.speculative.num_speculative_tokens = ceiling;
    const auto& rounds = Generated(*engine, r).speculation.k_histogram;
    EXPECT_EQ(rounds.size(), static_cast<std::size_t>(ceiling) + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Names, Controllers, testing::Values("ewma", "heuristic", "cost-model"),
                         [](const auto& of) { return Underscored(of.param); });

TEST(ControllerNames, AreRefusedWithThoseThereAre) {
  const auto engine =
      Engine::Open({.model = Pair().target, .speculative = {.controller = "guess"}});
  for (const char* word : {"guess", "fixed", "ewma", "heuristic", "cost-model"})
    EXPECT_TRUE(Fails(engine, ErrorCode::kInvalidArgument, word));
}

}  // namespace
}  // namespace foretoken
