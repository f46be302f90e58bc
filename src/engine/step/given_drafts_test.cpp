// SPDX-License-Identifier: Apache-2.0
// Requests that bring their own drafts (Request::drafts), one behind the other.
#include <gtest/gtest.h>

#include <random>

#include "engine/step/fake_engine_testing.h"

namespace foretoken::engine {
namespace {

// The drafts behind the tokens so far, of a text that will have all of these.
using Guess =
    std::function<std::vector<Token>(const std::vector<Token>& all, std::size_t n_so_far)>;

struct Answer {
  std::vector<Token> tokens;
  std::string text;
  FinishReason finish_reason = FinishReason::kError;
  int calls = 0, accepted = 0, cached = 0;
};

// The whole answer to a request, call by call.
Answer InCalls(FakeEngine& engine, const Request& request, const std::vector<Token>& all,
               const Guess& guess) {
  Answer answer;
  do {
    Request call = request;
    call.generated = answer.tokens;
    call.drafts = guess(all, answer.tokens.size());
    const int before = engine.runner.n_passes();
    const Completion completion = engine.Run(call);
    EXPECT_EQ(engine.runner.n_passes() - before, 1);
    EXPECT_FALSE(completion.error);
    EXPECT_LE(completion.token_ids.size(), call.drafts->size() + 1);
    answer.tokens.insert(answer.tokens.end(), completion.token_ids.begin(),
                         completion.token_ids.end());
    answer.text += completion.text;
    answer.finish_reason = completion.finish_reason;
    answer.accepted += static_cast<int>(completion.speculation.accepted);
    answer.cached = completion.timings.cached_prompt_tokens;
    if (completion.token_ids.empty()) break;
    ++answer.calls;
  } while (answer.finish_reason == FinishReason::kVerified);
  return answer;
}

std::vector<Token> Right(const std::vector<Token>& all, std::size_t n_so_far) {
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(n_so_far);
  return {first, first + std::min<std::ptrdiff_t>(7, all.end() - first)};
}

std::vector<Token> Empty(const std::vector<Token>&, std::size_t) {
  return {};
}

std::vector<Guess> Guesses() {
  const auto wrong = [](const std::vector<Token>& all, std::size_t n) {
    std::vector<Token> drafts = Right(all, n);
    for (Token& token : drafts) token = (token + 1) % 50;
    return drafts;
  };
  const auto partly = [](const std::vector<Token>& all, std::size_t n) {
    std::vector<Token> drafts = Right(all, n);
    if (drafts.size() > 3) drafts[3] = (drafts[3] + 1) % 50;
    return drafts;
  };
  const auto random = [](const std::vector<Token>&, std::size_t n) {
    std::mt19937 numbers(static_cast<unsigned>(n));
    std::vector<Token> drafts(numbers() % 65);
    for (Token& token : drafts) token = static_cast<Token>(numbers() % 50);
    return drafts;
  };
  return {Right, wrong, partly, random, Empty};
}

void ExpectTheSame(const Request& request) {
  FakeEngine engine;
  const Completion plain = engine.Run(request);
  for (const Guess& guess : Guesses()) {
    const Answer answer = InCalls(engine, request, plain.token_ids, guess);
    EXPECT_EQ(answer.tokens, plain.token_ids);
    EXPECT_EQ(answer.text, plain.text);
    EXPECT_EQ(answer.finish_reason, plain.finish_reason);
  }
}

TEST(GivenDrafts, TheTextIsThatOfOneRequestWhateverIsDrafted) {
  for (const float temperature : {0.0f, 0.7f, 1.0f})
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Request request = Ask(40, 60);
      request.sampling.temperature = temperature;
      request.seed = seed, request.id = seed % 2;
      ExpectTheSame(request);
    }
}

TEST(GivenDrafts, SettingsThatReadTheTextSeeAllOfIt) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Request request = Ask(20, 40);
    request.sampling.temperature = 0.8f;
    request.seed = seed;
    Request penalties = request, stops = request, grammar = request, ends = request;
    penalties.sampling.frequency_penalty = 0.7f, penalties.sampling.repetition_penalty = 1.3f;
    penalties.sampling.dry.multiplier = 1;
    ExpectTheSame(penalties);
    stops.stop = {"ab", "cde", "e", "zz"};
    ExpectTheSame(stops);
    ends.stop_token_ids = {3, 4, 5, 6, 7}, ends.min_new_tokens = 9;
    ExpectTheSame(ends);
    grammar.sampling.grammar = "root ::= ([a-k] [l-z])+";
    ExpectTheSame(grammar);
  }
}

TEST(GivenDrafts, RightDraftsAreAcceptedAndWrongOnesEndTheCall) {
  FakeEngine engine;
  const Request request = Ask(40, 24);
  const std::vector<Token> all = engine.Expected(request);
  const Answer right = InCalls(engine, request, all, Right);
  EXPECT_EQ(right.calls, 3);  // of 8 tokens each
  EXPECT_EQ(right.accepted, 21);
  EXPECT_EQ(right.finish_reason, FinishReason::kLength);
  EXPECT_EQ(right.cached, 55);  // all but the newest token
  EXPECT_EQ(InCalls(engine, request, all, Empty).calls, 24);
}

TEST(GivenDrafts, AreReportedAsTheCallersAndTeachNoController) {
  FakeEngine engine;
  Request request = Ask(10, 24);
  request.drafts = engine.Expected(request);
  request.drafts->resize(9);
  std::string drafter;
  int drafted = 0, rounds = 0;
  const Completion completion = engine.Run(request, [&](const RoundEvent& round) {
    drafter = round.drafter, drafted = round.drafted, ++rounds;
    return true;
  });
  EXPECT_EQ(drafter, "caller");
  EXPECT_EQ(drafted, 9);
  EXPECT_EQ(rounds, 1);
  EXPECT_EQ(completion.finish_reason, FinishReason::kVerified);
  EXPECT_EQ(completion.token_ids.size(), 10U);
  EXPECT_EQ(completion.strategy, "greedy");
  EXPECT_TRUE(completion.lossless);
  EXPECT_EQ(completion.controller, "");
  EXPECT_EQ(engine.drafter->n_begun, 0);
}

// Other requests neither bound their number nor take their blocks.
TEST(GivenDrafts, AllAreVerifiedInOnePassBesideOtherRequests) {
  FakeEngine engine({.mixed_drafts = 0});
  engine.Begin(Ask(10, 60, 2));
  engine.Step();
  Request request = Ask(20, 30);
  request.drafts = engine.Expected(request);
  request.drafts->resize(20);
  const Ticket ticket = engine.Begin(request);
  engine.Step();
  EXPECT_EQ(engine.admission->Take(ticket)->token_ids.size(), 21U);

  FakeEngineOptions small;
  small.runner.n_blocks = 4, small.context = 128;
  FakeEngine full(small);
  const Request old = Ask(30, 60, 2);
  const Ticket first = full.Begin(old);
  while (full.sequences().Slot(0) == nullptr || full.At(0).emitter.tokens_left() > 20) full.Step();
  const Ticket second = full.Begin(request);
  while (full.Step()) continue;
  EXPECT_EQ(full.admission->Take(second)->token_ids.size(), 21U);
  EXPECT_EQ(full.admission->Take(first)->token_ids, full.Expected(old));
}

TEST(GivenDrafts, AreCutWhereTheTextEnds) {
  FakeEngine engine;
  Request request = Ask(10, 4);
  const std::vector<Token> all = engine.Expected(request);
  request.drafts = std::vector<Token>(64, all[0]);
  std::copy(all.begin(), all.end(), request.drafts->begin());
  const Completion completion = engine.Run(request);
  EXPECT_EQ(completion.token_ids, all);
  EXPECT_EQ(completion.finish_reason, FinishReason::kLength);
  EXPECT_EQ(completion.speculation.accepted, 3);
  request.generated = {all[0], all[1], all[2]};
  EXPECT_EQ(engine.Run(request).token_ids, std::vector<Token>{all[3]});
}

TEST(GivenDrafts, WhatCannotBeVerifiedIsRefused) {
  const FakeEngine engine;
  const auto why = [&engine](const Request& request) {
    const auto prepared = engine.preparation->Prepare(request);
    return prepared ? std::string() : prepared.error().message;
  };
  Request request = Ask(10, 20);
  request.generated = {1};
  EXPECT_TRUE(why(request).starts_with("generated: nothing is to be verified"));
  request.drafts.emplace();
  EXPECT_EQ(why(request), "");
  request.drafts->assign(65, 1);
  EXPECT_TRUE(why(request).starts_with("drafts: 65 are more than the 64"));
  request.drafts->assign(64, 50);
  EXPECT_TRUE(why(request).starts_with("drafts: 50 is not in the vocabulary"));
  request.drafts->assign(64, 1);
  request.generated = {1, -1};
  EXPECT_TRUE(why(request).starts_with("generated: -1 is not in the vocabulary"));
  request.generated.assign(20, 1);
  EXPECT_TRUE(why(request).starts_with("generated: 20 tokens, and the request may have 20"));
  request.max_new_tokens = 1000;
  request.generated.assign(246, 1);
  EXPECT_TRUE(why(request).starts_with("generated: 246 tokens and the 10 of the prompt do not"));
  request.generated = {1, 2, 3};
  request.stop = {"cd"};
  EXPECT_TRUE(why(request).starts_with("generated: the text ends with token 3 of 3"));
  request.stop = {};
  request.prompt_logprobs = 0;
  EXPECT_TRUE(why(request).starts_with("prompt_logprobs: drafts are given too"));
  request.prompt_logprobs = -1;
  request.speculative.strategy = VerifyStrategy::kTypicalAcceptance;
  EXPECT_TRUE(why(request).starts_with("verify: 'typical-acceptance' verifies no drafts that are"));
}

}  // namespace
}  // namespace foretoken::engine
