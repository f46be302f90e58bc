// SPDX-License-Identifier: Apache-2.0
// SpeculativeDecoder between requests, as a program with a target of its own chains the calls:
// Draft(context), its own pass, Verify(drafts, logits). Nothing here reads a clock.
#include <gtest/gtest.h>

#include "foretoken/built_in_drafters.h"
#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr int kVocabulary = 320;

Tokens GivenPrompt() {
  Tokens text = {1};
  for (int i = 0; i < 30; ++i) text.push_back(60 + i * 7 % 200);
  return text;
}

// The program's own target: the pair's target, by a scorer.
class OwnTarget {
 public:
  // [drafts + 1, vocabulary]
  TokenRows Run(const Tokens& text, std::span<const std::int32_t> drafts) {
    EXPECT_TRUE(scorer_->Truncate(0, 0));
    Tokens all = text;
    all.insert(all.end(), drafts.begin(), drafts.end());
    const auto rows = scorer_->Score(all);
    EXPECT_TRUE(rows) << rows.error().message;
    const int from = static_cast<int>(text.size()) - 1;
    return {rows->Row(from).data(), rows->rows - from, rows->vocabulary_size, rows->stride};
  }

 private:
  std::unique_ptr<Scorer> scorer_ = MakeScorer(PairOptions());
};

void Extend(Tokens& text, std::span<const std::int32_t> drafts, const VerifiedDrafts& verified) {
  text.insert(text.end(), drafts.begin(), drafts.begin() + verified.accepted);
  text.push_back(verified.next);
}

// The drafts keep what they were drawn from, and stand behind their context.
TEST(GivenText, DraftAndVerifyGiveWhatStepGives) {
  for (const VerifyStrategy strategy : EveryStrategy()) {
    if (strategy == VerifyStrategy::kGreedy) continue;  // for temperature 0
    const auto chained = MakeDecoder(OptionsBy(strategy)),
               stepped = MakeDecoder(OptionsBy(strategy));
    OwnTarget target;
    GivenSampling given{.seed = 5};
    given.sampling.temperature = 0.9f;
    given.sampling.top_p = 0.95f;
    for (Tokens text = GivenPrompt(); text.size() < 80;) {
      const auto drafted = Got(chained->Draft(text, given));
      const Tokens drafts(drafted.tokens.begin(), drafted.tokens.end());
      const TokenRows logits = target.Run(text, drafts);
      const auto verified = Got(chained->Verify(drafts, logits, given));
      const auto step = Got(stepped->Step(text, logits, given));
      EXPECT_EQ(Tokens(step.drafts.begin(), step.drafts.end()), drafts);
      EXPECT_EQ(verified.strategy, step.verified.strategy);
      ASSERT_EQ(verified.accepted, step.verified.accepted) << Name(strategy);
      ASSERT_EQ(verified.next, step.verified.next) << Name(strategy);
      Extend(text, drafts, verified);
    }
    std::printf("  accepted %.3f chained, %.3f stepped: %s\n", chained->acceptance_rate(),
                stepped->acceptance_rate(), Name(strategy));
    EXPECT_EQ(chained->acceptance_rate(), stepped->acceptance_rate());
    EXPECT_GT(chained->acceptance_rate(), 0.05) << Name(strategy);
  }
}

// A draft model in a program's drafter, which counts what it does.
class Counted final : public Drafter {
 public:
  Counted() : inner_(*OpenDrafter(Pair().draft, {.threads = 1})) {}
  std::string_view name() const override { return "counted"; }
  bool ReportsDistributions() const override { return true; }
  DrafterLimits limits() const override { return inner_->limits(); }
  void Begin(const DrafterText& request) override { inner_->Begin(request); }
  void Propose(int sequence, DraftProposal& proposal) override {
    inner_->Propose(sequence, proposal);
  }
  void Observe(const DrafterRound& round) override { inner_->Observe(round); }
  void End(int sequence) override { inner_->End(sequence); }
  int Unread(int sequence) const override { return inner_->Unread(sequence); }
  DrafterWork TakeWork() override {
    const DrafterWork work = inner_->TakeWork();
    read += work.read_tokens, forwards += work.forwards;
    return work;
  }
  int read = 0;
  std::int64_t forwards = 0;

 private:
  std::shared_ptr<Drafter> inner_;
};

TEST(GivenText, TheDrafterReadsEachTokenOnce) {
  const auto counted = std::make_shared<Counted>();
  EngineOptions options = TargetOptions();
  options.drafter = counted;
  const auto decoder = MakeDecoder(options);
  OwnTarget target;
  for (const bool steps : {false, true}) {
    counted->read = 0, counted->forwards = 0;
    const std::int64_t before = decoder->stats().draft_forwards;
    int rounds = 0, drafts_made = 0;
    Tokens text = GivenPrompt();
    text[3] = steps ? 90 : 91;  // another text than before
    for (; text.size() < 80; ++rounds) {
      const auto drafted = Got(decoder->Draft(text, {}, {.num_steps = 3}));
      const Tokens drafts(drafted.tokens.begin(), drafted.tokens.end());
      drafts_made += static_cast<int>(drafts.size());
      const TokenRows logits = target.Run(text, drafts);
      if (steps) {
        const auto step = Got(decoder->Step(text, logits));
        drafts_made += static_cast<int>(step.drafts.size());
        Extend(text, step.drafts, step.verified);
      } else {
        const auto verified = Got(decoder->Verify(drafts, logits, {}));
        Extend(text, drafts, verified);
      }
    }
    std::printf("  %d tokens read before drafts in %d rounds of texts of 31 to 80, %s\n",
                counted->read, rounds, steps ? "Draft and Step" : "Draft and Verify");
    EXPECT_LE(counted->read, 31);
    EXPECT_LE(counted->forwards, drafts_made + 1);
    EXPECT_EQ(decoder->stats().draft_forwards - before, counted->forwards);
  }
  // A request takes the place of the text, and leaves nothing behind for the next.
  const Completion want = Generated(*OpenEngine(PairOptions()), Ask(20, 0.9f, 3));
  const Completion got = Got(decoder->Generate(Ask(20, 0.9f, 3)));
  EXPECT_EQ(got.token_ids, want.token_ids);
  EXPECT_EQ(got.speculation.accepted, want.speculation.accepted);
  EXPECT_TRUE(decoder->Draft(GivenPrompt()));
}

// Drafts the token after the last one, or the one after that.
class Counter final : public Drafter {
 public:
  explicit Counter(int by) : by_(by) {}
  std::string_view name() const override { return "counter"; }
  void Propose(int, DraftProposal& proposal) override {
    while (proposal.left() > 0) proposal.Push((proposal.text().back() + by_) % kVocabulary);
  }

 private:
  const int by_;
};

std::unique_ptr<SpeculativeDecoder> CountingDecoder(int by, const std::string& controller) {
  EngineOptions options = TargetOptions();
  options.speculative.controller = controller;
  options.drafter = std::make_shared<Counter>(by);
  return MakeDecoder(options);
}

// Logits of a target that counts by one behind the text and its drafts.
std::vector<float> Counting(std::int32_t last, std::size_t rows) {
  std::vector<float> logits(rows * kVocabulary);
  for (std::size_t i = 0; i < rows; ++i)
    logits[i * kVocabulary + (static_cast<std::size_t>(last) + i + 1) % kVocabulary] = 20;
  return logits;
}

struct Length {
  int first = 0, all = 0, last_20 = 0;
};
// Rounds of Draft and Verify on a text that counts.
Length Lengths(SpeculativeDecoder& decoder, int rounds, bool verifies_nothing = true) {
  Length lengths;
  GivenSampling greedy;
  greedy.sampling.temperature = 0;
  Tokens text = {1, 60};
  for (int round = 0; round < rounds; ++round) {
    const auto drafted = decoder.Draft(text, greedy);
    EXPECT_TRUE(drafted) << drafted.error().message;
    const Tokens drafts(drafted->tokens.begin(), drafted->tokens.end());
    const auto n = static_cast<int>(drafts.size());
    if (round == 0) lengths.first = n;
    lengths.all += n;
    if (round >= rounds - 20) lengths.last_20 += n;
    if (n == 0 && !verifies_nothing) {  // decodes by itself
      text.push_back(text.back() + 1);
    } else {
      const auto logits = Counting(text.back(), drafts.size() + 1);
      const auto verified = decoder.Verify(drafts, {logits, kVocabulary}, greedy);
      EXPECT_TRUE(verified) << verified.error().message;
      Extend(text, drafts, *verified);
    }
    text.erase(text.begin() + 1, text.end() - 1);  // the context is short
    text.back() %= 250;
  }
  return lengths;
}

TEST(GivenText, TheDefaultControllerLearnsFromIt) {
  for (const char* controller : {"cost-model", "by-text"})
    for (const bool verifies_nothing : {true, false}) {
      const auto decoder = CountingDecoder(2, controller);
      const Length bad = Lengths(*decoder, 80, verifies_nothing);
      std::printf("  nothing accepted: %d drafts in 80 rounds, %d in the last 20: %s\n", bad.all,
                  bad.last_20, controller);
      EXPECT_LE(bad.all, 160) << controller;
      EXPECT_LE(bad.last_20, 4) << controller;
    }
  // With costs that no clock changes, drafts that are all accepted stay.
  const auto decoder = CountingDecoder(1, "by-text");
  const Length good = Lengths(*decoder, 80);
  std::printf("  all accepted: %d drafts first, %d in the last 20 rounds\n", good.first,
              good.last_20);
  EXPECT_EQ(decoder->acceptance_rate(), 1);
  EXPECT_GE(good.last_20, 20 * std::max(1, good.first));
}

TEST(GivenText, DraftsOfARoundKeepTheirNumberUntilTheyAreVerified) {
  const auto decoder = CountingDecoder(1, "by-text");
  const Tokens text = {1, 60};
  const std::size_t n = decoder->Draft(text)->tokens.size();
  for (int i = 0; i < 30; ++i) ASSERT_EQ(decoder->Draft(text)->tokens.size(), n);
  EXPECT_EQ(decoder->Draft(text, {}, {.num_steps = 2})->tokens.size(), 2u);
  // A request's own limit ends with it.
  const auto second = MakeDecoder(PairOptions());
  EXPECT_EQ(second->Draft(text)->tokens.size(), 4u);
  ASSERT_TRUE(second->Generate(Ask(10, 0, 0, 2)));
  EXPECT_EQ(second->Draft(text)->tokens.size(), 4u);
}

TEST(GivenText, TheSpeedupIsEstimatedWithoutAPassOfTheTarget) {
  const auto decoder = CountingDecoder(1, "fixed");
  EXPECT_EQ(decoder->speedup_estimate(), 1);
  const Length lengths = Lengths(*decoder, 5);
  EXPECT_EQ(lengths.all, 20);
  EXPECT_EQ(decoder->acceptance_rate(), 1);
  EXPECT_EQ(decoder->speedup_estimate(), 5);  // K + 1 tokens a pass
  decoder->ResetStats();
  EXPECT_EQ(decoder->speedup_estimate(), 1);
}

TEST(GivenText, PenaltiesTakeTheTextThatTheyNeedOrAreRefused) {
  const auto decoder = MakeDecoder(PairOptions());
  std::vector<float> row(kVocabulary);
  row[7] = 3, row[8] = 2.5f;
  const Tokens text = {5, 7};
  const auto next = [&](const GivenSampling& given) {
    EXPECT_TRUE(decoder->Draft(text, given, {.num_steps = 0}));
    const auto verified = decoder->Verify({}, {row, kVocabulary}, given);
    EXPECT_TRUE(verified) << verified.error().message;
    return verified ? verified->next : -1;
  };
  GivenSampling given;
  given.sampling.temperature = 0;
  EXPECT_EQ(next(given), 7);
  for (int kind = 0; kind < 5; ++kind) {
    given = {};
    given.sampling.temperature = 0;
    given.n_generated = 1;
    if (kind == 0) given.sampling.frequency_penalty = 1;
    if (kind == 1) given.sampling.presence_penalty = 1;
    if (kind == 2) given.sampling.repetition_penalty = 2;
    if (kind == 3)
      given.sampling.processors = {[](std::span<const std::int32_t> seen, std::span<float> logits) {
        logits[static_cast<std::size_t>(seen.back())] = -1;
      }};
    if (kind == 4) given.sampling.dry.multiplier = 1;
    if (kind < 4) EXPECT_EQ(next(given), 8) << kind;
    // The context counts once.
    if (kind == 4) EXPECT_EQ(next(given), 7);
    const auto refused = decoder->Verify({}, {row, kVocabulary}, given);
    ASSERT_FALSE(refused) << kind;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(Begins(refused.error().message, "sampling: penalties and processors"));
  }
  given.n_generated = 3;
  EXPECT_FALSE(decoder->Draft(text, given));
  // The drafter counts generated tokens as the target does: its drafts are those of a request.
  const auto running = MakeDecoder(PairOptions());
  Request request = Ask(30, 0, 0, 4);
  request.sampling.frequency_penalty = 2;
  ASSERT_TRUE(running->Begin(request));
  while (!running->done()) {
    const Completion so_far = running->completion();
    const auto want = running->Draft();
    const Tokens all = WholeText(so_far);
    GivenSampling same{.sampling = request.sampling};
    same.n_generated = static_cast<int>(so_far.token_ids.size());
    const auto got =
        Got(decoder->Draft(all, same, {.num_steps = static_cast<int>(want->tokens.size())}));
    EXPECT_EQ(Tokens(got.tokens.begin(), got.tokens.end()),
              Tokens(want->tokens.begin(), want->tokens.end()));
    ASSERT_TRUE(running->Verify());
  }
}

// Drafts of the caller's own are certain, behind the context or not, and no noise is used twice.
TEST(GivenText, DraftsOfTheCallersOwnStandBehindTheContextToo) {
  const auto decoder = MakeDecoder(PairOptions()), same = MakeDecoder(PairOptions());
  OwnTarget target;
  const Tokens text = GivenPrompt(), own = {70, 71};
  const GivenSampling given{.seed = 3};
  const TokenRows logits = target.Run(text, own);
  ASSERT_TRUE(decoder->Draft(text, given));
  const auto verified = decoder->Verify(own, logits);  // drawn as the drafts were
  ASSERT_TRUE(verified) << verified.error().message;
  const auto alone =
      Verify({.vocabulary_size = kVocabulary,
              .speculative = {.strategy = *VerifyStrategy::Named(std::string(verified->strategy))},
              .seed = 3},
             {.text = text, .drafts = own, .target_logits = logits});
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(verified->accepted, alone->accepted);
  EXPECT_EQ(verified->next, alone->next);
  // The next one stands behind it, at the next position.
  const std::vector<float> flat(kVocabulary);
  const auto behind = decoder->Verify({}, {flat, kVocabulary}, given);
  const auto at = Verify({.vocabulary_size = kVocabulary, .seed = 3},
                         {.position = static_cast<int>(text.size()) + verified->accepted + 1,
                          .target_logits = {flat, kVocabulary}});
  ASSERT_TRUE(behind && at);
  EXPECT_EQ(behind->next, at->next);
}

}  // namespace
}  // namespace foretoken
