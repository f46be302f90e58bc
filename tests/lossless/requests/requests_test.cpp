// SPDX-License-Identifier: Apache-2.0
// Requests from end to end: where they end, what is counted, what is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/engine.h"
#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

std::unique_ptr<Engine> OpenMethod(const std::string& method) {
  EngineOptions options{.model = Pair().target,
                        .speculative = {.method = method, .controller = "fixed"},
                        .threads = 1};
  if (method == "standalone") options.draft_model = Pair().draft;
  return OpenEngine(options);
}

Request Greedy(int n) {
  Request r;
  r.prompt = "once upon a time";
  r.max_new_tokens = n;
  r.sampling.temperature = 0;
  r.ignore_eos = true;
  return r;
}

Completion GenerateOn(Engine& engine, const Request& request) {
  auto completion = engine.Generate(request);
  EXPECT_TRUE(completion) << completion.error().message;
  return *completion;
}

// Ends at every offset of a round: the first occurrence of each token of the plain text is made an
// end token, for every K.
TEST(Ends, AnEndTokenStopsAtItsFirstPlaceWhereverItFallsInARound) {
  const auto plain = GenerateOn(*OpenMethod("none"), Greedy(40)).token_ids;
  for (const char* method : {"standalone", "ngram"}) {
    const auto engine = OpenMethod(method);
    for (int k = 1; k <= 8; ++k)
      for (std::size_t at = 0; at < 20; ++at) {
        Request r = Greedy(40);
        r.speculative.num_speculative_tokens = k;
        r.stop_token_ids = {plain[at]};
        const auto first = std::find(plain.begin(), plain.end(), plain[at]) - plain.begin();
        const auto c = GenerateOn(*engine, r);
        ASSERT_EQ(c.token_ids, std::vector<std::int32_t>(plain.begin(), plain.begin() + first + 1))
            << method << " K " << k << " at " << at;
        ASSERT_EQ(c.finish_reason, FinishReason::kStop);
        ASSERT_EQ(c.speculation.emitted, static_cast<std::int64_t>(c.token_ids.size()));
      }
  }
}

TEST(Ends, OfSeveralEndTokensTheEarliestInTheTextWinsNotTheFirstInTheList) {
  const auto plain = GenerateOn(*OpenMethod("none"), Greedy(30)).token_ids;
  Request r = Greedy(30);
  r.stop_token_ids = {plain[9], plain[4]};
  const auto c = GenerateOn(*OpenMethod("standalone"), r);
  const auto first = std::min(std::find(plain.begin(), plain.end(), plain[4]),
                              std::find(plain.begin(), plain.end(), plain[9]));
  EXPECT_EQ(c.token_ids.size(), static_cast<std::size_t>(first - plain.begin()) + 1);
}

TEST(Ends, AStopStringCutsTheTextWhereverItStraddlesTokensAndRounds) {
  const std::string plain = GenerateOn(*OpenMethod("none"), Greedy(40)).text;
  for (const char* method : {"none", "standalone", "ngram"}) {
    const auto engine = OpenMethod(method);
    for (std::size_t at = 0; at + 4 < std::min<std::size_t>(plain.size(), 40); ++at) {
      Request r = Greedy(40);
      r.stop = {"never in the text", plain.substr(at, 4)};
      std::string streamed;
      auto completion = engine->Generate(r, [&](const RoundEvent& round) {
        for (const auto& event : round.events) streamed += event.text;
        return true;
      });
      ASSERT_TRUE(completion);
      ASSERT_EQ(completion->text, plain.substr(0, plain.find(r.stop[1]))) << method << " " << at;
      ASSERT_EQ(streamed, completion->text) << method << " " << at;
      ASSERT_EQ(completion->finish_reason, FinishReason::kStop);
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
        const auto c = GenerateOn(*engine, r);
        ASSERT_EQ(c.token_ids.size(), static_cast<std::size_t>(n)) << method << " K " << k;
        ASSERT_EQ(c.finish_reason, FinishReason::kLength);
      }
    const auto full = GenerateOn(*engine, Greedy(1000));
    EXPECT_EQ(full.token_ids.size() + full.prompt_token_ids.size(), 96u) << method;
    EXPECT_EQ(full.finish_reason, FinishReason::kLength);
  }
}

TEST(Ends, AnEndTokenOutranksTheLengthLimit) {
  const auto plain = GenerateOn(*OpenMethod("none"), Greedy(40)).token_ids;
  const auto engine = OpenMethod("standalone");
  int tried = 0;
  for (auto last = plain.begin(); last != plain.end(); ++last) {
    if (std::find(plain.begin(), last, *last) != last) continue;  // it also comes earlier
    Request r = Greedy(static_cast<int>(last - plain.begin()) + 1);
    r.stop_token_ids = {*last};
    EXPECT_EQ(GenerateOn(*engine, r).finish_reason, FinishReason::kStop) << r.max_new_tokens;
    ++tried;
  }
  EXPECT_GT(tried, 3);
}

TEST(Ends, MinTokensHoldsEndTokensBack) {
  const auto plain = GenerateOn(*OpenMethod("none"), Greedy(10)).token_ids;
  for (const char* method : {"none", "standalone", "ngram"}) {
    Request r = Greedy(20);
    r.stop_token_ids = {plain[0], plain[3]};
    r.min_new_tokens = 7;
    const auto c = GenerateOn(*OpenMethod(method), r);
    EXPECT_GE(c.token_ids.size(), 8u) << method;
    for (std::size_t i = 0; i < 7; ++i)
      EXPECT_TRUE(c.token_ids[i] != plain[0] && c.token_ids[i] != plain[3]) << method;
    EXPECT_EQ(c.token_ids, GenerateOn(*OpenMethod("none"), r).token_ids);
  }
}

TEST(Ends, CancellingKeepsWhatWasCommittedAndTheEngineGoesOn) {
  const auto engine = OpenMethod("standalone");
  int rounds = 0;
  auto cancelled = engine->Generate(
      Greedy(60), [&](const RoundEvent& round) { return round.events.empty() || ++rounds < 4; });
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->finish_reason, FinishReason::kCancelled);
  const auto plain = GenerateOn(*OpenMethod("none"), Greedy(60)).token_ids;
  EXPECT_TRUE(std::equal(cancelled->token_ids.begin(), cancelled->token_ids.end(), plain.begin()));
  EXPECT_LT(cancelled->token_ids.size(), plain.size());
  EXPECT_EQ(GenerateOn(*engine, Greedy(60)).token_ids, plain);
}

TEST(Numbers, AddUp) {
  for (const char* method : {"none", "standalone", "ngram"}) {
    const auto engine = OpenMethod(method);
    for (const float temperature : {0.0f, 1.0f}) {
      Request r = Greedy(60);
      r.sampling.temperature = temperature;
      r.seed = 3;
      r.speculative.num_speculative_tokens = 5;
      const auto c = GenerateOn(*engine, r);
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
  const auto c = GenerateOn(*engine, r);
  auto tokens = c.prompt_token_ids;
  tokens.insert(tokens.end(), c.token_ids.begin(), c.token_ids.end());
  const auto scores = engine->Score(tokens);
  ASSERT_TRUE(scores);
  ASSERT_EQ(scores->size(), tokens.size() - 1);
  for (std::size_t i = 0; i < c.token_ids.size(); ++i)
    EXPECT_EQ((*scores)[c.prompt_token_ids.size() - 1 + i], c.logprobs[i].logprob);
}

struct BadRequest {
  const char* name;
  void (*break_it)(Request&);
  ErrorCode code;
  const char* says;
};
class Refusals : public testing::TestWithParam<BadRequest> {};
TEST_P(Refusals, NameTheFieldAndTheWayOut) {
  Request r = Greedy(4);
  GetParam().break_it(r);
  const auto c = OpenMethod("ngram")->Generate(r);
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, GetParam().code);
  EXPECT_NE(c.error().message.find(GetParam().says), std::string::npos) << c.error().message;
  EXPECT_NE(c.error().message.find("; "), std::string::npos) << c.error().message;
}
INSTANTIATE_TEST_SUITE_P(
    Requests, Refusals,
    testing::Values(BadRequest{"temperature", [](Request& r) { r.sampling.temperature = 3; },
                               ErrorCode::kInvalidArgument, "temperature"},
                    BadRequest{"top_p", [](Request& r) { r.sampling.top_p = 2; },
                               ErrorCode::kInvalidArgument, "top_p"},
                    BadRequest{"max_tokens", [](Request& r) { r.max_new_tokens = -1; },
                               ErrorCode::kInvalidArgument, "max_new_tokens"},
                    BadRequest{"min_tokens", [](Request& r) { r.min_new_tokens = 9; },
                               ErrorCode::kInvalidArgument, "min_new_tokens"},
                    BadRequest{"logprobs", [](Request& r) { r.logprobs = 65; },
                               ErrorCode::kInvalidArgument, "logprobs"},
                    BadRequest{"k", [](Request& r) { r.speculative.num_speculative_tokens = 65; },
                               ErrorCode::kInvalidArgument, "num_speculative_tokens"},
                    BadRequest{"empty_stop", [](Request& r) { r.stop = {""}; },
                               ErrorCode::kInvalidArgument, "stop"},
                    BadRequest{"prompt_id",
                               [](Request& r) {
                                 r.prompt_tokens = {1, 99999};
                               },
                               ErrorCode::kInvalidArgument, "99999"},
                    BadRequest{"long_prompt", [](Request& r) { r.prompt_tokens.assign(96, 5); },
                               ErrorCode::kTooLarge, "context of 96"}),
    [](const auto& row) { return row.param.name; });

ErrorCode OpenCode(EngineOptions options, const char* says) {
  if (options.model.empty()) options.model = Pair().target;
  const auto engine = Engine::Open(std::move(options));
  if (engine) return static_cast<ErrorCode>(-1);
  EXPECT_NE(engine.error().message.find(says), std::string::npos) << engine.error().message;
  return engine.error().code;
}

TEST(Open, RefusesWhatDoesNotBelongTogether) {
  EXPECT_EQ(OpenCode({.speculative = {.method = "standalone"}}, "EngineOptions::draft_model"),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(OpenCode({.speculative = {.method = "ngram", .strategy = VerifyStrategy::kResidual}},
                     "sample-match"),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(OpenCode({.draft_model = Pair().draft, .speculative = {.method = "ngram"}}, "drop one"),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(OpenCode({.speculative = {.method = "medusa"}}, "medusa"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(OpenCode({.speculative = {.num_speculative_tokens = 65}}, "[0, 64]"),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(OpenCode({.threads = -1}, "threads"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(OpenCode({.cache_type_k = CacheType::kQ8_0}, "EngineOptions::cache_type_k"),
            ErrorCode::kUnsupported);
  EXPECT_EQ(OpenCode({.cache_type_v = CacheType::kQ4_0}, "EngineOptions::cache_type_v"),
            ErrorCode::kUnsupported);
  EXPECT_EQ(OpenCode({.isa = "sse9"}, "sse9"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(OpenCode({.model = "/no/such/file.gguf"}, "/no/such/file.gguf"), ErrorCode::kNotFound);
}

TEST(Open, RefusesGreedyVerificationOfSampledText) {
  auto engine =
      Engine::Open({.model = Pair().target, .speculative = {.strategy = VerifyStrategy::kGreedy}});
  ASSERT_TRUE(engine);
  Request r = Greedy(4);
  EXPECT_TRUE((*engine)->Generate(r));
  r.sampling.temperature = 1;
  EXPECT_FALSE((*engine)->Generate(r));
}

// ---- Draft length -------------------------------------------------------------------------------

class Controllers : public testing::TestWithParam<const char*> {
 protected:
  static std::unique_ptr<Engine> OpenWith(const std::string& method,
                                          const std::string& controller) {
    EngineOptions options{.model = Pair().target,
                          .speculative = {.method = method, .controller = "fixed"},
                          .threads = 1};
    options.speculative.controller = controller;
    if (method == "standalone") options.draft_model = Pair().draft;
    return OpenEngine(options);
  }
};

TEST_P(Controllers, ChangeTheDraftLengthAndNeverTheText) {
  const auto plain = GenerateOn(*OpenMethod("none"), Greedy(60)).token_ids;
  for (const char* method : {"standalone", "ngram"}) {
    const auto engine = OpenWith(method, GetParam());
    EXPECT_EQ(engine->summary().controller, GetParam());
    const Completion c = GenerateOn(*engine, Greedy(60));
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
  const auto engine = OpenWith("standalone", GetParam());
  for (const int ceiling : {1, 3}) {
    Request r = Greedy(50);
    r.speculative.num_speculative_tokens = ceiling;
    const auto& rounds = GenerateOn(*engine, r).speculation.k_histogram;
    EXPECT_EQ(rounds.size(), static_cast<std::size_t>(ceiling) + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Names, Controllers, testing::Values("ewma", "heuristic", "cost-model"),
                         [](const auto& of) {
                           const std::string name = of.param;
                           return name == "cost-model" ? "cost_model" : name;
                         });

TEST(ControllerNames, AreRefusedWithThoseThereAre) {
  EngineOptions options{.model = Pair().target};
  options.speculative.controller = "guess";
  const auto engine = Engine::Open(options);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::kInvalidArgument);
  for (const char* word : {"guess", "fixed", "ewma", "heuristic", "cost-model"})
    EXPECT_NE(engine.error().message.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace foretoken
