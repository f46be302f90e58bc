// SPDX-License-Identifier: Apache-2.0
// What a grammar forces is drafted beside any other drafter, and the text stays plain decoding's.
#include <gtest/gtest.h>

#include <map>

#include "foretoken/verifier.h"
#include "grammar/grammar.h"
#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

constexpr const char* kRecord =
    R"(root ::= "{ name: " [a-z]{2,4} ", kind: " ("good" | "gone") ", end: " [a-z] " }")";

Request AskForRecord(float temperature, std::uint64_t seed, const char* grammar = kRecord) {
  Request r = Ask(70, temperature, seed);
  r.sampling.grammar = grammar;
  return r;
}

struct Told {
  Completion completion;
  std::map<std::string, int> rounds, accepted;  // by drafter
};

Told Tell(Engine& engine, const Request& request) {
  Told told;
  told.completion = Got(engine.Generate(request, [&](const RoundEvent& round) {
    if (round.drafted == 0) return true;
    const std::string drafter(round.drafter);
    ++told.rounds[drafter];
    told.accepted[drafter] += round.drafted - static_cast<int>(round.rejected.size());
    return true;
  }));
  return told;
}

Request Plain(Request r) {
  r.speculative.enabled = false;
  return r;
}

TEST(ForcedTokens, AreDraftedBesideEveryMethodAndTheTextStaysPlain) {
  for (const char* controller : {"fixed", "cost-model", "ewma"}) {
    for (const char* method : {"grammar", "ngram", "standalone", "portfolio"}) {
      EngineOptions options = OptionsOfMethod(method);
      options.speculative.controller = controller;
      const auto engine = OpenEngine(options);
      int rounds = 0;
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        // Where drafts are drawn from distributions of their own, the text may be another one of
        // the same distribution.
        const bool residual =
            controller != std::string("cost-model") &&
            (method == std::string("standalone") || method == std::string("portfolio"));
        const float temperature = seed % 2 == 0 || residual ? 0.0f : 0.9f;
        const Request r = AskForRecord(temperature, seed);
        const Told told = Tell(*engine, r);
        EXPECT_EQ(told.completion.token_ids, Generated(*engine, Plain(r)).token_ids)
            << method << " " << controller;
        EXPECT_TRUE(Begins(told.completion.text, "{ name: "));
        if (const auto found = told.rounds.find("grammar"); found != told.rounds.end())
          rounds += found->second;
      }
      // What the cost model drafts depends on the machine, and may be nothing.
      if (controller == std::string("cost-model")) continue;
      EXPECT_GT(rounds, controller == std::string("fixed") ? 12 : 0) << method << " " << controller;
    }
  }
}

TEST(ForcedTokens, LetFewerPassesMakeTheText) {
  const auto engine = OpenEngine(OptionsOfMethod("grammar"));
  Request r = AskForRecord(0, 0, R"(root ::= "once upon a time once upon a time")");
  r.ignore_eos = false;
  const Told told = Tell(*engine, r);
  EXPECT_EQ(told.completion.text, "once upon a time once upon a time");
  EXPECT_EQ(told.completion.finish_reason, FinishReason::kStop);
  EXPECT_GT(told.accepted.at("grammar"), 0);
  EXPECT_LT(told.completion.speculation.rounds,
            static_cast<std::int64_t>(told.completion.token_ids.size()));
}

TEST(ForcedTokens, AreNotDraftedWhereNoneAreAskedFor) {
  const auto engine = OpenEngine(PairOptions());
  const Request r = AskForRecord(0, 1);
  Request zero = r;
  zero.speculative.num_speculative_tokens = 0;
  Request none = r;
  none.speculative.method = "none";
  for (const Request& off : {Plain(r), zero, none}) EXPECT_TRUE(Tell(*engine, off).rounds.empty());
  Request free = r;
  free.sampling.grammar.clear();
  free.speculative.method = "grammar";
  EXPECT_TRUE(Tell(*engine, free).rounds.empty());
}

// Rules that compare distributions or logits only get drafts that have them.
TEST(ForcedTokens, StayOutOfTheWayOfRulesThatReadDistributions) {
  const auto engine = OpenEngine(PairOptions());
  for (const VerifyStrategy strategy :
       {VerifyStrategy::kResidual, VerifyStrategy::kBlock, VerifyStrategy::kLogitComparison}) {
    Request r = AskForRecord(0.9f, 3);
    r.speculative.strategy = strategy;
    const Told told = Tell(*engine, r);
    EXPECT_TRUE(Begins(told.completion.text, "{ name: "));
    EXPECT_FALSE(told.rounds.contains("grammar")) << Name(strategy);
    EXPECT_TRUE(told.rounds.contains("standalone")) << Name(strategy);
  }
}

// A lookup's draft is cut where the grammar excludes it, because it would be rejected there.
TEST(ForcedTokens, LookupsDraftNothingThatTheGrammarRulesOut) {
  const auto engine = OpenEngine(OptionsOfMethod("ngram"));
  const char* const gbnf = "root ::= ([u-v]{3} [s-t]{2})+";
  const auto grammar = *grammar::Grammar::Compile(
      gbnf,
      std::make_shared<const grammar::TokenTrie>(std::vector<std::string>(), std::vector<Token>()));
  const auto piece_of = [&](std::int32_t id) { return engine->Detokenize({&id, 1}); };
  int n_rejected = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    grammar::Grammar::State state = grammar->Start();
    const auto look = [&](const RoundEvent& round) {
      std::size_t n_accepted = static_cast<std::size_t>(round.drafted) - round.rejected.size();
      for (std::size_t i = 0; i < round.events.size(); ++i) {
        if (i == n_accepted && !round.rejected.empty()) {
          ++n_rejected;
          const std::string piece = piece_of(round.rejected[0]);
          EXPECT_NE(grammar->After(state, piece), grammar::Grammar::kOver) << piece;
        }
        state = grammar->After(state, piece_of(round.events[i].id));
      }
      return true;
    };
    ASSERT_TRUE(engine->Generate(AskForRecord(1, seed, gbnf), look));
  }
  EXPECT_GT(n_rejected, 20);
}

TEST(ForcedTokens, OfRequestsTogetherAreThoseOfEachAlone) {
  const auto engine = OpenEngine(PairOptions(4));
  std::vector<Request> requests;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    requests.push_back(AskForRecord(0, seed));
    requests.back().sampling.grammar += std::string(seed % 3, ' ');
    if (seed % 4 == 3) requests.back().sampling.grammar.clear();
    requests.back().sampling.logit_bias[100 + static_cast<int>(seed)] = 3;
  }
  const auto together = GeneratedTogether(*engine, requests);
  for (std::size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(together[i].token_ids, Generated(*engine, Plain(requests[i])).token_ids) << i;
}

}  // namespace
}  // namespace foretoken
