// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "sampling/law_testing.h"

namespace {
int allocations = 0;
}

// Not inlined: gcc would take a new expression of the library with our free() for a mismatch.
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

std::vector<float> Law(Sampler& sampler, const std::vector<float>& x) {
  std::vector<float> p(static_cast<std::size_t>(sampler.vocabulary()), kNan);
  sampler.Law(x.data(), p.data());
  return p;
}

SamplingParameters Everything() {
  return {.temperature = 0.8f,
          .top_k = 40,
          .top_p = 0.9f,
          .min_p = 0.01f,
          .typical_p = 0.95f,
          .repetition_penalty = 1.2f,
          .repetition_window = 4,
          .frequency_penalty = 0.1f,
          .presence_penalty = 0.2f,
          .logit_bias = {{3, 1.5f}, {9, -kInf}}};
}

TEST(Sampler, AppliesEditsBeforeFilters) {
  const auto x = RandomLogits(500, 3);
  Sampler sampler = Make(Everything(), 500, {4, 5}, 2);
  const std::vector<Token> generated = {8, 8, 100};
  for (int n = 0; n <= 3; ++n) {
    if (n > 0) sampler.Push(generated[static_cast<std::size_t>(n - 1)]);
    const std::vector<Token> banned = n < 2 ? std::vector<Token>{4, 5} : std::vector<Token>{};
    const auto edited = ReferenceEdits(x, Everything(), sampler.text(), 3, banned);
    const auto expected = ReferenceLaw(edited, Everything());
    const auto p = Law(sampler, x);
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
  const auto before = Law(sampler, x);
  for (const Token t : {7, 11, 4}) sampler.Push(t);
  EXPECT_NE(Law(sampler, x), before);
  sampler.Pop(3);
  EXPECT_EQ(sampler.position(), 4);
  EXPECT_EQ(sampler.n_generated(), 1);
  EXPECT_EQ(Law(sampler, x), before);
}

TEST(Sampler, NeverLooksBeyondTheVocabulary) {
  auto x = RandomLogits(110, 6);
  Sampler sampler = Make({}, 100);
  const auto before = Law(sampler, x);
  for (std::size_t i = 100; i < 110; ++i) x[i] = kInf;
  EXPECT_EQ(Law(sampler, x), before);
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

TEST(Sampler, FallsBackToTheRawArgmaxWhereEverythingIsMasked) {
  Sampler banned = Make({.logit_bias = {{0, -kInf}, {1, -kInf}, {2, -kInf}}}, 3);
  EXPECT_EQ(Law(banned, {1, 3, 2}), (std::vector<float>{0, 1, 0}));
  EXPECT_EQ(banned.Argmax(std::vector<float>{1, 3, 2}.data()), 1);
  Sampler plain = Make({}, 3);
  EXPECT_EQ(Law(plain, {-kInf, -kInf, -kInf}), (std::vector<float>{1, 0, 0}));
  EXPECT_EQ(Law(plain, {kNan, kNan, kNan}), (std::vector<float>{1, 0, 0}));
  EXPECT_EQ(plain.Argmax(std::vector<float>{kNan, -kInf, 5}.data()), 2);
}

TEST(Sampler, IsCertainOfTheFirstInfiniteLogit) {
  Sampler biased = Make({.logit_bias = {{2, kInf}}}, 4);
  EXPECT_EQ(Law(biased, {5, 1, -kInf, kNan}), (std::vector<float>{0, 0, 1, 0}));
  Sampler plain = Make({.top_k = 2, .logit_bias = {}}, 4);
  EXPECT_EQ(Law(plain, {5, kInf, kInf, kNan}), (std::vector<float>{0, 1, 0, 0}));
}

TEST(Sampler, DrawsByTheRunningSumAndNeverAZero) {
  const Sampler sampler = Make({}, 4);
  const std::vector<float> p = {0, 0.25f, 0, 0.75f};
  EXPECT_EQ(sampler.Draw(p.data(), 0.0), 1);
  EXPECT_EQ(sampler.Draw(p.data(), 0.2499), 1);
  EXPECT_EQ(sampler.Draw(p.data(), 0.25), 3);
  EXPECT_EQ(sampler.Draw(p.data(), 1 - 0x1p-53), 3);
}

TEST(Sampler, DrawsTheResidualOrElseTheLawItself) {
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

TEST(Sampler, SamplesWithTheNoiseOfThePosition) {
  const auto x = RandomLogits(500, 9);
  Sampler sampler = Make({}, 500);
  std::vector<float> p(500);
  for (int i = 0; i < 10; ++i) {
    const Token token = sampler.Sample(x.data(), p.data());
    EXPECT_EQ(token, sampler.Draw(p.data(), Noise(1, 2).Uniform(Stream::kTarget, 3 + i)));
    sampler.Push(token);
  }
}

TEST(Sampler, AtTemperatureZeroSamplesTheFirstOfTheBest) {
  Sampler sampler = Make({.temperature = 0, .logit_bias = {}}, 4);
  EXPECT_EQ(sampler.Sample(std::vector<float>{1, 4, 4, 2}.data(), nullptr), 1);
}

}  // namespace
}  // namespace foretoken::sampling
