// SPDX-License-Identifier: Apache-2.0
// The distributions and logits that rounds show, verification on the caller's logits, and scoring:
// all of it is what the engine itself computes, bit for bit.
#include <gtest/gtest.h>

#include <cmath>

#include "foretoken/speculative_pipeline.h"
#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

using Tokens = std::vector<std::int32_t>;

std::vector<float> Copied(const TokenRows& rows) {
  std::vector<float> out;
  for (int i = 0; i < rows.rows; ++i) out.insert(out.end(), rows.Row(i).begin(), rows.Row(i).end());
  return out;
}

// The engine's own rounds, verified again without it.
TEST(GivenLogits, EveryRuleGivesWhatTheEngineCommits) {
  std::int64_t accepted = 0;
  for (const VerifyStrategy strategy : EveryStrategy()) {
    if (strategy == VerifyStrategy::kAuto) continue;
    const EngineOptions options = OptionsBy(strategy);
    const auto decoder = MakeDecoder(options);
    const int vocabulary = decoder->engine().summary().target.vocabulary_size;
    Request request = Ask(40, strategy == VerifyStrategy::kGreedy ? 0.0f : 0.9f, 7, 5);
    request.id = 3;
    request.sampling.top_p = 0.95f;
    request.sampling.frequency_penalty = 0.2f;
    auto verification = DraftVerification::Create({.vocabulary_size = vocabulary,
                                                   .speculative = options.speculative,
                                                   .sampling = request.sampling,
                                                   .seed = request.seed,
                                                   .request_id = request.id});
    ASSERT_TRUE(verification) << verification.error().message;
    ASSERT_TRUE(decoder->Begin(request));
    while (!decoder->done()) {
      const Completion before = decoder->completion();
      const Tokens text = WholeText(before);
      const auto drafted = Got(decoder->Draft({.distributions = true, .logits = true}));
      const Tokens drafts(drafted.tokens.begin(), drafted.tokens.end());
      const auto q = Copied(drafted.distributions), own = Copied(drafted.logits);
      EXPECT_EQ(own.size(), drafts.size() * static_cast<std::size_t>(vocabulary));
      const auto round = Got(decoder->Verify());
      EXPECT_EQ(round.target_logits.rows, static_cast<int>(drafts.size()) + 1);
      VerificationInput input{.text = text,
                              .n_generated = static_cast<int>(before.token_ids.size()),
                              .drafts = drafts,
                              .draft_probabilities = {q, vocabulary},
                              .draft_logits = {own, vocabulary},
                              .target_logits = round.target_logits};
      const auto verified = Got(verification->Verify(input));
      EXPECT_EQ(verified.strategy, Name(strategy));
      ASSERT_EQ(verified.accepted, round.accepted) << Name(strategy);
      ASSERT_EQ(verified.next, round.tokens.back()) << Name(strategy);
      EXPECT_EQ(verified.origin == TokenOrigin::kRecovered, round.recovered_token.has_value());
      EXPECT_EQ(verified.origin == TokenOrigin::kBonus, round.bonus_token.has_value());
      // The drafter's logits give its distributions.
      input.draft_probabilities = {};
      EXPECT_EQ(verification->Verify(input)->next, verified.next) << Name(strategy);
      accepted += verified.accepted;
    }
  }
  EXPECT_GT(accepted, 60);
}

TEST(GivenLogits, RoundsShowWhatTheyWereMadeOfWhereAsked) {
  const auto decoder = MakeDecoder(PairOptions());
  Request request = Ask(30, 0.9f, 3, 4);
  request.logprobs = 3;
  const auto first = Got(decoder->Begin(request));
  EXPECT_EQ(first.target_logits.rows, 1);
  EXPECT_EQ(first.logprobs.size(), 1u);
  while (!decoder->done()) {
    const auto drafted = Got(decoder->Draft({.distributions = true, .logits = true}));
    const std::size_t n = drafted.tokens.size();
    ASSERT_EQ(drafted.distributions.rows, static_cast<int>(n));
    ASSERT_EQ(drafted.logits.rows, static_cast<int>(n));
    for (std::size_t i = 0; i < n; ++i) {
      const auto distribution = drafted.distributions.Row(static_cast<int>(i));
      const auto token = static_cast<std::size_t>(drafted.tokens[i]);
      EXPECT_EQ(distribution[token], drafted.probabilities[i]);
      double sum = 0, normaliser = 0;
      for (const float p : distribution) sum += static_cast<double>(p);
      EXPECT_NEAR(sum, 1, 1e-5);
      const auto logits = drafted.logits.Row(static_cast<int>(i));
      for (const float x : logits) normaliser += std::exp(static_cast<double>(x) / 0.9f);
      EXPECT_NEAR(std::exp(static_cast<double>(logits[token]) / 0.9f) / normaliser,
                  drafted.probabilities[i], 1e-5);
    }
    const auto round = decoder->Verify();
    ASSERT_TRUE(round);
    ASSERT_EQ(round->logprobs.size(), round->tokens.size());
    EXPECT_EQ(round->target_logits.rows, round->drafted + 1);
    for (std::size_t i = 0; i < round->tokens.size(); ++i) {
      const auto logits = round->target_logits.Row(static_cast<int>(i));
      double normaliser = 0;
      for (const float x : logits) normaliser += std::exp(static_cast<double>(x));
      EXPECT_NEAR(round->logprobs[i].logprob,
                  static_cast<double>(logits[static_cast<std::size_t>(round->tokens[i])]) -
                      std::log(normaliser),
                  1e-5);
    }
    const bool whole = static_cast<int>(round->tokens.size()) == round->accepted + 1;
    EXPECT_EQ(round->recovered_token.has_value() || round->bonus_token.has_value(),
              whole && round->drafted > 0);
    if (round->recovered_token) EXPECT_EQ(*round->recovered_token, round->tokens.back());
  }
  // Only what was asked for; greedy drafts are certain, and have logits.
  ASSERT_TRUE(decoder->Begin(Ask(20)));
  auto drafted = decoder->Draft();
  EXPECT_TRUE(drafted->distributions.empty() && drafted->logits.empty());
  EXPECT_TRUE(decoder->Verify()->logprobs.empty());
  drafted = decoder->Draft({.distributions = true, .logits = true});
  EXPECT_TRUE(drafted->distributions.empty());
  ASSERT_EQ(drafted->logits.rows, static_cast<int>(drafted->tokens.size()));
  for (std::size_t i = 0; i < drafted->tokens.size(); ++i) {
    const auto row = drafted->logits.Row(static_cast<int>(i));
    EXPECT_EQ(std::max_element(row.begin(), row.end()) - row.begin(), drafted->tokens[i]);
  }
}

TEST(GivenLogits, TheCallerChoosesTheNumberOfDrafts) {
  for (const char* controller : {"fixed", "ewma", "cost-model", "heuristic"}) {
    EngineOptions options = PairOptions();
    options.speculative.controller = controller;
    const auto want = Generated(*OpenEngine(options), Ask(40, 0, 0, 8));
    const auto decoder = MakeDecoder(options);
    ASSERT_TRUE(decoder->Begin(Ask(40, 0, 0, 8)));
    for (int k = 0; !decoder->done(); k = (k + 3) % 10) {
      const int left = 40 - static_cast<int>(decoder->completion().token_ids.size());
      const auto drafted = Got(decoder->Draft({.num_steps = k}));
      EXPECT_EQ(static_cast<int>(drafted.tokens.size()), std::min({k, 8, left - 1})) << controller;
      ASSERT_TRUE(decoder->Verify());
    }
    EXPECT_EQ(decoder->completion().token_ids, want.token_ids) << controller;
  }
  const auto decoder = MakeDecoder(PairOptions());
  ASSERT_TRUE(decoder->Begin(Ask(10)));
  EXPECT_FALSE(decoder->Draft({.num_steps = 65}));
  EXPECT_FALSE(decoder->Draft({.num_steps = -1}));
}

TEST(GivenLogits, ThePipelinesStepsShowThemToo) {
  const auto pipeline = Got(StandaloneSpeculativeDecodingPipeline::Create(PairOptions(3)));
  std::vector<TextGenerationBatch> replicas(1);
  replicas[0]["greedy"] = Ask(20, 0, 0, 6);
  replicas[0]["sampled"] = Ask(20, 0.9f, 4, 6);
  replicas[0]["sampled"].logprobs = 0;
  const auto alone = OpenEngine(PairOptions());
  std::map<std::string, Tokens> texts;
  bool done = false;
  for (int step = 0; !done; ++step) {
    const int k = 1 + step % 4;
    const auto drafts = Got(pipeline->GenerateDraftTokens(
        replicas, k, {.distributions = true, .logits = step % 2 == 0}));
    const auto outputs = Got(pipeline->VerifyDraftTokensWithTargetModel({.target_logits = true}));
    done = true;
    for (const auto& [id, output] : outputs) {
      done &= output.done;
      texts[id].insert(texts[id].end(), output.tokens.begin(), output.tokens.end());
      const Drafts& drafted = drafts.at(id);
      const auto n = drafted.tokens.size(),
                 width = static_cast<std::size_t>(drafted.vocabulary_size);
      EXPECT_LE(static_cast<int>(n), k);
      EXPECT_EQ(output.drafted, static_cast<int>(n));
      EXPECT_EQ(drafted.logits.size(), step % 2 == 0 ? n * width : 0);
      EXPECT_EQ(drafted.distributions.size(), id == "sampled" ? n * width : 0);
      if (output.tokens.empty()) continue;
      EXPECT_EQ(output.target_logits.size(), (n + 1) * width);
      EXPECT_EQ(output.logprobs.size(), id == "sampled" ? output.tokens.size() : 0);
      if (static_cast<int>(output.tokens.size()) <= output.accepted || n == 0) continue;
      EXPECT_EQ(output.recovered_token.value_or(output.bonus_token.value_or(-1)),
                output.tokens.back());
      EXPECT_EQ(output.bonus_token.has_value(), output.accepted == static_cast<int>(n));
    }
  }
  EXPECT_EQ(texts["greedy"], Generated(*alone, Ask(20, 0, 0, 0)).token_ids);
  EXPECT_FALSE(pipeline->GenerateDraftTokens(replicas, 65));
}

// Prompt and text by scoring, in pieces of every size, with drafts that are removed again.
TEST(Scorer, GivesTheLogitsOfTheEnginesOwnPasses) {
  const auto decoder = MakeDecoder(PairOptions());
  const auto scorer = MakeScorer(PairOptions(2));
  ASSERT_TRUE(decoder->Begin(Ask(30, 0.9f, 2, 4)));
  const Tokens prompt = decoder->completion().prompt_token_ids;
  const auto scored = Got(scorer->Score(prompt));
  ASSERT_EQ(scored.rows, static_cast<int>(prompt.size()));
  Tokens newest = decoder->completion().token_ids;
  while (!decoder->done()) {
    const auto drafted = decoder->Draft();
    Tokens query = newest;
    query.insert(query.end(), drafted->tokens.begin(), drafted->tokens.end());
    const int before = scorer->length();
    const auto rows = Got(scorer->Score(query));
    const auto round = Got(decoder->Verify());
    EXPECT_EQ(rows.vocabulary_size, round.target_logits.vocabulary_size);
    ASSERT_EQ(rows.rows, round.target_logits.rows);
    for (int i = 0; i < rows.rows; ++i)
      EXPECT_TRUE(SameBits(rows.Row(i), round.target_logits.Row(i))) << i;
    ASSERT_TRUE(scorer->Truncate(0, before + 1 + round.accepted));
    newest = {round.tokens.back()};
  }
}

TEST(Scorer, ScoresABatchOfTextsTogether) {
  EngineOptions options = PairOptions(3);
  options.prefill_rows = 1;  // several passes
  const auto scorer = MakeScorer(options), alone = MakeScorer(PairOptions());
  const std::vector<Tokens> texts = {Tokens(90, 40), {1, 50, 60, 70}, {}};
  std::vector<ScoreQuery> batch;
  for (int i = 0; i < 3; ++i) batch.push_back({i, texts[static_cast<std::size_t>(i)]});
  const auto rows = Got(scorer->Score(batch));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    ASSERT_TRUE(alone->Truncate(0, 0));
    const auto own = Got(alone->Score(texts[i]));
    ASSERT_EQ(rows[i].rows, own.rows);
    for (int r = 0; r < own.rows; ++r) EXPECT_TRUE(SameBits(rows[i].Row(r), own.Row(r)));
    EXPECT_EQ(scorer->length(static_cast<int>(i)), static_cast<int>(texts[i].size()));
  }
  // They are the engine's log-probabilities.
  const auto engine = OpenEngine(PairOptions());
  const auto logprobs = Got(engine->Score(texts[1]));
  for (std::size_t i = 0; i + 1 < texts[1].size(); ++i) {
    double normaliser = 0;
    for (const float x : rows[1].Row(static_cast<int>(i)))
      normaliser += std::exp(static_cast<double>(x));
    const auto token = static_cast<std::size_t>(texts[1][i + 1]);
    EXPECT_NEAR(logprobs[i],
                static_cast<double>(rows[1].Row(static_cast<int>(i))[token]) - std::log(normaliser),
                1e-5);
  }
}

TEST(Scorer, SaysWhatCannotBe) {
  const auto scorer = MakeScorer(PairOptions(2));
  const Tokens some = {1, 2, 3}, unknown = {1, 100000}, many(97, 1);
  EXPECT_FALSE(scorer->Score(some, 2));
  EXPECT_FALSE(scorer->Score(some, -1));
  EXPECT_FALSE(scorer->Score(unknown));
  EXPECT_TRUE(Fails(scorer->Score(many), ErrorCode::kTooLarge));
  const std::vector<ScoreQuery> twice = {{1, some}, {1, some}};
  EXPECT_FALSE(scorer->Score(twice));
  EXPECT_EQ(scorer->length(1), 0);
  EXPECT_FALSE(scorer->Truncate(0, 1));
  EXPECT_FALSE(scorer->Truncate(5, 0));
  ASSERT_TRUE(scorer->Score(some, 1));
  EXPECT_EQ(scorer->length(1), 3);
  EXPECT_TRUE(scorer->Truncate(1, 2));
  EXPECT_EQ(scorer->length(1), 2);
}

// Logits that say "next" after token t for t + 1, whatever the text.
std::vector<float> Rising(std::int32_t from, int rows, int vocabulary) {
  std::vector<float> logits(static_cast<std::size_t>(rows) * static_cast<std::size_t>(vocabulary));
  for (int i = 0; i < rows; ++i)
    logits[static_cast<std::size_t>(i) * static_cast<std::size_t>(vocabulary) +
           static_cast<std::size_t>(from + 1 + i)] = 20;
  return logits;
}

TEST(SpeculativeDecoder, VerifiesOnLogitsOfTheCallersWithItsOwnState) {
  EngineOptions options = PairOptions();
  options.speculative.controller = "ewma";
  options.speculative.adaptive_lookahead.cooldown_steps = 0;
  const auto decoder = MakeDecoder(options);
  const int vocabulary = decoder->engine().summary().target.vocabulary_size;
  GivenSampling greedy;
  greedy.sampling.temperature = 0;
  const Tokens drafts = {11, 12, 40};
  const auto logits = Rising(10, 4, vocabulary);
  const auto verified = Got(decoder->Verify(drafts, {logits, vocabulary}, greedy));
  EXPECT_EQ(verified.accepted, 2);
  EXPECT_EQ(verified.next, 13);
  EXPECT_EQ(verified.origin, TokenOrigin::kRecovered);
  EXPECT_EQ(decoder->statistics().total_steps, 1);
  EXPECT_EQ(decoder->statistics().total_draft_tokens, 3);
  EXPECT_EQ(decoder->statistics().total_accepted_tokens, 2);
  EXPECT_EQ(decoder->adaptive_lookahead()->observations(), 1);
  EXPECT_EQ(decoder->adaptive_lookahead()->mean_accepted(), 2);
  EXPECT_EQ(decoder->adaptive_lookahead()->lookahead(), 3);
  EXPECT_EQ(decoder->stats().verified_per_position[2], 1);
  // No noise is used twice: the same drafts and logits again draw other tokens.
  const std::vector<float> flat(static_cast<std::size_t>(vocabulary));
  Tokens drawn, again;
  for (auto* out : {&drawn, &again}) {
    decoder->ResetStats();
    for (int i = 0; i < 8; ++i) out->push_back(decoder->Verify({}, {flat, vocabulary})->next);
  }
  EXPECT_EQ(drawn, again);
  EXPECT_GT(std::count_if(drawn.begin(), drawn.end(), [&](auto t) { return t != drawn[0]; }), 4);
  EXPECT_EQ(decoder->statistics().total_steps, 8);

  EXPECT_FALSE(decoder->Verify(drafts, {flat, vocabulary}, greedy));
  ASSERT_TRUE(decoder->Begin(Ask(10)));
  EXPECT_FALSE(decoder->Verify(drafts, {logits, vocabulary}, greedy));
  EXPECT_FALSE(decoder->Step(drafts, {logits, vocabulary}, greedy));
  EXPECT_FALSE(decoder->Draft(drafts, greedy));
}

// Steps on the target's own logits from a scorer: the text is the target's.
TEST(SpeculativeDecoder, StepsOnLogitsOfTheCallersGiveTheTargetsText) {
  for (const char* method : {"standalone", "ngram", "suffix"})
    for (const float temperature : {0.0f, 0.9f}) {
      EngineOptions options = OptionsOfMethod(method);
      options.speculative.strategy = VerifyStrategy::kSampleMatch;
      const auto decoder = MakeDecoder(options);
      const auto scorer = MakeScorer(PairOptions());
      Request request = Ask(30, temperature, 9, 0);
      const Completion want = Generated(*OpenEngine(options), request);
      const GivenSampling given{.sampling = request.sampling, .seed = 9};
      Tokens text = want.prompt_token_ids;
      const std::size_t prompt = text.size();
      std::int64_t accepted = 0;
      while (text.size() < prompt + 30) {
        // The drafts first, so that their rows can be scored.
        const auto drafted = Got(decoder->Draft(text, given));
        Tokens query(text.begin() + scorer->length(), text.end());
        const auto from = static_cast<int>(query.size()) - 1;
        query.insert(query.end(), drafted.tokens.begin(), drafted.tokens.end());
        const auto rows = Got(scorer->Score(query));
        const TokenRows target(rows.Row(from).data(), rows.rows - from, rows.vocabulary_size,
                               rows.stride);
        const auto step = Got(decoder->Step(text, target, given));
        text.insert(text.end(), step.drafts.begin(), step.drafts.begin() + step.verified.accepted);
        text.push_back(step.verified.next);
        accepted += step.verified.accepted;
        ASSERT_TRUE(scorer->Truncate(0, static_cast<int>(text.size()) - 1));
      }
      text.resize(prompt + 30);
      EXPECT_EQ(Tokens(text.begin() + static_cast<std::ptrdiff_t>(prompt), text.end()),
                want.token_ids)
          << method << " " << temperature;
      EXPECT_EQ(decoder->statistics().total_accepted_tokens, accepted);
      if (std::string(method) == "standalone") EXPECT_GT(accepted, 5);
    }
  // Penalties for generated tokens count them in the context.
  const auto decoder_with_penalties = MakeDecoder(PairOptions());
  const int width = decoder_with_penalties->engine().summary().target.vocabulary_size;
  std::vector<float> row(static_cast<std::size_t>(width));
  row[7] = 3, row[8] = 2.5f;
  const Tokens seven = {5, 7};
  GivenSampling penalised;
  penalised.sampling.temperature = 0;
  penalised.sampling.frequency_penalty = 1;
  EXPECT_EQ(decoder_with_penalties->Step(seven, {row, width}, penalised)->verified.next, 7);
  penalised.n_generated = 1;
  EXPECT_EQ(decoder_with_penalties->Step(seven, {row, width}, penalised)->verified.next, 8);
  // A head reads the target's hidden states, and there are none.
  const Tokens text = {1, 2, 3};
  EXPECT_TRUE(Begins(MessageOf(MakeDecoder(HeadOptions({}))->Draft(text)), "drafts: 'mtp' "));
}

// A model file may say that tokens are never drawn: neither drafts behind a text nor tokens of given
// logits are among them.
TEST(SpeculativeDecoder, NeverDrawsSuppressedTokensBehindAGivenText) {
  fixtures::TinyModelOptions model = kPairTarget;
  const Tokens text = {1, 2, 3};
  GivenSampling greedy;
  greedy.sampling.temperature = 0;
  const auto open = [&] {
    EngineOptions options = PairOptions();
    options.model = options.draft_model = fixtures::WriteTinyModel(PairFolder(), model);
    return MakeDecoder(options);
  };
  const auto free_decoder = open();
  const auto free = Got(free_decoder->Draft(text, greedy, {.num_steps = 3}));
  ASSERT_EQ(free.tokens.size(), 3u);
  const std::int32_t banned = free.tokens[0];
  model.suppressed = {banned};
  const auto decoder = open();
  const auto drafted = Got(decoder->Draft(text, greedy, {.num_steps = 3}));
  EXPECT_EQ(std::count(drafted.tokens.begin(), drafted.tokens.end(), banned), 0);
  const int vocabulary = decoder->engine().summary().target.vocabulary_size;
  std::vector<float> logits(static_cast<std::size_t>(vocabulary));
  logits[static_cast<std::size_t>(banned)] = 20;
  const auto verified = Got(decoder->Verify({}, {logits, vocabulary}, greedy));
  EXPECT_NE(verified.next, banned);
}

TEST(SpeculativeDecoder, ResettingStatisticsResetsTheController) {
  for (const char* controller : {"ewma", "heuristic"}) {
    EngineOptions options = PairOptions();
    options.draft_model = options.model;  // every draft is accepted
    options.speculative.controller = controller;
    options.speculative.adaptive_lookahead.cooldown_steps = 0;
    const auto decoder = MakeDecoder(options);
    ASSERT_TRUE(decoder->Begin(Ask(70, 0, 0, 8)));
    const auto first = decoder->Draft()->tokens.size();
    ASSERT_TRUE(decoder->Verify());
    ASSERT_TRUE(decoder->Step());
    EXPECT_GT(decoder->Draft()->tokens.size(), first) << controller;
    ASSERT_TRUE(decoder->Verify());
    decoder->ResetStats();
    if (decoder->adaptive_lookahead() != nullptr) {
      EXPECT_EQ(decoder->adaptive_lookahead()->observations(), 0);
      EXPECT_EQ(decoder->adaptive_lookahead()->lookahead(), 5);
    }
    EXPECT_EQ(decoder->Draft()->tokens.size(), first) << controller;
    EXPECT_EQ(decoder->statistics().total_steps, 0);
  }
}

TEST(SpeculativeDecoder, TheCallerMayChangeTheController) {
  EngineOptions options = PairOptions();
  options.draft_model = options.model;
  options.speculative.controller = "ewma";
  const auto decoder = MakeDecoder(options);
  Request request = Ask(80, 0, 0, 12);
  ASSERT_TRUE(decoder->Begin(request));
  EXPECT_EQ(decoder->Draft()->tokens.size(), 5u);
  ASSERT_TRUE(decoder->Verify());
  ASSERT_TRUE(decoder->adaptive_lookahead()->Configure({.initial = 3, .min = 3, .max = 3}));
  EXPECT_EQ(decoder->Draft()->tokens.size(), 3u);
  EXPECT_FALSE(decoder->adaptive_lookahead()->Configure({.initial = 1, .min = 2}));
  EXPECT_EQ(decoder->adaptive_lookahead()->config().initial, 3);
  decoder->Cancel();
  // The next request begins with it, reset.
  ASSERT_TRUE(decoder->Begin(request));
  EXPECT_EQ(decoder->adaptive_lookahead()->observations(), 0);
  EXPECT_EQ(decoder->Draft()->tokens.size(), 3u);
  *decoder->adaptive_lookahead() = *AdaptiveLookahead::Create({.initial = 7});
  ASSERT_TRUE(decoder->Verify());
  EXPECT_EQ(decoder->Draft()->tokens.size(), 7u);
  decoder->Cancel();
  // The request's own limit stays.
  request.speculative.num_speculative_tokens = 2;
  ASSERT_TRUE(decoder->Begin(request));
  EXPECT_EQ(decoder->Draft()->tokens.size(), 2u);
}

TEST(SpeculativeDecoder, RatesAreNumbersBeforeTheFirstRound) {
  const auto decoder = MakeDecoder(PairOptions());
  EXPECT_EQ(decoder->acceptance_rate(), 0);
  EXPECT_EQ(decoder->speedup_estimate(), 1);
  EXPECT_FALSE(decoder->statistics().acceptance_rate);
  ASSERT_TRUE(decoder->Generate(Ask(20)));
  EXPECT_EQ(decoder->acceptance_rate(), *decoder->statistics().acceptance_rate);
  EXPECT_EQ(decoder->speedup_estimate(), *decoder->statistics().speedup_estimate);
}

TEST(SpeculativeDecoder, TakesItsEndTokensAtConstruction) {
  const auto text = Generated(*OpenEngine(PairOptions()), Ask(30, 0, 0, 0)).token_ids;
  EngineOptions options = PairOptions();
  options.end_tokens = {text[7], text[12]};
  Request request = Ask(30);
  request.ignore_eos = false;
  const Completion completion = Got(MakeDecoder(options)->Generate(request));
  EXPECT_EQ(completion.finish_reason, FinishReason::kStop);
  EXPECT_LE(completion.token_ids.size(), 8u);
}

}  // namespace
}  // namespace foretoken
