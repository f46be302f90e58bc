// SPDX-License-Identifier: Apache-2.0
#include "kernels/choice.h"

#include <cstdio>

#include "kernels/choice_testing.h"
#include "kernels/kernels_testing.h"

namespace foretoken::kernels {
namespace {

using Numbers = std::vector<float>;

int SizeOfChoice(const Numbers& x) {
  return static_cast<int>(x.size());
}

Choice MakeChoice(ChoiceRule rule, int n_tokens, std::uint32_t number = 0) {
  return {.rule = rule,
          .n_tokens = n_tokens,
          .inverse_temperature = number % 3 == 0 ? 1.0f : 0.7f + 0.1f * static_cast<float>(number),
          .noise = {{number, 3, 5}, {17, 0}}};
}

struct Parts {
  std::int32_t token = -1;
  bool undecided = false;
};

// What is chosen from parts that begin at `begins`. Each part has a copy of its own columns alone.
Parts InParts(const Kernels& kernels, const Choice& choice, const Numbers& row,
              std::vector<int> begins) {
  begins.push_back(SizeOfChoice(row));
  std::vector<Numbers> copies;
  const auto columns = [&](std::size_t part) { return Columns{begins[part], begins[part + 1]}; };
  PartBest best;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    Numbers& copy = copies.emplace_back(row.size(), kSentinel);
    std::copy(row.begin() + begins[i], row.begin() + begins[i + 1], copy.begin() + begins[i]);
    best = Better(best, BestOf(kernels, choice, copy.data(), columns(i)));
  }
  if (!HasRace(choice, best)) return {best.column};
  double sum = 0;
  for (std::size_t i = copies.size(); i-- > 0;)  // from the end: any order will do
    sum += Weigh(kernels, choice, best.value, copies[i].data(), columns(i));
  const auto scale = ScaleOf(choice, sum);
  RaceWinner winner;
  if (!scale) {
    Numbers all(row.size());
    for (std::size_t i = 0; i < copies.size(); ++i)
      std::copy(copies[i].begin() + begins[i], copies[i].begin() + begins[i + 1],
                all.begin() + begins[i]);
    winner = RaceOver(kernels, choice, all.data());
  } else {
    for (std::size_t i = 0; i < copies.size(); ++i)
      winner = Faster(RaceIn(kernels, choice, *scale, copies[i].data(), columns(i)), winner);
  }
  return {std::max(winner.token, 0), !scale};
}

std::vector<std::vector<int>> Divisions(int n) {
  return {{0}, {0, n / 2 / 16 * 16}, {0, n / 3 / 32 * 32, n / 2 / 32 * 32, n}, {0, 0, n / 4}};
}

// Ordinary logits, logits with ties and with what is not finite, and rows of one value.
std::vector<Numbers> ChoiceRows(int n, std::uint32_t seed) {
  constexpr float kSpecials[] = {kNan, -kInf, 0.0f, -0.0f, 1e-40f, 9.0f, 9.0f};
  constexpr float kInfinite[] = {kNan, -kInf, kInf};
  const auto size = static_cast<std::size_t>(n);
  std::vector<Numbers> rows = {Normal(size, seed, 4.0f), Normal(size, seed + 1, 0.01f),
                               Spiced(size, seed, kSpecials), Spiced(size, seed, kInfinite)};
  for (const float value : {kNan, -kInf, kInf, -0.0f, 1.5f}) rows.emplace_back(size, value);
  return rows;
}

TEST(Choice, OfPartsIsThatOfTheWholeRow) {
  int undecided = 0, races = 0;
  for (const int n : {1, 16, 50, 64, 100, 320, 1000, 4099})
    for (std::uint32_t number = 0; number < 12; ++number)
      for (const Numbers& row : ChoiceRows(n, number))
        for (const ChoiceRule rule : {ChoiceRule::kBest, ChoiceRule::kRace}) {
          const Choice choice = MakeChoice(rule, n - (number % 4 == 3 ? n / 5 : 0), number);
          const std::int32_t whole = ChoiceOfWhole(Scalar(), choice, row);
          for (const Isa isa : AvailableIsas()) {
            const auto& divisions = Divisions(n);
            const auto& begins = divisions[(number + static_cast<std::uint32_t>(isa)) % 4];
            const Parts parts = InParts(KernelsFor(isa), choice, row, begins);
            ASSERT_EQ(parts.token, whole) << n << " " << number << " " << Name(isa);
            undecided += parts.undecided, races += rule == ChoiceRule::kRace;
          }
        }
  std::printf("  %d races, %d of them undecided\n", races, undecided);
}

TEST(Choice, GivesTiesToTheLowestColumnAcrossParts) {
  Numbers row(320, 1.0f);
  row[40] = row[200] = row[300] = 2.0f;
  const Choice best = MakeChoice(ChoiceRule::kBest, 320);
  EXPECT_EQ(InParts(Scalar(), best, row, {0, 160, 256}).token, 40);
  row[40] = kNan, row[0] = -kInf;
  EXPECT_EQ(InParts(Scalar(), best, row, {0, 160, 256}).token, 200);
  row[40] = -0.0f, row[200] = row[300] = 0.0f;
  std::replace(row.begin(), row.end(), 1.0f, -1.0f);
  EXPECT_EQ(InParts(Scalar(), best, row, {0, 160, 256}).token, 40);
  EXPECT_EQ(Faster({5, 1.0f}, {9, 1.0f}).token, 5);
  EXPECT_EQ(Faster({9, 1.0f}, {5, 1.0f}).token, 5);
  EXPECT_EQ(Faster({-1, kInf}, {5, kInf}).token, 5);
  EXPECT_EQ(Faster({5, kInf}, {-1, kInf}).token, 5);
}

TEST(Choice, AScaleThatRoundingCouldChangeIsLeftOpen) {
  const Choice choice = MakeChoice(ChoiceRule::kRace, 128000);
  // Halfway between two floats, so that the last bit of the sum decides.
  const double halfway = 1 / (0.25 + 0x1p-26 + 0x1p-25 * 9);
  int open = 0, first = 1, last = -1;
  for (int i = -400000; i <= 400000; i += 500) {
    const double sum = halfway * (1 + i * 0x1p-52);
    const auto scale = ScaleOf(choice, sum);
    if (!scale) {
      ++open, first = std::min(first, i), last = std::max(last, i);
    } else {
      EXPECT_EQ(*scale, static_cast<float>(1.0 / sum));
    }
  }
  EXPECT_LT(first, -60000);
  EXPECT_GT(last, 60000);
  EXPECT_LT(open, 400);  // sums further away are not
  EXPECT_TRUE(ScaleOf(choice, 4.0));
}

// A race whose scale was left open is run over the weights of all parts in one place.
TEST(Choice, ARaceOverTheWeightsIsThatOfTheSampler) {
  for (std::uint32_t number = 0; number < 20; ++number) {
    const Choice choice = MakeChoice(ChoiceRule::kRace, 500, number);
    const Numbers row = Normal(512, number, 3.0f);
    Numbers weights = row;
    const PartBest best = BestOf(Scalar(), choice, row.data(), {0, 512});
    for (const Columns part : {Columns{320, 512}, Columns{0, 320}})
      Weigh(Scalar(), choice, best.value, weights.data(), part);
    EXPECT_EQ(RaceOver(Scalar(), choice, weights.data()).token,
              ChoiceOfWhole(Scalar(), choice, row));
  }
}

}  // namespace
}  // namespace foretoken::kernels
