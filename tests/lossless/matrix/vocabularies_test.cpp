// SPDX-License-Identifier: Apache-2.0
// Drafters whose vocabularies differ from the target's: a little (shorter, longer, with a few tokens of
// other texts), or altogether. Tokens that are not shared are never drafted, texts that contain them are
// drafted for, and the target's text or distribution does not change.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/tools/model_file.h"
#include "lossless/distribution_testing.h"

namespace foretoken {
namespace {

constexpr int kPairVocabulary = 320;

fixtures::TinyModelOptions Options(int vocabulary, std::map<int, std::string> respelled) {
  auto options = fixtures::TinyOptions(
      "seed=91 n_layers=1 dim=32 ff=32 n_heads=2 n_kv_heads=1 context_length=96");
  options.vocab = vocabulary, options.respelled = std::move(respelled);
  return options;
}
const std::map<int, std::string> kRespelled = {
    {0, "<|pad|>"}, {2, "<|end|>"}, {265, "<|tool|>"}, {301, "<|x|>"}};
// They occur everywhere in the texts below, and no drafter has all of them.
const std::map<std::int32_t, float> kFavoured = {{2, 1.0F},   {265, 4.0F}, {301, 4.0F}, {305, 4.5F},
                                                 {319, 4.0F}, {299, 3.5F}, {270, 3.5F}};

struct VocabularyPair {
  std::string name, draft, method;
  int vocabulary = kPairVocabulary;
  bool respelled = false;
  std::optional<std::set<std::int32_t>> shared = {};  // of another vocabulary: what may be drafted
  bool Shares(std::int32_t id) const {
    if (shared) return shared->contains(id);
    return id < vocabulary && !(respelled && kRespelled.contains(id));
  }
};

const std::string& Folder() {
  static const std::string folder = fixtures::TemporaryFolder();
  return folder;
}
const std::string& Target() {
  static const std::string path = fixtures::WriteTinyModel(Folder(), Options(kPairVocabulary, {}));
  return path;
}

// A draft model whose tokens behind the bytes are the target's, five ids further, as far as it has them.
VocabularyPair OtherVocabulary(const std::string& name, int vocabulary) {
  const std::vector<std::string> texts = fixtures::MakeTinyVocabulary(vocabulary).tokens;
  constexpr int kFirst = 259;
  auto options = Options(vocabulary, {});
  for (int id = kFirst; id < vocabulary; ++id)
    options.respelled[id] =
        texts[static_cast<std::size_t>(kFirst + (id - kFirst + 5) % (vocabulary - kFirst))];
  VocabularyPair pair{name, fixtures::WriteTinyModel(Folder(), options), "standalone", vocabulary,
                      true};
  const auto target = ModelFile::Open(Target()), draft = ModelFile::Open(pair.draft);
  const auto map = (*target)->MapTokens(**draft);
  pair.shared.emplace();
  for (const TokenMap::Pair& tokens : map->pairs) pair.shared->insert(tokens.target);
  return pair;
}

std::string HeadFor(const fixtures::TinyModelOptions& target) {
  fixtures::TinyHeadOptions head{.target = target, .eagle = true, .layers = {0, 0, 1}};
  head.own_output = head.own_embedding = true;
  return fixtures::WriteTinyHead(Folder(), head);
}

const std::vector<VocabularyPair>& Pairs() {
  static const std::vector<VocabularyPair> pairs = [] {
    std::vector<VocabularyPair> made;
    for (const auto& [name, vocabulary, respelled] :
         {std::tuple{"shorter", 300, false}, std::tuple{"longer", 345, false},
          std::tuple{"respelled", kPairVocabulary, true}, std::tuple{"both", 303, true},
          std::tuple{"longer and respelled", 345, true}}) {
      auto options = Options(vocabulary, respelled ? kRespelled : std::map<int, std::string>());
      made.push_back({name, "", "eagle", vocabulary, respelled});
      made.back().draft = HeadFor(options);
      options.noise = 0.2;
      made.push_back(
          {name, fixtures::WriteTinyModel(Folder(), options), "standalone", vocabulary, respelled});
    }
    made.push_back(OtherVocabulary("other", 300));
    made.push_back(OtherVocabulary("other and longer", 345));
    return made;
  }();
  return pairs;
}

EngineOptions OptionsOf(const VocabularyPair& pair,
                        VerifyStrategy strategy = VerifyStrategy::kAuto) {
  return {.model = Target(),
          .draft_model = pair.draft,
          .speculative = {.method = pair.method, .strategy = strategy, .controller = "fixed"},
          .max_sequences = 16,
          .threads = 1};
}

Request RequestOf(float temperature, int n, std::uint64_t id, int k) {
  Request request;
  request.prompt_tokens = {1, 262, 305, 319, 265, 2, 310, 0, 301};
  request.max_new_tokens = n;
  request.ignore_eos = true;
  request.sampling = {.temperature = temperature, .top_k = 12, .logit_bias = kFavoured};
  request.id = id;
  request.speculative.num_speculative_tokens = k;
  return request;
}

// Texts at temperature 0 and, by sample-match, above: bit for bit those of plain decoding.
TEST(Vocabularies, ADrafterOfAnotherOneChangesNoBit) {
  for (const VocabularyPair& pair : Pairs()) {
    SCOPED_TRACE(pair.name + ", " + pair.method);
    const auto engine = OpenEngine(OptionsOf(pair));
    std::int64_t drafted = 0, accepted = 0;
    int strange = 0;  // tokens of the texts that the drafter does not share
    for (const float temperature : {0.0F, 0.8F})
      for (const int k : {1, 4, 8}) {
        Request request = RequestOf(temperature, 40, 3, k);
        if (temperature > 0) request.speculative.strategy = VerifyStrategy::kSampleMatch;
        request.logprobs = 2;
        const Completion with = Got(engine->Generate(request, [&](const RoundEvent& round) {
          for (const std::int32_t id : round.rejected) EXPECT_TRUE(pair.Shares(id)) << id;
          for (const TokenEvent& event : round.events)
            if (event.origin == TokenOrigin::kAccepted) EXPECT_TRUE(pair.Shares(event.id));
          return true;
        }));
        request.speculative.enabled = false;
        ExpectSame(Generated(*engine, request), with);
        drafted += with.speculation.drafted, accepted += with.speculation.accepted;
        for (const std::int32_t id : with.token_ids) strange += !pair.Shares(id);
      }
    EXPECT_GT(drafted, 200);
    EXPECT_GT(accepted, 0);
    if (pair.vocabulary < kPairVocabulary || pair.respelled) EXPECT_GT(strange, 15);
  }
}

// 6 tokens each; the first comes from the prompt's pass.
TextSample DrawPair(Engine& engine, std::uint64_t first_id, int n, bool speculates) {
  std::vector<Request> requests;
  for (int i = 0; i < n; ++i) {
    requests.push_back(RequestOf(0.9F, 6, first_id + static_cast<std::uint64_t>(i), 3));
    requests.back().speculative.enabled = speculates;
  }
  return TextSample(GeneratedTogether(engine, requests));
}

// The largest ratio of chi-square to its bound; above 1 the samples differ. By chance that happens
// in one of 100,000 runs of all these tests.
double DistanceOf(const TextSample& a, const TextSample& b) {
  static const double z = NormalQuantile(1e-5 / (6 * 15));
  const Worst worst = CompareAll(a, b, z);
  EXPECT_GT(worst.least_freedom, 3);
  return worst.share;
}

TEST(Vocabularies, TheDistributionStaysTheTargets) {
  constexpr int kPlain = 6000, kSpeculative = 3000;
  const TextSample plain = DrawPair(*OpenEngine(OptionsOf(Pairs().front())), 0, kPlain, false);
  std::uint64_t first_id = 100'000;
  double least_control = 1e9;
  for (const VocabularyPair& pair : Pairs()) {
    if (pair.method != "standalone") continue;
    for (const auto strategy :
         {VerifyStrategy::kResidual, VerifyStrategy::kBlock, VerifyStrategy::kTargetProbability}) {
      const auto engine = OpenEngine(OptionsOf(pair, strategy));
      const TextSample sample = DrawPair(*engine, first_id += 100'000, kSpeculative, true);
      EXPECT_LT(DistanceOf(plain, sample), 1) << pair.name << ", " << Name(strategy);
      EXPECT_GT(sample.accepted, kSpeculative / 5) << pair.name << ", " << Name(strategy);
    }
    // The negative control: without the residual, tokens that the drafter cannot draft are too
    // rare.
    EngineOptions biased = OptionsOf(pair, VerifyStrategy::kResidual);
    biased.speculative.skip_sample_adjustment = true;
    const TextSample sample =
        DrawPair(*OpenEngine(std::move(biased)), first_id += 100'000, kSpeculative, true);
    least_control = std::min(least_control, DistanceOf(plain, sample));
  }
  EXPECT_GT(least_control, 1);
}

TEST(Vocabularies, WhatIsNotSharedIsNamed) {
  const auto notice = [](const VocabularyPair& pair) {
    const auto engine = OpenEngine(OptionsOf(pair));
    const auto& notices = engine->summary().notices;
    return notices.empty() ? "" : notices.front();
  };
  for (const VocabularyPair& pair : Pairs()) {
    if (pair.method != "standalone") continue;
    const std::string text = notice(pair);
    if (pair.name == "shorter")
      EXPECT_TRUE(Says(text, "320 and 300 tokens, of which 300 are shared; the"));
    if (pair.name == "both")
      EXPECT_TRUE(Says(text,
                       "320 and 303 tokens, of which 299 are shared; 4 are of other texts, "
                       "first 0: '<unk>' / '<|pad|>', 2: '</s>' / '<|end|>'"));
    if (pair.name == "longer") EXPECT_EQ(text, "");
    if (pair.name == "other")
      EXPECT_TRUE(Says(text, "its vocabulary is another one (320 and 300 tokens); it drafts the "));
  }
}

// Up to a tenth of the target's tokens may have other ids. Beyond that a draft model has a map of tokens,
// and a head is refused.
TEST(Vocabularies, OfAnotherFamilyNeedAMap) {
  const auto notice = [](int vocabulary, int n_respelled) {
    auto options = Options(vocabulary, {});
    for (int i = 0; i < n_respelled; ++i)
      options.respelled[5 * i] = "<|" + std::to_string(i) + "|>";
    const VocabularyPair pair{"", fixtures::WriteTinyModel(Folder(), options), "standalone"};
    const auto engine = OpenEngine(OptionsOf(pair));
    return engine->summary().notices.empty() ? "" : engine->summary().notices.front();
  };
  constexpr const char* kMapped = "its vocabulary is another one";
  EXPECT_EQ(notice(288, 0).find(kMapped), std::string::npos);
  EXPECT_TRUE(Says(notice(287, 0), kMapped));
  EXPECT_EQ(notice(400, 32).find(kMapped), std::string::npos);
  EXPECT_TRUE(Says(notice(400, 33), kMapped));

  const VocabularyPair head{"", HeadFor(Options(287, {})), "eagle"};
  EXPECT_TRUE(
      Fails(Engine::Open(OptionsOf(head)), "320 and 287 tokens, of which 287 are shared; 90 %"));
}

// A reduced output head keeps shared tokens only.
TEST(Vocabularies, AReducedOutputHeadKeepsSharedTokens) {
  for (const VocabularyPair& pair : Pairs()) {
    if (pair.method != "standalone") continue;
    EngineOptions options = OptionsOf(pair);
    options.speculative.draft_vocabulary = pair.shared ? 290 : 310;
    const auto engine = OpenEngine(std::move(options));
    Request request = RequestOf(0, 40, 3, 4);
    const Completion with = Generated(*engine, request);
    request.speculative.enabled = false;
    ExpectSame(Generated(*engine, request), with);
    EXPECT_GT(with.speculation.drafted, 30);
  }
}

}  // namespace
}  // namespace foretoken
