// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels_testing.h"

#include <algorithm>
#include <cstdio>
#include <functional>

#include "base/rng.h"

namespace foretoken::kernels {
namespace {

using Numbers = std::vector<float>;

int SizeOfVocabulary(const Numbers& x) {
  return static_cast<int>(x.size());
}

constexpr float kSpecials[] = {kNan, -kInf, 0.0f, -0.0f, 1e-40f, -1e-42f, 3.25f, 3.25f};

// Ordinary logits, logits with ties, masked entries or NaN, and vectors of one special value.
std::vector<Numbers> Inputs(int n) {
  const auto size = static_cast<std::size_t>(n);
  const auto seed = static_cast<std::uint32_t>(n);
  std::vector<Numbers> inputs = {Normal(size, seed, 4.0f), Spiced(size, seed, kSpecials)};
  for (const float value : {kNan, -kInf, -0.0f, 1.5f, kInf}) inputs.push_back(Numbers(size, value));
  return inputs;
}

// Probabilities, many of which are zero.
Numbers Probabilities(int n, std::uint32_t seed) {
  Numbers p = Normal(n, seed, 3.0f);
  for (float& v : p) v = v < 0 ? 0.0f : std::exp(v) / static_cast<float>(n);
  return p;
}

TEST(Argmax, TakesTheLowestIndexAndNeverNan) {
  for (const Isa isa : AvailableIsas()) {
    const Kernels& kernels = KernelsFor(isa);
    const auto argmax = [&](const Numbers& x) {
      return kernels.argmax(x.data(), SizeOfVocabulary(x));
    };
    EXPECT_EQ(argmax({}), 0) << Name(isa);
    EXPECT_EQ(argmax({-kInf, kNan}), 0) << Name(isa);
    EXPECT_EQ(argmax({kNan, kNan, -5.0f}), 2) << Name(isa);
    EXPECT_EQ(argmax({1.0f, 2.0f, 2.0f}), 1) << Name(isa);
    EXPECT_EQ(argmax({-1.0f, -0.0f, 0.0f}), 1) << Name(isa);
    EXPECT_EQ(argmax({0.0f, kInf, kNan, kInf}), 1) << Name(isa);
  }
}

TEST(Argmax, FindsTheLowestOfTwoTiesWhereverTheyLie) {
  for (const Isa isa : AvailableIsas())
    for (const int first : {0, 5, 16, 63, 1023, 1024, 2500})
      for (const int second : {first + 1, first + 16, first + 1024, 3999}) {
        Numbers x(4000, -1.0f);
        x[static_cast<std::size_t>(first)] = x[static_cast<std::size_t>(second)] = 2.0f;
        EXPECT_EQ(KernelsFor(isa).argmax(x.data(), SizeOfVocabulary(x)), first)
            << Name(isa) << " " << second;
      }
}

TEST(Finiteness, IsTheWorstOfAllWhereverItStands) {
  using enum Finiteness;
  for (const Isa isa : AvailableIsas()) {
    const auto finiteness = KernelsFor(isa).finiteness;
    for (const int n : {1, 3, 8, 16, 17, 40, 100}) {
      Numbers x(static_cast<std::size_t>(n), -3.0f);
      x[0] = std::numeric_limits<float>::max();
      EXPECT_EQ(finiteness(x.data(), n), kFinite) << Name(isa) << " " << n;
      for (float& value : x)
        for (const auto& [wrong, expected] : {std::pair(kNan, kNotANumber),
                                              {-kNan, kNotANumber},
                                              {kInf, kNotANumber},
                                              {-kInf, kMinusInfinity},
                                              {-std::numeric_limits<float>::max(), kFinite}}) {
          const float before = std::exchange(value, wrong);
          EXPECT_EQ(finiteness(x.data(), n), expected) << Name(isa) << " " << n << " " << wrong;
          value = before;
        }
    }
    EXPECT_EQ(finiteness(nullptr, 0), kFinite);
    const Numbers both = {-kInf, 1.0f, kNan};
    EXPECT_EQ(finiteness(both.data(), 3), kNotANumber);
  }
}

TEST(VocabularyPasses, MaximaAgreeInAllTables) {
  for (const Kernels* kernels : VectorTables())
    for (const int n : Sizes())
      for (const Numbers& x : Inputs(n)) {
        EXPECT_EQ(kernels->argmax(x.data(), n), Scalar().argmax(x.data(), n))
            << kernels->isa << " " << n;
        EXPECT_TRUE(SameBits(kernels->max(x.data(), n), Scalar().max(x.data(), n)))
            << kernels->isa << " " << n;
        Numbers expected(x.size() / 64 + 2, kSentinel), actual = expected;
        Scalar().block_max(x.data(), n, expected.data());
        kernels->block_max(x.data(), n, actual.data());
        EXPECT_TRUE(SameBits(actual, expected)) << kernels->isa << " " << n;
      }
}

TEST(Max, IgnoresNanAndKnowsTheEmptySet) {
  const Numbers x = {kNan, -3.0f, kNan, -2.0f};
  EXPECT_EQ(Scalar().max(x.data(), 4), -2.0f);
  EXPECT_EQ(Scalar().max(x.data(), 1), -kInf);
  EXPECT_EQ(Scalar().max(x.data(), 0), -kInf);
}

TEST(BlockMax, GivesOneMaximumPer64) {
  Numbers x(130, -1.0f);
  x[63] = 5.0f;
  x[64] = 7.0f;
  x[129] = kNan;
  Numbers maxima(4, kSentinel);
  Scalar().block_max(x.data(), 130, maxima.data());
  EXPECT_EQ(maxima, (Numbers{5.0f, 7.0f, -1.0f, kSentinel}));
}

TEST(ExpSum, StaysWithinTwoUlpOfTheExponential) {
  Numbers x;
  for (float v = -87.3f; v < 0; v += 0.0137f) x.push_back(v);
  for (float v = 0; v < 88.3f; v += 0.0173f) x.push_back(v);
  Numbers p(x.size());
  const double sum = Scalar().exp_sum(x.data(), SizeOfVocabulary(x), 0.0f, 1.0f, p.data());
  double total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = std::exp(static_cast<double>(x[i]));
    const float rounded = static_cast<float>(expected);
    const double ulp =
        static_cast<double>(std::nextafter(rounded, kInf)) - static_cast<double>(rounded);
    EXPECT_LE(std::abs(static_cast<double>(p[i]) - expected), 2 * ulp) << x[i];
    total += static_cast<double>(p[i]);
  }
  EXPECT_NEAR(sum, total, 1e-12 * total);
}

TEST(ExpSum, GivesZeroToMaskedLogitsAndOneToTheLargest) {
  const Numbers x = {2.0f, -kInf, 2.0f - 100.0f, 1.0f};
  Numbers p(4);
  const double sum = Scalar().exp_sum(x.data(), 4, 2.0f, 0.5f, p.data());
  EXPECT_EQ(p[0], 1.0f);
  EXPECT_EQ(p[1], 0.0f);
  EXPECT_NEAR(p[2], std::exp(-50.0f), 1e-27f);
  EXPECT_NEAR(p[3], std::exp(-0.5f), 1e-7f);
  EXPECT_NEAR(sum, 1 + std::exp(-0.5), 1e-7);
}

TEST(ExpSum, CutsOffAtTheSameNumberInAllTables) {
  Numbers x;
  for (const float edge : {-87.33654f, 88.37626f}) {
    float v = edge;
    for (int i = 0; i < 20; ++i) v = std::nextafter(v, -kInf);
    for (int i = 0; i < 40; ++i, v = std::nextafter(v, kInf)) x.push_back(v);
  }
  for (const Isa isa : AvailableIsas()) {
    Numbers p(x.size());
    KernelsFor(isa).exp_sum(x.data(), SizeOfVocabulary(x), 0.0f, 1.0f, p.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(p[i] == 0.0f, x[i] < -87.33654f) << Name(isa) << " " << i;
      EXPECT_TRUE(std::isfinite(p[i])) << Name(isa) << " " << i;
    }
    EXPECT_EQ(p.back(), p[60]) << Name(isa);  // 88.37626, as for everything above it
  }
}

TEST(ExpSum, HasTheBitsOfTheScalarTableAlsoInPlace) {
  const float specials[] = {-kInf,  -87.33654f, -87.33655f, 88.37626f, 88.4f,
                            500.0f, -103.0f,    1e-40f,     -0.0f};
  for (const Kernels* kernels : VectorTables())
    for (const int n : Sizes()) {
      const auto seed = static_cast<std::uint32_t>(n);
      for (const Numbers& x : {Normal(seed, seed, 25.0f), Spiced(seed, seed, specials)})
        for (const float inv_temperature : {1.0f, 1.4285715f}) {
          Numbers expected(x.size() + 1, kSentinel), actual = expected, in_place = x;
          const double a = Scalar().exp_sum(x.data(), n, 0.25f, inv_temperature, expected.data());
          const double b = kernels->exp_sum(x.data(), n, 0.25f, inv_temperature, actual.data());
          const double c =
              kernels->exp_sum(in_place.data(), n, 0.25f, inv_temperature, in_place.data());
          EXPECT_EQ(a, b) << kernels->isa << " " << n;
          EXPECT_EQ(a, c) << kernels->isa << " " << n;
          EXPECT_TRUE(SameBits(actual, expected)) << kernels->isa << " " << n;
          actual.pop_back();
          EXPECT_TRUE(SameBits(in_place, actual)) << kernels->isa << " " << n;
        }
    }
}

TEST(VocabularyPasses, SumsScalesAndResidualsAgreeInAllTables) {
  const float specials[] = {0.0f, -0.0f, 1e-40f, 1e20f, -1e20f, 1.0f};
  for (const Kernels* kernels : VectorTables())
    for (const int n : Sizes()) {
      const auto seed = static_cast<std::uint32_t>(n);
      const Numbers x = Spiced(seed, seed, specials), y = Spiced(seed, seed + 9, specials);
      EXPECT_EQ(kernels->sum(x.data(), n), Scalar().sum(x.data(), n)) << kernels->isa << " " << n;

      Numbers a = x, b = x;
      a.push_back(kSentinel);
      b.push_back(kSentinel);
      Scalar().scale(a.data(), n, 0.3f);
      kernels->scale(b.data(), n, 0.3f);
      EXPECT_TRUE(SameBits(a, b)) << kernels->isa << " " << n;

      Numbers r(x.size() + 1, kSentinel), s = r, in_place = y;
      const double sum = Scalar().residual(x.data(), y.data(), n, r.data());
      EXPECT_EQ(kernels->residual(x.data(), y.data(), n, s.data()), sum)
          << kernels->isa << " " << n;
      EXPECT_TRUE(SameBits(r, s)) << kernels->isa << " " << n;
      EXPECT_EQ(kernels->residual(x.data(), in_place.data(), n, in_place.data()), sum);
      s.pop_back();
      EXPECT_TRUE(SameBits(in_place, s)) << kernels->isa << " " << n;
    }
}

TEST(Residual, IsTheDifferenceWherePositive) {
  const Numbers p = {0.5f, 0.25f, 0.25f, 0.0f}, q = {0.25f, 0.5f, 0.25f, 0.0f};
  Numbers r(4);
  EXPECT_EQ(Scalar().residual(p.data(), q.data(), 4, r.data()), 0.25);
  EXPECT_EQ(r, (Numbers{0.25f, 0, 0, 0}));
}

TEST(Sum, AddsBySixteenLanesInDouble) {
  Numbers x(40, 1e-9f);
  x[3] = 1.0f;
  double lanes[16] = {};
  for (std::size_t i = 0; i < x.size(); ++i) lanes[i % 16] += static_cast<double>(x[i]);
  for (int width = 8; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  EXPECT_EQ(Scalar().sum(x.data(), SizeOfVocabulary(x)), lanes[0]);
}

TEST(Entropy, OfOneNumberIsMinusItTimesItsLogarithm) {
  for (float p = 0x1p-126f; p < 1.0f; p *= 1.0037f) {
    const double log = std::log(static_cast<double>(p)), expected = -static_cast<double>(p) * log;
    // The bound is two ulp of the logarithm (at most 2^-23 of it) and half an ulp of the product.
    EXPECT_NEAR(Scalar().entropy(&p, 1), expected, 2.5 * 0x1p-23 * expected) << p;
  }
  for (const float p : {1.0f, 0.0f, -0.0f, 1e-40f, -1.0f, kNan}) {
    EXPECT_EQ(Scalar().entropy(&p, 1), 0.0) << p;
    EXPECT_FALSE(std::signbit(Scalar().entropy(&p, 1))) << p;
  }
}

TEST(Entropy, IsThatOfTheDefinition) {
  const Numbers equal(1000, 0.001f);
  EXPECT_NEAR(Scalar().entropy(equal.data(), 1000), std::log(1000.0), 1e-5);
  const Numbers p = {0.5f, 0.25f, 0.0f, 0.25f};
  EXPECT_NEAR(Scalar().entropy(p.data(), 4), 1.5 * std::log(2.0), 1e-6);
}

TEST(Entropy, AgreesInAllTables) {
  const float specials[] = {0.0f, -0.0f,       1e-40f, 0x1p-126f, 0x1.fffffcp-127f,
                            1.0f, 0.70710677f, -1.0f,  kNan,      0.7071067f};
  for (const Kernels* kernels : VectorTables())
    for (const int n : Sizes()) {
      const auto seed = static_cast<std::uint32_t>(n);
      for (const Numbers& p : {Probabilities(n, seed), Spiced(seed, seed, specials)})
        EXPECT_EQ(kernels->entropy(p.data(), n), Scalar().entropy(p.data(), n))
            << kernels->isa << " " << n;
    }
}

TEST(FindCumulative, TakesTheFirstWhoseRunningSumExceeds) {
  const Numbers p = {0.0f, 0.25f, 0.0f, 0.5f, 0.25f, 0.0f};
  const auto find = [&](double target) {
    return Scalar().find_cumulative(p.data(), SizeOfVocabulary(p), target);
  };
  EXPECT_EQ(find(0.0), 1);
  EXPECT_EQ(find(0.2499), 1);
  EXPECT_EQ(find(0.25), 3);
  EXPECT_EQ(find(0.75), 4);
  EXPECT_EQ(find(1.0), 4);  // no running sum exceeds it: the last positive one
  EXPECT_EQ(find(7.0), 4);
  const Numbers zeros(300, 0.0f);
  EXPECT_EQ(Scalar().find_cumulative(zeros.data(), 300, 0.0), -1);
  EXPECT_EQ(Scalar().find_cumulative(zeros.data(), 0, 0.0), -1);
}

TEST(FindCumulative, AgreesWithARunningSumInDouble) {
  for (const int n : {1, 17, 255, 256, 257, 5000}) {
    const Numbers p = Probabilities(n, static_cast<std::uint32_t>(n));
    double total = 0;
    for (const float v : p) total += static_cast<double>(v);
    for (int step = 0; step < 50; ++step) {
      const double target = total * (step + 0.5) / 50;
      double running = 0;
      std::int32_t expected = -1;
      for (int i = 0; i < n && expected < 0; ++i) {
        running += static_cast<double>(p[static_cast<std::size_t>(i)]);
        if (running > target) expected = i;
      }
      EXPECT_EQ(Scalar().find_cumulative(p.data(), n, target), expected) << n << " " << step;
    }
  }
}

TEST(FindCumulative, StaysInTheChunkWhoseSumExceedsWhenTheOrderedSumFallsShort) {
  // Added in order, each 2^-54 would be lost beside the 1. By lanes they are first added to each
  // other.
  Numbers p(600, 0.0f);
  for (std::size_t i = 0; i < 200; ++i) p[i] = i == 0 ? 1.0f : 0x1p-54f;
  p[300] = 0.5f;
  ASSERT_GT(Scalar().sum(p.data(), 256), 1.0);
  for (const Isa isa : AvailableIsas())
    EXPECT_EQ(KernelsFor(isa).find_cumulative(p.data(), 600, 1.0), 199) << Name(isa);
}

TEST(FindCumulative, NeverTakesAZeroAndAgreesInAllTables) {
  for (const Kernels* kernels : VectorTables()) {
    for (const int n : Sizes()) {
      const Numbers p = Probabilities(n, static_cast<std::uint32_t>(n) + 3);
      const double total = Scalar().sum(p.data(), n);
      std::vector<double> targets = {0.0, total, std::nextafter(total, 0.0), total * 2};
      // The targets are the running sums themselves, where one rounding decides.
      double running = 0;
      for (std::size_t i = 0; i < p.size(); ++i) {
        running += static_cast<double>(p[i]);
        if (i % 97 == 0 || i % 256 == 255 || i < 20) targets.push_back(running);
      }
      for (const double target : targets) {
        const std::int32_t found = kernels->find_cumulative(p.data(), n, target);
        EXPECT_EQ(found, Scalar().find_cumulative(p.data(), n, target)) << kernels->isa << " " << n;
        if (found >= 0) {
          EXPECT_GT(p[static_cast<std::size_t>(found)], 0.0f)
              << kernels->isa << " " << n << " " << target;
        } else {
          EXPECT_EQ(total, 0.0) << kernels->isa << " " << n;
        }
      }
    }
  }
}

RaceNoise NoiseOf(std::uint32_t number) {
  return {{number, 7, 0x80000005u}, {number * 77777u, 3}};
}

// The random word of token x, by the definition.
std::uint32_t WordOf(const RaceNoise& noise, int x) {
  const auto block = static_cast<std::uint32_t>(16 * (x / 64) + x % 16);
  return Philox({noise.counter[0], noise.counter[1], noise.counter[2], block},
                {noise.key[0], noise.key[1]})[static_cast<std::size_t>(x / 16 % 4)];
}

double UniformOf(std::uint32_t word) {
  return (static_cast<double>(word) + 0.5) * 0x1p-32;
}

// E by the definition, exact to the bit for v below 0.29.
float NearExponential(std::uint32_t word) {
  const float f = -static_cast<float>(UniformOf(word));
  float y = 7.0376836292e-2f;
  for (const float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                        -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f})
    y = std::fma(y, f, c);
  const float z = f * f;
  return -(f + std::fma(-0.5f, z, (y * f) * z));
}

// Distributions as a race meets them: dense ones, with a tail, with few tokens, with one token,
// with ever likelier tokens, and vectors that are no distribution but must do no harm.
std::vector<Numbers> RaceDistributions(int n) {
  const auto size = static_cast<std::size_t>(n);
  const auto seed = static_cast<std::uint32_t>(n);
  const float specials[] = {0.0f, -0.0f, 1e-40f, 0x1p-149f, -1.0f, kNan, 1.0f};
  std::vector<Numbers> distributions = {
      Probabilities(n, seed), Numbers(size, 1.0f / static_cast<float>(n)),
      Spiced(size, seed, specials), Numbers(size, 0x1p-149f), Numbers(size, 0.0f)};
  Numbers peaked = Normal(size, seed + 1, 12.0f), few(size, 0.0f), growing(size);
  for (float& v : peaked) v = std::exp(v - 30.0f);
  for (std::size_t i = seed % 7; i < size; i += 1 + size / 5) few[i] = 0.2f;
  for (std::size_t i = 0; i < size; ++i)
    growing[i] = std::exp(80.0f * (static_cast<float>(i) / static_cast<float>(size) - 1.0f));
  for (const Numbers& distribution : {peaked, few, growing}) distributions.push_back(distribution);
  if (n > 0) distributions.emplace_back(size, 0.0f), distributions.back()[size / 2] = 1.0f;
  return distributions;
}

TEST(Race, TakesTheLowestScoreOfTheDefinition) {
  int compared = 0;
  for (const int n : {1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 130, 1000})
    for (std::uint32_t number = 0; number < 40; ++number) {
      const RaceNoise noise = NoiseOf(number);
      Numbers p = Probabilities(n, number);
      p[0] = 0x1p-20f;
      double best = HUGE_VAL, second = HUGE_VAL;
      int winner = -1;
      for (int x = 0; x < n; ++x) {
        const float px = p[static_cast<std::size_t>(x)];
        if (px <= 0) continue;
        const double score = -std::log1p(-UniformOf(WordOf(noise, x))) / static_cast<double>(px);
        second = std::min(second, std::max(best, score));
        if (score < best) best = score, winner = x;
      }
      if (second / best < 1 + 1e-6) continue;  // too close: one rounding decides
      ++compared;
      EXPECT_EQ(Scalar().race(p.data(), 0, n, noise).token, winner) << n << " " << number;
    }
  EXPECT_GT(compared, 470);
}

TEST(Race, AgreesInAllTables) {
  std::vector<int> sizes = {1000, 4099, 128256};
  for (int n = 0; n <= 130; ++n) sizes.push_back(n);
  for (const int n : sizes)
    for (const Numbers& p : RaceDistributions(n))
      for (std::uint32_t number = 0; number < (n < 2000 ? 20u : 2u); ++number) {
        const std::int32_t winner = Scalar().race(p.data(), 0, n, NoiseOf(number)).token;
        const bool any = std::any_of(p.begin(), p.end(), [](float v) { return v > 0; });
        ASSERT_EQ(winner >= 0, any) << n;
        if (any) {
          ASSERT_GT(p[static_cast<std::size_t>(winner)], 0.0f) << n;
        }
        for (const Kernels* kernels : VectorTables())
          ASSERT_EQ(kernels->race(p.data(), 0, n, NoiseOf(number)).token, winner)
              << kernels->isa << " " << n << " " << number;
      }
}

TEST(Race, GivesTiesToTheLowestToken) {
  for (std::uint32_t number = 0; number < 300; ++number) {
    const int n = 130, from = static_cast<int>(number % 100);
    Numbers p(n, 0.0f);
    int lowest = -1;
    for (int x = from; x < n; ++x) {
      const std::uint32_t word = WordOf(NoiseOf(number), x);
      if (UniformOf(word) > 0.29) continue;
      p[static_cast<std::size_t>(x)] = NearExponential(word);  // so all scores are 1
      if (lowest < 0) lowest = x;
    }
    for (const Isa isa : AvailableIsas())
      ASSERT_EQ(KernelsFor(isa).race(p.data(), 0, n, NoiseOf(number)).token, lowest) << Name(isa);
    // With a little more probability another token wins, the last one. So these were ties, and E
    // has exactly these bits.
    const auto last =
        std::find_if(p.rbegin(), p.rend(), [](float v) { return v > 0; }).base() - p.begin() - 1;
    if (last < 0) continue;
    float& px = p[static_cast<std::size_t>(last)];
    px = std::nextafter(std::nextafter(px, 1.0f), 1.0f);
    for (const Isa isa : AvailableIsas())
      ASSERT_EQ(KernelsFor(isa).race(p.data(), 0, n, NoiseOf(number)).token, last) << Name(isa);
  }
}

// The chi-square statistic of the winners over the tokens of p, [n], in bins of equal width.
double RaceChiSquare(const Numbers& p, std::size_t n_bins, std::uint32_t draws,
                     const std::function<std::int32_t(const RaceNoise&)>& race) {
  std::vector<double> distribution(n_bins), seen(n_bins);
  double sum = 0;
  for (const float v : p) sum += static_cast<double>(v);
  for (std::size_t x = 0; x < p.size(); ++x)
    distribution[x * n_bins / p.size()] += static_cast<double>(p[x]) / sum;
  for (std::uint32_t i = 0; i < draws; ++i)
    ++seen[static_cast<std::size_t>(race({{i, 1, 5}, {11, 0}})) * n_bins / p.size()];
  double chi_square = 0;
  for (std::size_t bin = 0; bin < n_bins; ++bin)
    if (const double expected = distribution[bin] * draws; expected > 0)
      chi_square += (seen[bin] - expected) * (seen[bin] - expected) / expected;
  return chi_square;
}

TEST(Race, DrawsFromTheDistribution) {
  const Kernels& kernels = KernelsFor(AvailableIsas().back());
  Numbers few = {0.28f, 0.20f, 0.0f, 0.13f, 0.10f, 0.07f, 0.12f, 0.1f};
  const auto race = [&](const Numbers& p) {
    return [&](const RaceNoise& noise) {
      return kernels.race(p.data(), 0, SizeOfVocabulary(p), noise).token;
    };
  };
  const double of_few = RaceChiSquare(few, 8, 100000, race(few));
  EXPECT_LT(of_few, 33);  // 6 degrees of freedom: 1e-5

  Numbers many(1000);
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i] = std::exp(3.0f * std::sin(static_cast<float>(i)));
  const double of_many = RaceChiSquare(many, 50, 100000, race(many));
  EXPECT_LT(of_many, 101);  // 49 degrees of freedom: 1e-5

  // Half of the probability lies on tokens of 4e-6 each, so the distribution of small noise
  // decides.
  Numbers tail(128256, 0.5f / 128255);
  tail[70000] = 0.5f;
  const double of_tail = RaceChiSquare(tail, 20, 3000, race(tail));
  EXPECT_LT(of_tail, 55);  // 19 degrees of freedom: 2e-5
  std::printf("  chi-square %.1f, %.1f, %.1f\n", of_few, of_many, of_tail);

  // The control: uniform noise instead of exponential noise.
  const double of_uniform = RaceChiSquare(few, 8, 100000, [&](const RaceNoise& noise) {
    std::pair<double, std::int32_t> best = {HUGE_VAL, -1};
    for (int x = 0; x < SizeOfVocabulary(few); ++x)
      if (const auto px = static_cast<double>(few[static_cast<std::size_t>(x)]); px > 0)
        best = std::min(best, {UniformOf(WordOf(noise, x)) / px, x});
    return best.second;
  });
  EXPECT_GT(of_uniform, 200);
}

TEST(CollectAtLeast, KeepsOrderAndRoomAndCountsAll) {
  for (const Isa isa : AvailableIsas()) {
    const Numbers x = {1.0f, kNan, 3.0f, 2.0f, kInf, 2.0f, -kInf};
    std::vector<std::int32_t> ids(4, -9);
    EXPECT_EQ(KernelsFor(isa).collect_at_least(x.data(), 7, 2.0f, ids.data(), 3), 4) << Name(isa);
    EXPECT_EQ(ids, (std::vector<std::int32_t>{2, 3, 4, -9})) << Name(isa);
    EXPECT_EQ(KernelsFor(isa).collect_at_least(x.data(), 7, -kInf, nullptr, 0), 6) << Name(isa);
  }
}

TEST(CollectAtLeast, AgreesInAllTables) {
  for (const Kernels* kernels : VectorTables())
    for (const int n : Sizes())
      for (const Numbers& x : Inputs(n))
        for (const float threshold : {-kInf, -1.0f, 0.0f, 3.25f, kInf, kNan})
          for (const int room : {0, 1, 7, n / 2, n}) {
            std::vector<std::int32_t> expected(static_cast<std::size_t>(room) + 1, -9),
                actual = expected;
            const int a = Scalar().collect_at_least(x.data(), n, threshold, expected.data(), room);
            const int b = kernels->collect_at_least(x.data(), n, threshold, actual.data(), room);
            ASSERT_EQ(a, b) << kernels->isa << " " << n << " " << threshold;
            ASSERT_EQ(actual, expected) << kernels->isa << " " << n << " " << threshold;
          }
}

}  // namespace
}  // namespace foretoken::kernels
