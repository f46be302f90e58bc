// SPDX-License-Identifier: Apache-2.0
// A draft model drafts what its network says. After any rounds its cache has the right length, and
// it contains what one prefill of the committed text would have put there.
#include "draft/networks/draft_model.h"

#include "draft/networks/head_bench_testing.h"
#include "model/fake_runner_testing.h"

namespace foretoken::draft {
namespace {

constexpr int kModelMaxDraft = 6, kModelSequences = 2, kModelPositions = 128,
              kModelVocabulary = 310;

class ModelBench {
 public:
  std::unique_ptr<DraftModel> Make() { return Make(kModelVocabulary, kModelVocabulary); }
  std::unique_ptr<DraftModel> Make(const SharedTokens& shared, int vocabulary,
                                   const ReadingWindow& reading = {}) {
    const kv::TablesShape tables{.n_sequences = kModelSequences, .max_positions = kModelPositions};
    auto runner = std::make_unique<model::FakeRunner>(
        model::FakeRunnerOptions{.vocabulary = vocabulary,
                                 .max_rows = 16,
                                 .max_logit_rows = kModelSequences,
                                 .n_blocks = tables.n_blocks()});
    return std::make_unique<DraftModel>(std::move(runner), tables, shared, kModelMaxDraft,
                                        kernels::KernelsFor(kernels::Isa::kScalar), true, reading);
  }
  static void Begin(DraftModel& drafter, SeqId seq, std::span<const Token> text, float temperature,
                    bool own_text_only = false) {
    SamplingParameters sampling;
    sampling.temperature = temperature;
    drafter.Begin({.seq = seq,
                   .prompt = text,
                   .max_new_tokens = 150,
                   .sampling = sampling,
                   .noise = Noise(7, static_cast<std::uint64_t>(seq)),
                   .own_text_only = own_text_only});
  }
};

Drafts ProposedByModel(DraftModel& drafter, SeqId seq, int n) {
  return draft::Proposed(drafter, seq, n, kModelVocabulary);
}

Token RandomToken(std::mt19937& random) {
  return 3 + static_cast<Token>(random() % 300);
}

TEST(DraftModel, DraftsTheLikeliestTokensOfItsNetworkAtTemperature0) {
  ModelBench bench;
  const auto drafter = bench.Make();
  std::vector<Token> text = {5, 9, 200};
  ModelBench::Begin(*drafter, 1, text, 0);
  const Drafts drafts = ProposedByModel(*drafter, 1, kModelMaxDraft);
  ASSERT_EQ(drafts.tokens.size(), std::size_t{kModelMaxDraft});
  const model::FakeRunner network({.vocabulary = kModelVocabulary});
  for (const Token token : drafts.tokens) {
    const std::vector<float> logits = network.LogitsAfter(text);
    EXPECT_EQ(token, std::max_element(logits.begin(), logits.end()) - logits.begin());
    text.push_back(token);
  }
}

TEST(DraftModel, HoldsTheCommittedTextAfterAnyAcceptsAndRejects) {
  ModelBench bench;
  std::mt19937 random(17);
  int whole = 0, none = 0;
  for (const float temperature : {0.0f, 0.9f}) {
    const auto drafter = bench.Make();
    std::vector<Token> texts[kModelSequences];
    for (SeqId seq = 0; seq < kModelSequences; ++seq) {
      for (int i = 0; i < 4 + 17 * seq; ++i) texts[seq].push_back(RandomToken(random));
      ModelBench::Begin(*drafter, seq, texts[seq], temperature);
    }
    for (int round = 0; round < 60; ++round) {
      const SeqId seq = static_cast<SeqId>(random() % kModelSequences);
      auto& text = texts[seq];
      const int n = static_cast<int>(text.size()), before = drafter->cached(seq);
      if (n > 110) continue;
      ASSERT_LE(before, n - 1);
      const int asked = static_cast<int>(random() % (kModelMaxDraft + 1));
      Drafts drafts;
      if (asked > 0) {
        drafts = ProposedByModel(*drafter, seq, asked);
        const auto fresh = bench.Make();
        ModelBench::Begin(*fresh, seq, text, temperature);
        ASSERT_TRUE(ProposedByModel(*fresh, seq, asked) == drafts) << round;
      }
      const int m = static_cast<int>(drafts.tokens.size());
      ASSERT_EQ(m, asked);
      if (m > 0) {
        ASSERT_EQ(drafter->cached(seq), n + m - 1);
      }
      const int accepted = m == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(m + 1));
      std::vector<Token> committed(drafts.tokens.begin(), drafts.tokens.begin() + accepted);
      committed.push_back(RandomToken(random));
      const Observation o{.seq = seq, .committed = committed, .drafted = m, .accepted = accepted};
      drafter->Observe({&o, 1});
      text.insert(text.end(), committed.begin(), committed.end());
      const int want = m == 0 ? before : std::min(n + m - 1, n + accepted);
      ASSERT_EQ(drafter->cached(seq), want) << "C " << n << ", m " << m << ", A " << accepted;
      whole += m > 0 && accepted == m, none += m > 0 && accepted == 0;
    }
    drafter->End(0);
    EXPECT_EQ(drafter->cached(0), 0);
  }
  EXPECT_GT(whole, 5);
  EXPECT_GT(none, 5);
}

// Every third token is a pair; the others are read as none, two or three of the model's.
constexpr int kOwnVocabulary = 200;
std::shared_ptr<const TokenMap> Map() {
  TokenMap map{.target = kModelVocabulary,
               .draft = kOwnVocabulary,
               .pairs = {},
               .tokens = {},
               .begins = {0}};
  for (Token token = 0; token < kModelVocabulary; ++token) {
    if (token % 3 == 0) map.pairs.push_back({token, 150 - token / 3});
    const int n = token % 3 == 0 ? 1 : token % 7 == 0 ? 0 : 1 + token % 3;
    for (int i = 0; i < n; ++i)
      map.tokens.push_back(token % 3 == 0 ? 150 - token / 3 : (7 * token + i) % kOwnVocabulary);
    map.begins.push_back(map.tokens.size());
  }
  return std::make_shared<const TokenMap>(std::move(map));
}

std::vector<Token> OwnTokens(const TokenMap& map, std::span<const Token> text) {
  std::vector<Token> own;
  for (const Token token : text)
    own.insert(own.end(), map.Reading(token).begin(), map.Reading(token).end());
  return own;
}

TEST(DraftModel, DraftsThePairsOfAnotherVocabulary) {
  ModelBench bench;
  const auto map = Map();
  const auto drafter = bench.Make(SharedTokens(map), kOwnVocabulary);
  std::vector<Token> text = {5, 14, 200};
  ModelBench::Begin(*drafter, 1, text, 0);
  const Drafts drafts = ProposedByModel(*drafter, 1, kModelMaxDraft);
  ASSERT_EQ(drafts.tokens.size(), std::size_t{kModelMaxDraft});
  const model::FakeRunner network({.vocabulary = kOwnVocabulary});
  for (const Token token : drafts.tokens) {
    const std::vector<float> logits = network.LogitsAfter(OwnTokens(*map, text));
    const auto best = *std::max_element(map->pairs.begin(), map->pairs.end(),
                                        [&](TokenMap::Pair a, TokenMap::Pair b) {
                                          return logits[static_cast<std::size_t>(a.draft)] <
                                                 logits[static_cast<std::size_t>(b.draft)];
                                        });
    EXPECT_EQ(token, best.target);
    text.push_back(token);
  }
}

// Its drafts and their distributions depend on the text alone, whatever was drafted and rejected before.
TEST(DraftModel, ReadsAnotherVocabularyAfterAnyAcceptsAndRejects) {
  ModelBench bench;
  std::mt19937 random(23);
  const auto map = Map();
  int compared = 0, full = 0;
  for (const float temperature : {0.0f, 0.9f}) {
    const auto drafter = bench.Make(SharedTokens(map), kOwnVocabulary);
    for (int request = 0; request < 6; ++request) {
      std::vector<Token> text = {7, 14};  // which the model does not read at all
      if (request % 2 == 1) text = {30, 1, 2, 62, 250};
      ModelBench::Begin(*drafter, 0, text, temperature);
      while (text.size() < 110) {
        const int asked = static_cast<int>(random() % (kModelMaxDraft + 1));
        Drafts drafts;
        if (asked > 0) {
          drafts = ProposedByModel(*drafter, 0, asked);
          const auto fresh = bench.Make(SharedTokens(map), kOwnVocabulary);
          ModelBench::Begin(*fresh, 0, text, temperature);
          ASSERT_TRUE(ProposedByModel(*fresh, 0, asked) == drafts) << text.size();
          for (const Token token : drafts.tokens) ASSERT_EQ(token % 3, 0);
          const int length = static_cast<int>(OwnTokens(*map, text).size());
          const int want = length == 0 ? 0 : std::clamp(kModelPositions - length + 1, 0, asked);
          ASSERT_EQ(static_cast<int>(drafts.tokens.size()), want);
          ++compared, full += length > kModelPositions;
        }
        const int m = static_cast<int>(drafts.tokens.size());
        const int accepted = m == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(m + 1));
        std::vector<Token> committed(drafts.tokens.begin(), drafts.tokens.begin() + accepted);
        committed.push_back(RandomToken(random));
        const Observation o{.seq = 0, .committed = committed, .drafted = m, .accepted = accepted};
        drafter->Observe({&o, 1});
        text.insert(text.end(), committed.begin(), committed.end());
      }
      if (request % 3 == 0) drafter->End(0);
    }
  }
  EXPECT_GT(compared, 100);
  EXPECT_GT(full, 5);
}

// ---- Long texts ------------------------------------------------------------------------------------

constexpr ReadingWindow kReading = {.most = 40, .back = 24};
constexpr int kFirstBlock = OwnText::kKept;

std::unique_ptr<DraftModel> MakeReader(ModelBench& bench) {
  return bench.Make(kModelVocabulary, kModelVocabulary, kReading);
}

std::vector<Token> RandomTokens(std::mt19937& random, int n) {
  std::vector<Token> text;
  for (int i = 0; i < n; ++i) text.push_back(RandomToken(random));
  return text;
}

// Whether it drafts what a model does that reads the first block and the rest of the text from `begin` on.
bool DraftsBehind(DraftModel& drafter, std::span<const Token> text, int begin, int n) {
  std::vector<Token> seen(text.begin(), text.begin() + kFirstBlock);
  seen.insert(seen.end(), text.begin() + begin, text.end());
  ModelBench bench;
  const auto model = bench.Make();
  ModelBench::Begin(*model, 0, seen, 0);
  return ProposedByModel(drafter, 0, n) == ProposedByModel(*model, 0, n);
}

TEST(DraftModel, ReadsALongTextFromItsEnd) {
  std::mt19937 random(5);
  ModelBench bench;
  const auto drafter = MakeReader(bench);
  std::vector<Token> text = RandomTokens(random, 100);
  ModelBench::Begin(*drafter, 0, text, 0);
  EXPECT_EQ(drafter->Missing(0), kFirstBlock + kReading.back - 2);
  const int begin = 100 - kReading.back;
  EXPECT_TRUE(DraftsBehind(*drafter, text, begin, 3));
  EXPECT_EQ(drafter->cached(0), kFirstBlock + kReading.back + 2);
  EXPECT_EQ(drafter->TakeWork().catch_up_rows, kFirstBlock + kReading.back - 1);

  // What comes is read on from there, and a text that goes on from this one, too.
  const std::vector<Token> committed = RandomTokens(random, 5);
  const Observation o{.seq = 0, .committed = committed, .drafted = 3, .accepted = 0};
  drafter->Observe({&o, 1});
  text.insert(text.end(), committed.begin(), committed.end());
  EXPECT_TRUE(DraftsBehind(*drafter, text, begin, 3));
  text.resize(100), text.push_back(7);
  ModelBench::Begin(*drafter, 0, text, 0);
  EXPECT_EQ(drafter->Missing(0), 0);
  EXPECT_TRUE(DraftsBehind(*drafter, text, begin, 3));
}

TEST(DraftModel, ReadsALongTextAgainWhereItLacksMuch) {
  std::mt19937 random(6);
  ModelBench bench;
  const auto drafter = MakeReader(bench);
  std::vector<Token> text = RandomTokens(random, 60);
  ModelBench::Begin(*drafter, 0, text, 0);
  ProposedByModel(*drafter, 0, 2);
  const std::vector<Token> more = RandomTokens(random, 50);
  text.insert(text.end(), more.begin(), more.end());
  ModelBench::Begin(*drafter, 0, text, 0);
  EXPECT_EQ(drafter->Missing(0), kReading.back - 2);  // the first block is there
  const int begin = 110 - kReading.back;
  EXPECT_TRUE(DraftsBehind(*drafter, text, begin, 2));

  // A text that shares only what was left out, or the first block.
  for (const int shared : {70, 20}) {
    std::vector<Token> other(text.begin(), text.begin() + shared);
    const std::vector<Token> own = RandomTokens(random, 20);
    other.insert(other.end(), own.begin(), own.end());
    ModelBench::Begin(*drafter, 0, other, 0);
    const int n = static_cast<int>(other.size()),
              from = n - 1 - std::min(shared, kFirstBlock) > kReading.most ? n - kReading.back
                                                                           : kFirstBlock;
    EXPECT_TRUE(DraftsBehind(*drafter, other, std::min(from, n), 2)) << shared;
  }
}

TEST(DraftModel, ReadsAllWhereTheTextFollowsItsDrafts) {
  std::mt19937 random(7);
  ModelBench bench;
  const auto drafter = MakeReader(bench), whole = bench.Make();
  const std::vector<Token> text = RandomTokens(random, 100);
  ModelBench::Begin(*drafter, 0, text, 0);
  ProposedByModel(*drafter, 0, 2);
  ModelBench::Begin(*drafter, 0, text, 0, true);
  ModelBench::Begin(*whole, 0, text, 0);
  EXPECT_EQ(drafter->Missing(0), 98);
  EXPECT_TRUE(ProposedByModel(*drafter, 0, 2) == ProposedByModel(*whole, 0, 2));
  EXPECT_EQ(drafter->cached(0), 101);
}

// 128 positions are its own context.
TEST(DraftModel, DraftsBehindTextsThatItsContextDoesNotHold) {
  std::mt19937 random(8);
  ModelBench bench;
  const auto drafter = MakeReader(bench);
  std::vector<Token> text = RandomTokens(random, 300);
  ModelBench::Begin(*drafter, 0, text, 0);
  int begin = 300 - kReading.back;
  for (int round = 0; round < 120; ++round) {
    const int own = kFirstBlock + static_cast<int>(text.size()) - begin;
    if (own + kModelMaxDraft > kModelPositions)
      begin = static_cast<int>(text.size()) - kReading.back;
    ASSERT_TRUE(DraftsBehind(*drafter, text, begin, 2)) << round;
    const Token token = RandomToken(random);
    const Observation o{.seq = 0, .committed = {&token, 1}, .drafted = 2, .accepted = 0};
    drafter->Observe({&o, 1});
    text.push_back(token);
  }
  EXPECT_GT(begin, 300);
}

TEST(DraftModel, ReadsALongTextOfAnotherVocabularyFromItsEnd) {
  std::mt19937 random(9);
  ModelBench bench;
  const auto map = Map();
  const auto drafter = bench.Make(SharedTokens(map), kOwnVocabulary, kReading);
  const std::vector<Token> text = RandomTokens(random, 90);
  const std::vector<Token> own = OwnTokens(*map, text);
  ASSERT_GT(own.size(), 100U);
  ModelBench::Begin(*drafter, 0, text, 0);
  EXPECT_EQ(drafter->Missing(0), kFirstBlock + kReading.back - 2);
  draft::Proposed(*drafter, 0, 1, kModelVocabulary);
  EXPECT_EQ(drafter->cached(0), kFirstBlock + kReading.back);
}

}  // namespace
}  // namespace foretoken::draft
