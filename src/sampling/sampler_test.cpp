// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>

#include "sampling/distribution_testing.h"

namespace {
int allocations = 0;
}

// Not inlined: otherwise gcc reports a new expression of the library with our free() as a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size)) return p;
  std::abort();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace foretoken::sampling {
namespace {

const std::vector<Token> kPrompt = {1, 2, 3};

Sampler Make(const SamplingParameters& s, int vocabulary, std::vector<Token> ends = {},
             int min_new = 0) {
  Sampler sampler({.parameters = s,
                   .end_tokens = std::move(ends),
                   .min_new_tokens = min_new,
                   .noise = Noise(1, 2)},
                  vocabulary, BestKernels());
  sampler.Begin(kPrompt, 20);
  return sampler;
}

std::vector<float> SampledDistribution(Sampler& sampler, const std::vector<float>& x) {
  std::vector<float> p(static_cast<std::size_t>(sampler.vocabulary()), kNan);
  sampler.Distribution(x.data(), p.data());
  return p;
}

SamplingParameters Everything() {
  return {.temperature = 0.8f,
          .top_k = 40,
          .top_p = 0.9f,
          .min_p = 0.01f,
          .typical_p = 0.95f,
          .eta = 0.001f,
          .repetition_penalty = 1.2f,
          .repetition_window = 4,
          .frequency_penalty = 0.1f,
          .presence_penalty = 0.2f,
          .dry = {.multiplier = 0.7f, .base = 1.5f, .allowed_length = 1},
          .logit_bias = {{3, 1.5f}, {9, -kInf}},
          .processors = {}};
}

TEST(Sampler, AppliesEditsBeforeFilters) {
  const auto x = RandomLogits(500, 3);
  Sampler sampler = Make(Everything(), 500, {4, 5}, 2);
  const std::vector<Token> generated = {8, 8, 100};
  for (int n = 0; n <= 3; ++n) {
    if (n > 0) sampler.Push(generated[static_cast<std::size_t>(n - 1)]);
    const std::vector<Token> banned = n < 2 ? std::vector<Token>{4, 5} : std::vector<Token>{};
    const auto edited = ReferenceEdits(x, Everything(), sampler.text(), 3, banned);
    const auto expected = ReferenceDistribution(edited, Everything());
    const auto p = SampledDistribution(sampler, x);
    for (std::size_t i = 0; i < p.size(); ++i)
      ASSERT_NEAR(static_cast<double>(p[i]), expected[i], 1e-5) << "after " << n << " token " << i;
    EXPECT_EQ(sampler.Argmax(x.data()),
              std::max_element(edited.begin(), edited.end()) - edited.begin());
  }
}

TEST(Sampler, PopsLeaveNoTrace) {
  const auto x = RandomLogits(500, 4);
  Sampler sampler = Make(Everything(), 500, {4}, 3);
  sampler.Push(7);
  const auto before = SampledDistribution(sampler, x);
  for (const Token t : {7, 11, 4}) sampler.Push(t);
  EXPECT_NE(SampledDistribution(sampler, x), before);
  sampler.Pop(3);
  EXPECT_EQ(sampler.position(), 4);
  EXPECT_EQ(sampler.n_generated(), 1);
  EXPECT_EQ(SampledDistribution(sampler, x), before);
}

TEST(Sampler, NeverLooksBeyondTheVocabulary) {
  auto x = RandomLogits(110, 6);
  Sampler sampler = Make({}, 100);
  const auto before = SampledDistribution(sampler, x);
  for (std::size_t i = 100; i < 110; ++i) x[i] = kInf;
  EXPECT_EQ(SampledDistribution(sampler, x), before);
  EXPECT_LT(sampler.Argmax(x.data()), 100);
}

TEST(Sampler, AllocatesNothingBetweenBeginAndEnd) {
  const auto x = RandomLogits(500, 8);
  for (const auto& s :
       {Everything(), SamplingParameters{},
        SamplingParameters{.temperature = 0, .repetition_penalty = 1.1f, .logit_bias = {}}}) {
    Sampler sampler = Make(s, 500, {4}, 3);
    std::vector<float> p(500), r(500);
    const int before = allocations;
    for (int i = 0; i < 20; ++i) {
      sampler.Push(sampler.Sample(x.data(), p.data()));
      sampler.DrawResidual(p.data(), nullptr, 1, 0.5, r.data());
    }
    sampler.Pop(20);
    EXPECT_EQ(allocations, before);
  }
}

TEST(SamplerDeathTest, AbortsWhenPushedBeyondTheRoom) {
  Sampler sampler = Make({}, 10);
  for (int i = 0; i < 20; ++i) sampler.Push(1);
  EXPECT_DEATH(sampler.Push(1), "room_");
}

// Adds to each logit a value that depends only on this text and this token, so that a call at the
// wrong time shows.
LogitsProcessor Whim() {
  return [](std::span<const Token> text, std::span<float> logits) {
    std::uint32_t state = 17;
    for (const Token t : text) state = state * 31 + static_cast<std::uint32_t>(t);
    for (float& x : logits) {
      state = state * 1664525u + 1013904223u;
      x += static_cast<float>(state >> 28);
    }
  };
}

TEST(Sampler, CallsProcessorsInOrderAfterMasksAndBeforeTheFilters) {
  const auto x = RandomLogits(500, 12);
  SamplingParameters s = Everything();
  std::vector<float> seen;
  std::vector<Token> text;
  s.processors = {[&](std::span<const Token> t, std::span<float> logits) {
                    seen.assign(logits.begin(), logits.end());
                    text.assign(t.begin(), t.end());
                    for (float& v : logits) v *= 2;
                  },
                  [](std::span<const Token>, std::span<float> logits) { logits[7] += 5; }};
  Sampler sampler = Make(s, 500, {4}, 3);
  sampler.Push(8);
  const auto p = SampledDistribution(sampler, x);
  auto edited = ReferenceEdits(x, s, sampler.text(), 3, std::vector<Token>{4});
  EXPECT_EQ(seen, edited);
  EXPECT_EQ(text, (std::vector<Token>{1, 2, 3, 8}));
  for (float& v : edited) v *= 2;
  edited[7] += 5;
  const auto expected = ReferenceDistribution(edited, s);
  for (std::size_t i = 0; i < p.size(); ++i)
    ASSERT_NEAR(static_cast<double>(p[i]), expected[i], 1e-5) << i;
  EXPECT_EQ(sampler.Argmax(x.data()),
            std::max_element(edited.begin(), edited.end()) - edited.begin());
}

TEST(Sampler, StaysADistributionWhateverAProcessorLeaves) {
  const auto x = RandomLogits(100, 13);
  for (const float value :
       {kNan, kInf, -kInf, std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()})
    for (const int step : {1, 3})
      for (auto s : {SamplingParameters{}, Everything()}) {
        s.processors = {[=](std::span<const Token>, std::span<float> logits) {
          for (std::size_t i = 0; i < logits.size(); i += static_cast<std::size_t>(step))
            logits[i] = value;
        }};
        Sampler sampler = Make(s, 100);
        const auto p = SampledDistribution(sampler, x);
        double sum = 0;
        for (const float v : p) {
          ASSERT_GE(v, 0.0f);
          sum += static_cast<double>(v);
        }
        EXPECT_NEAR(sum, 1, 1e-5) << value;
        const Token token = sampler.Draw(p.data(), 0.7);
        EXPECT_GT(p[static_cast<std::size_t>(token)], 0.0f);
        EXPECT_TRUE(sampler.Knows(sampler.Argmax(x.data())));
      }
}

TEST(Sampler, AProcessorSeesDraftsAndNothingOfRejectedOnes) {
  const auto x = RandomLogits(500, 14);
  SamplingParameters s = Everything();
  s.processors = {Whim()};
  Sampler sampler = Make(s, 500);
  sampler.Push(7);
  const auto before = SampledDistribution(sampler, x);
  sampler.Push(8);
  EXPECT_NE(SampledDistribution(sampler, x), before);
  sampler.Pop(1);
  EXPECT_EQ(SampledDistribution(sampler, x), before);
}

TEST(Sampler, DistributionsHaveTheSameBitsOnEveryInstructionSet) {
  std::vector<SamplingParameters> all(4);
  all[0].eta = 0.01f;
  all[1] = Everything();
  all[1].processors = {Whim()};
  all[2].dry = {.multiplier = 2.0f, .base = 1.3f, .allowed_length = 1};
  all[3].min_p = 0.001f, all[3].eta = 0.3f;
  const std::vector<Token> prompt = {1, 2, 3, 1, 2, 3, 1, 2};
  for (const int n : {9, 500, 5003}) {
    const auto x = RandomLogits(n, 15);
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::vector<float> expected;
      for (const kernels::Isa isa : kernels::AvailableIsas()) {
        SamplingParameters s = all[i];
        if (n == 9) s.logit_bias.clear();
        Sampler sampler({.parameters = s, .end_tokens = {}, .noise = {}}, n,
                        kernels::KernelsFor(isa));
        sampler.Begin(prompt, 3);
        const auto p = SampledDistribution(sampler, x);
        if (expected.empty()) expected = p;
        ASSERT_EQ(std::memcmp(p.data(), expected.data(), p.size() * sizeof(float)), 0)
            << kernels::Name(isa) << " case " << i << " n " << n;
      }
    }
  }
}

// Tokens "a", "b", "c", "ab", an end token and a control token.
Sampler WithGrammar(const std::string& gbnf, const SamplingParameters& s = {},
                    std::vector<Token> ends = {4}, int min_new = 0,
                    const kernels::Kernels& kernels = BestKernels()) {
  const std::vector<std::string> texts = {"a", "b", "c", "ab", "</s>", ""};
  auto grammar = grammar::Grammar::Compile(
      gbnf, std::make_shared<const grammar::TokenTrie>(texts, std::vector<Token>{4}));
  Sampler sampler({.parameters = s,
                   .end_tokens = std::move(ends),
                   .min_new_tokens = min_new,
                   .noise = Noise(1, 2),
                   .grammar = grammar.value()},
                  6, kernels);
  sampler.Begin(kPrompt, 20);
  return sampler;
}

std::vector<Token> Possible(Sampler& sampler, const std::vector<float>& x) {
  std::vector<Token> kept;
  const auto p = SampledDistribution(sampler, x);
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) kept.push_back(static_cast<Token>(i));
  return kept;
}

using Tokens = std::vector<Token>;
const std::vector<float> kLevel(6, 1.0f);

TEST(Sampler, DrawsOnlyWhatTheGrammarAllows) {
  Sampler sampler = WithGrammar("root ::= \"ab\" \"c\"? | \"b\"");
  EXPECT_EQ(Possible(sampler, kLevel), (Tokens{0, 1, 3}));  // not the end: it needs some text
  sampler.Push(0);
  EXPECT_EQ(Possible(sampler, kLevel), (Tokens{1}));
  sampler.Push(1);
  EXPECT_EQ(Possible(sampler, kLevel), (Tokens{2, 4}));
  sampler.Push(2);
  EXPECT_EQ(Possible(sampler, kLevel), (Tokens{4}));
  EXPECT_EQ(sampler.Argmax(std::vector<float>{9, 9, 9, 9, -9, 9}.data()), 4);
  sampler.Push(4);
  EXPECT_EQ(Possible(sampler, kLevel), (Tokens{4}));
}

TEST(Sampler, PopsBringTheGrammarBack) {
  Sampler sampler = WithGrammar("root ::= (\"a\" \"b\"{2} | \"c\")*");
  std::mt19937 random(7);
  std::vector<Tokens> possible = {Possible(sampler, kLevel)};
  for (int step = 0; step < 300; ++step) {
    if (sampler.n_generated() < 20 && (random() % 3 != 0 || sampler.n_generated() == 0)) {
      sampler.Push(static_cast<Token>(random() % 6));  // also what is not allowed: a draft
      possible.push_back(Possible(sampler, kLevel));
    } else {
      const int n = 1 + static_cast<int>(random() % static_cast<unsigned>(sampler.n_generated()));
      sampler.Pop(n);
      possible.resize(possible.size() - static_cast<std::size_t>(n));
    }
    ASSERT_EQ(Possible(sampler, kLevel), possible.back());
    Sampler fresh = WithGrammar("root ::= (\"a\" \"b\"{2} | \"c\")*");
    for (const Token t : sampler.text().subspan(3)) fresh.Push(t);
    ASSERT_EQ(Possible(fresh, kLevel), possible.back());
  }
}

TEST(Sampler, CountsTheDraftsThatTheGrammarLetsFollow) {
  Sampler sampler = WithGrammar("root ::= \"ab\" \"c\"");
  EXPECT_EQ(sampler.Follows(Tokens{0, 1, 2, 4}), 4);
  EXPECT_EQ(sampler.Follows(Tokens{0, 1, 4, 2}), 2);  // it cannot end there
  EXPECT_EQ(sampler.Follows(Tokens{0, 0}), 1);
  EXPECT_EQ(sampler.Follows(Tokens{2}), 0);
  EXPECT_EQ(sampler.Follows(Tokens{}), 0);
  sampler.Push(0);
  EXPECT_EQ(sampler.Follows(Tokens{1, 2}), 2);
  EXPECT_EQ(sampler.Follows(Tokens{0}), 0);
  sampler.Pop(1);
  EXPECT_EQ(sampler.Follows(Tokens{0, 1}), 2);
}

TEST(Sampler, AfterATextOutsideTheGrammarOnlyTheEndIsLeft) {
  Sampler sampler = WithGrammar("root ::= \"ab\"");
  sampler.Push(2);
  EXPECT_EQ(Possible(sampler, kLevel), (Tokens{4}));
}

TEST(Sampler, TheGrammarOutranksMinTokensAndIgnoredEnds) {
  Sampler more = WithGrammar("root ::= \"a\" \"b\"?", {}, {4}, 5);
  more.Push(0);
  EXPECT_EQ(Possible(more, kLevel), (Tokens{1}));  // the end is masked while there is another way
  more.Push(1);
  EXPECT_EQ(Possible(more, kLevel), (Tokens{4}));
  Sampler ignored = WithGrammar("root ::= \"a\"", {}, {});
  ignored.Push(0);
  EXPECT_EQ(Possible(ignored, kLevel), (Tokens{4}));
}

TEST(Sampler, AStopTokenIsTextToTheGrammar) {
  Sampler sampler = WithGrammar("root ::= \"a\" \"b\"", {}, {4, 1});
  EXPECT_EQ(Possible(sampler, kLevel), (Tokens{0, 3}));
  sampler.Push(0);
  EXPECT_EQ(Possible(sampler, kLevel), (Tokens{1}));
}

TEST(Sampler, FallsBackInsideTheGrammar) {
  SamplingParameters banned;
  banned.logit_bias = {{0, -kInf}, {1, -kInf}, {3, -kInf}};
  Sampler sampler = WithGrammar("root ::= \"ab\" | \"b\"", banned);
  EXPECT_EQ(Possible(sampler, {1, 2, 9, 1, 9, 9}), (Tokens{1}));
  EXPECT_EQ(sampler.Argmax(std::vector<float>{1, 2, 9, 1, 9, 9}.data()), 1);
  Sampler plain = WithGrammar("root ::= \"ab\" | \"b\"");
  EXPECT_EQ(Possible(plain, {-kInf, -kInf, 9, -kInf, 9, 9}), (Tokens{0}));
  EXPECT_EQ(Possible(plain, {kNan, kNan, 9, kNan, 9, 9}), (Tokens{0}));
  Sampler impossible = WithGrammar("root ::= \"x\"");
  EXPECT_EQ(Possible(impossible, {1, 2, 9, 1, 8, 8}), (Tokens{2}));
}

TEST(Sampler, ATextMadeUnderAGrammarIsOfIt) {
  const std::string gbnf = "root ::= (\"a\" [ab]{1,3} \"c\")+";
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    Sampler sampler =
        WithGrammar(gbnf, {.temperature = seed % 2 == 0 ? 1.5f : 0, .logit_bias = {}});
    std::vector<float> p(6);
    std::string text;
    Token token = 0;
    for (int n = 0; n < 20 && token != 4; ++n) {
      token = sampler.Sample(RandomLogits(6, seed * 100 + static_cast<std::uint32_t>(n)).data(),
                             p.data());
      sampler.Push(token);
      if (token != 4)
        text += std::vector<std::string>{"a", "b", "c", "ab"}.at(static_cast<std::size_t>(token));
    }
    const auto grammar = grammar::Grammar::Compile(
        gbnf, std::make_shared<const grammar::TokenTrie>(std::vector<std::string>(), Tokens()));
    const auto state = (*grammar)->After((*grammar)->Start(), text);
    ASSERT_NE(state, grammar::Grammar::kOver) << text;
    ASSERT_TRUE(token != 4 || (*grammar)->CanEnd(state)) << text;
  }
}

TEST(Sampler, FallsBackToTheRawArgmaxWhereEverythingIsMasked) {
  Sampler banned = Make({.logit_bias = {{0, -kInf}, {1, -kInf}, {2, -kInf}}}, 3);
  EXPECT_EQ(SampledDistribution(banned, {1, 3, 2}), (std::vector<float>{0, 1, 0}));
  EXPECT_EQ(banned.Argmax(std::vector<float>{1, 3, 2}.data()), 1);
  Sampler plain = Make({}, 3);
  EXPECT_EQ(SampledDistribution(plain, {-kInf, -kInf, -kInf}), (std::vector<float>{1, 0, 0}));
  EXPECT_EQ(SampledDistribution(plain, {kNan, kNan, kNan}), (std::vector<float>{1, 0, 0}));
  EXPECT_EQ(plain.Argmax(std::vector<float>{kNan, -kInf, 5}.data()), 2);
}

TEST(Sampler, IsCertainOfTheFirstInfiniteLogit) {
  Sampler biased = Make({.logit_bias = {{2, kInf}}}, 4);
  EXPECT_EQ(SampledDistribution(biased, {5, 1, -kInf, kNan}), (std::vector<float>{0, 0, 1, 0}));
  Sampler plain = Make({.top_k = 2, .logit_bias = {}}, 4);
  EXPECT_EQ(SampledDistribution(plain, {5, kInf, kInf, kNan}), (std::vector<float>{0, 1, 0, 0}));
}

TEST(Sampler, DrawsByTheRunningSumAndNeverAZero) {
  const Sampler sampler = Make({}, 4);
  const std::vector<float> p = {0, 0.25f, 0, 0.75f};
  EXPECT_EQ(sampler.Draw(p.data(), 0.0), 1);
  EXPECT_EQ(sampler.Draw(p.data(), 0.2499), 1);
  EXPECT_EQ(sampler.Draw(p.data(), 0.25), 3);
  EXPECT_EQ(sampler.Draw(p.data(), 1 - 0x1p-53), 3);
}

TEST(Sampler, DrawsTheResidualOrElseTheDistributionItself) {
  const Sampler sampler = Make({}, 3);
  std::vector<float> r(3);
  const std::vector<float> p = {0.5f, 0.25f, 0.25f}, q = {0.25f, 0.5f, 0.25f};
  for (const double u : {0.0, 0.5, 0.999}) {
    EXPECT_EQ(sampler.DrawResidual(p.data(), q.data(), 1, u, r.data()), 0);
    EXPECT_NE(sampler.DrawResidual(p.data(), nullptr, 0, u, r.data()), 0);
    EXPECT_EQ(sampler.DrawResidual(p.data(), p.data(), 1, u, r.data()), sampler.Draw(p.data(), u));
  }
  const std::vector<float> certain = {0, 1, 0};
  EXPECT_EQ(sampler.DrawResidual(certain.data(), nullptr, 1, 0.5, r.data()), 1);
  EXPECT_EQ(sampler.DrawResidual(certain.data(), nullptr, 700, 0.5, r.data()), 1);
}

TEST(Sampler, SamplesByTheRaceOfThePosition) {
  const auto x = RandomLogits(500, 9);
  Sampler sampler = Make({}, 500);
  std::vector<float> p(500);
  std::set<Token> seen;
  for (int i = 0; i < 10; ++i) {
    const Token token = sampler.Sample(x.data(), p.data());
    const auto counter = Noise(1, 2).Counter(Stream::kTargetRace, 3 + i);
    const kernels::RaceNoise noise = {{counter[0], counter[1], counter[2]}, {1, 0}};
    EXPECT_EQ(token, BestKernels().race(p.data(), 0, 500, noise).token);
    EXPECT_EQ(token, sampler.Race(p.data()));
    seen.insert(token);
    sampler.Push(token);
  }
  EXPECT_GE(seen.size(), 4U);
  sampler.Pop(10);
  EXPECT_EQ(sampler.Sample(x.data(), p.data()), sampler.Race(p.data()));
}

// How often two distributions give the same token when both are drawn with the same noise at n
// positions.
double Agreement(const std::vector<float>& p, const std::vector<float>& q, int n, bool race) {
  Sampler sampler = Make({}, static_cast<int>(p.size()));
  sampler.Begin(kPrompt, n);
  int equal = 0;
  for (int i = 0; i < n; ++i) {
    const double u = Noise(1, 2).Uniform(Stream::kTarget, sampler.position());
    const Token a = race ? sampler.Race(p.data()) : sampler.Draw(p.data(), u);
    const Token b = race ? sampler.Race(q.data()) : sampler.Draw(q.data(), u);
    equal += a == b;
    sampler.Push(0);
  }
  return static_cast<double>(equal) / n;
}

// Daliri, Musco and Suresh 2024: at least (1 - d) / (1 + d), d the total variation distance of the
// two.
TEST(Sampler, RacesOfTwoDistributionsAgreeAsOftenAsTheyAreBoundTo) {
  constexpr int kDraws = 4000;
  for (const float spread : {0.3f, 1.0f, 2.0f}) {
    auto x = RandomLogits(500, 21);
    Sampler sampler = Make({}, 500);
    const auto p = SampledDistribution(sampler, x);
    const auto other = RandomLogits(500, 22);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += 0.3f * spread * other[i];
    const auto q = SampledDistribution(sampler, x);
    double common = 0;
    for (std::size_t i = 0; i < p.size(); ++i) common += static_cast<double>(std::min(p[i], q[i]));
    const double least = common / (2 - common);
    const double sigma = std::sqrt(least * (1 - least) / kDraws);
    const double by_race = Agreement(p, q, kDraws, true), by_sum = Agreement(p, q, kDraws, false);
    std::printf("  1 - d %.3f: bound %.3f, race %.3f, running sum %.3f\n", common, least, by_race,
                by_sum);
    EXPECT_GE(by_race, least - 4 * sigma);
    EXPECT_LE(by_race, common + 4 * sigma);  // no two draws agree more often
    EXPECT_LT(by_sum, least - 4 * sigma);    // the negative control
  }
}

TEST(Sampler, AtTemperatureZeroSamplesTheFirstOfTheBest) {
  Sampler sampler = Make({.temperature = 0, .logit_bias = {}}, 4);
  EXPECT_EQ(sampler.Sample(std::vector<float>{1, 4, 4, 2}.data(), nullptr), 1);
}

TEST(Sampler, TellsHowItWillChoose) {
  using kernels::ChoiceRule;
  const auto rule = [](const SamplingParameters& s, bool samples, int n_more = 0,
                       std::vector<Token> ends = {}, int min_new = 0) {
    return Make(s, 50, std::move(ends), min_new).ChoiceAhead(n_more, samples).rule;
  };
  EXPECT_EQ(rule({}, true), ChoiceRule::kRace);
  EXPECT_EQ(rule({}, false), ChoiceRule::kBest);
  EXPECT_EQ(rule({.temperature = 0, .logit_bias = {}}, true), ChoiceRule::kBest);
  EXPECT_EQ(rule({.temperature = 0.5f, .logit_bias = {}}, true), ChoiceRule::kRace);
  for (const SamplingParameters& filtered :
       {SamplingParameters{.top_k = 5}, SamplingParameters{.top_p = .9f},
        SamplingParameters{.min_p = .1f}, SamplingParameters{.typical_p = .9f},
        SamplingParameters{.eta = .1f}}) {
    EXPECT_EQ(rule(filtered, true), ChoiceRule::kNone);
    EXPECT_EQ(rule(filtered, false), ChoiceRule::kBest);
  }
  for (const SamplingParameters& edited :
       {SamplingParameters{.repetition_penalty = 1.1f}, SamplingParameters{.frequency_penalty = 1},
        SamplingParameters{.logit_bias = {{1, 1.0f}}}}) {
    EXPECT_EQ(rule(edited, true), ChoiceRule::kNone);
    EXPECT_EQ(rule(edited, false), ChoiceRule::kNone);
  }
  // End tokens are masked for the first four tokens.
  EXPECT_EQ(rule({}, true, 3, {7}, 4), ChoiceRule::kNone);
  EXPECT_EQ(rule({}, true, 4, {7}, 4), ChoiceRule::kRace);
}

// The token that Sample gives behind n more tokens, from the choice alone.
TEST(Sampler, ItsChoiceAheadGivesTheTokenThatItSamples) {
  const auto& kernels = BestKernels();
  std::set<Token> seen;
  for (const float temperature : {0.0f, 0.7f, 1.0f, 1.9f}) {
    Sampler sampler = Make({.temperature = temperature, .logit_bias = {}}, 500);
    std::vector<float> p(500);
    for (int n = 0; n < 8; ++n) {
      auto x = RandomLogits(512, 30 + static_cast<std::uint32_t>(n));
      x[505] = 99;  // columns beyond the vocabulary
      const kernels::Choice choice = sampler.ChoiceAhead(n, true);
      for (int i = 0; i < n; ++i) sampler.Push(i);
      const Token sampled = sampler.Sample(x.data(), p.data());
      sampler.Pop(n);
      const kernels::PartBest best = kernels::BestOf(kernels, choice, x.data(), {0, 512});
      Token chosen = best.column;
      if (kernels::HasRace(choice, best)) {
        kernels::Weigh(kernels, choice, best.value, x.data(), {0, 512});
        chosen = kernels::RaceOver(kernels, choice, x.data()).token;
      }
      EXPECT_EQ(chosen, sampled) << temperature << " " << n;
      EXPECT_EQ(sampler.Sample({nullptr, chosen}, nullptr), chosen);
      EXPECT_EQ(sampler.Argmax({nullptr, chosen}), chosen);
      seen.insert(chosen);
    }
  }
  EXPECT_GE(seen.size(), 8U);
}

}  // namespace
}  // namespace foretoken::sampling
