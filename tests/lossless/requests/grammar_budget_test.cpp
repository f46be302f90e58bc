// SPDX-License-Identifier: Apache-2.0
// A grammar that exceeds its limits ends its own request with an error. The others continue, and
// forgotten states change no text.
#include <gtest/gtest.h>

#include "foretoken/structured_output.h"
#include "grammar/grammar.h"
#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

// Twice as many ways to continue after each character.
constexpr const char* kAmbiguous =
    "root ::= [a-z ] root \"y\" | [a-z ] root \"z\" | [a-z ] root \"yz\"{0,3} | \"!\"";
constexpr const char* kList =
    "root ::= \"[\" item (\", \" item)* \"]\"\nitem ::= [a-z]{1,6} | root";

Request AskFor(const char* grammar, float temperature = 0.9f, std::uint64_t seed = 1) {
  Request r = Ask(60, temperature, seed);
  r.sampling.grammar = grammar;
  return r;
}

TEST(GrammarBudget, EndsOneRequestAndTheOthersGoOn) {
  for (const char* method : {"none", "ngram", "grammar", "standalone", "portfolio"})
    for (const float temperature : {0.0f, 0.9f}) {
      const auto engine = OpenEngine(OptionsOfMethod(method, 3));
      const Request good = AskFor(kList, temperature), free = Ask(60, temperature, 5);
      const Completion good_alone = Generated(*engine, good), free_alone = Generated(*engine, free);
      const auto first = engine->Begin(good);
      const auto bad = engine->Begin(AskFor(kAmbiguous, temperature));
      const auto last = engine->Begin(free);
      ASSERT_TRUE(first && bad && last);
      while (engine->Step()) continue;
      const auto ended = engine->Take(*bad);
      ASSERT_TRUE(ended);
      EXPECT_EQ(ended->finish_reason, FinishReason::kError);
      ASSERT_TRUE(ended->error) << method << " " << ended->text;
      EXPECT_EQ(ended->error->code, ErrorCode::kTooLarge);
      EXPECT_EQ(ended->error->message,
                "grammar: a text of it can continue in more than 16384 ways at once; give fewer "
                "alternatives, or make it less ambiguous");
      EXPECT_EQ(engine->Take(*first)->token_ids, good_alone.token_ids) << method;
      EXPECT_EQ(engine->Take(*last)->token_ids, free_alone.token_ids) << method;
      EXPECT_EQ(Generated(*engine, good).token_ids, good_alone.token_ids) << method;
    }
}

// It ends where plain decoding ends; drafts beyond that do not matter.
TEST(GrammarBudget, EndsATextAtTheSameTokenWithDrafts) {
  std::vector<std::int32_t> plain;
  for (const char* method : {"none", "ngram", "grammar", "standalone", "portfolio"}) {
    const auto engine = OpenEngine(OptionsOfMethod(method, 1));
    const Ticket ticket = Got(engine->Begin(AskFor(kAmbiguous, 0)));
    while (engine->Step()) continue;
    const Completion completion = *engine->Take(ticket);
    ASSERT_TRUE(completion.error) << method;
    EXPECT_GT(completion.token_ids.size(), 2u);
    if (plain.empty()) plain = completion.token_ids;
    EXPECT_EQ(completion.token_ids, plain) << method;
  }
}

TEST(GrammarBudget, StatesThatAreForgottenChangeNoText) {
  for (const char* method : {"none", "ngram", "grammar", "standalone", "portfolio"})
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const auto engine = OpenEngine(OptionsOfMethod(method, 1));
      Request request = AskFor(kList, seed == 0 ? 0.0f : 0.9f, seed);
      const Completion expected = Generated(*engine, request);
      auto prepared = engine->Prepare(request);
      ASSERT_TRUE(prepared);
      const auto kept = *prepared;
      ASSERT_NE(kept.grammar(), nullptr);
      int n_trims = 0;
      const auto ticket = engine->Begin(*std::move(prepared), [&](const RoundEvent&) {
        kept.grammar()->Trim();
        ++n_trims;
        return true;
      });
      ASSERT_TRUE(ticket);
      while (engine->Step()) continue;
      const auto forgotten = engine->Take(*ticket);
      ASSERT_TRUE(forgotten);
      EXPECT_EQ(forgotten->token_ids, expected.token_ids) << method;
      EXPECT_GT(n_trims, 5);
    }
}

TEST(GrammarBudget, PreparedRequestsHaveTheGrammarOfTheirText) {
  const auto engine = OpenEngine(PairOptions());
  const Completion expected = Generated(*engine, AskFor(kList));
  auto prepared = engine->Prepare(AskFor(kList));
  ASSERT_TRUE(prepared);
  const Ticket ticket = Got(engine->Begin(*std::move(prepared)));
  while (engine->Step()) continue;
  EXPECT_EQ(engine->Take(ticket)->token_ids, expected.token_ids);
  EXPECT_TRUE(Begins(MessageOf(engine->Prepare(AskFor("root ::= ("))), "grammar: line 1: "));
}

TEST(GrammarBudget, OnlyTheEngineThatPreparedARequestBeginsIt) {
  const auto one = OpenEngine(PairOptions()), other = OpenEngine(PairOptions());
  auto prepared = one->Prepare(AskFor(kList));
  ASSERT_TRUE(prepared);
  EXPECT_TRUE(
      Begins(MessageOf(other->Begin(*std::move(prepared))), "request: another engine prepared it"));
}

}  // namespace
}  // namespace foretoken
