// SPDX-License-Identifier: Apache-2.0
// With a = degrees / 2 and x the half of the statistic, the tail is
//   1 - x^a e^-x / Gamma(a + 1) * (1 + x/(a+1) + x^2/((a+1)(a+2)) + ...)        where x < a + 1,
//   x^a e^-x / Gamma(a) * 1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(x+5-a- ...)))        beyond,
// the continued fraction by Lentz's method.
#include "lab/chi_square.h"

#include <cmath>
#include <limits>
#include <vector>

namespace foretoken::lab {
namespace {

constexpr double kPrecision = 1e-15;
constexpr int kMostTerms = 100'000;
constexpr std::int64_t kLeastTogether = 10;

double LowerBySeries(double a, double x) {
  double term = 1, sum = 1;
  for (int n = 1; n < kMostTerms && term > sum * kPrecision; ++n) sum += term *= x / (a + n);
  return sum * std::exp(a * std::log(x) - x - std::lgamma(a + 1));
}

double UpperByFraction(double a, double x) {
  constexpr double kTiny = std::numeric_limits<double>::min() / kPrecision;
  const auto nonzero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / nonzero(b), fraction = d;
  for (int n = 1; n < kMostTerms; ++n) {
    const double numerator = -n * (n - a);
    b += 2;
    d = 1 / nonzero(numerator * d + b);
    c = nonzero(b + numerator / c);
    fraction *= c * d;
    if (std::abs(c * d - 1) < kPrecision) break;
  }
  return fraction * std::exp(a * std::log(x) - x - std::lgamma(a));
}

struct Cell {
  std::int64_t a = 0, b = 0;
};

std::vector<Cell> CellsOf(const Counts& a, const Counts& b) {
  std::map<std::int64_t, Cell> outcomes;
  for (const auto& [outcome, n] : a) outcomes[outcome].a += n;
  for (const auto& [outcome, n] : b) outcomes[outcome].b += n;
  std::vector<Cell> cells;
  Cell rest;
  for (const auto& entry : outcomes) {
    const Cell& cell = entry.second;
    if (cell.a + cell.b >= kLeastTogether)
      cells.push_back(cell);
    else
      rest.a += cell.a, rest.b += cell.b;
  }
  if (rest.a + rest.b >= kLeastTogether || cells.empty())
    cells.push_back(rest);
  else  // too few even together: they may go into any cell
    cells.back().a += rest.a, cells.back().b += rest.b;
  return cells;
}

}  // namespace

double ChiSquareTail(double x, int degrees) {
  if (!(x > 0)) return 1;
  const double a = 0.5 * degrees, half = 0.5 * x;
  return half < a + 1 ? 1 - LowerBySeries(a, half) : UpperByFraction(a, half);
}

Comparability CompareDistributions(const Counts& a, const Counts& b) {
  const std::vector<Cell> cells = CellsOf(a, b);
  double n_a = 0, n_b = 0;
  for (const Cell& cell : cells) {
    n_a += static_cast<double>(cell.a);
    n_b += static_cast<double>(cell.b);
  }
  Comparability result;
  result.degrees = static_cast<int>(cells.size()) - 1;
  if (result.degrees == 0 || n_a == 0 || n_b == 0) return {};
  const double k = std::sqrt(n_b / n_a);
  for (const Cell& cell : cells) {
    const double difference = k * static_cast<double>(cell.a) - static_cast<double>(cell.b) / k;
    result.statistic += difference * difference / static_cast<double>(cell.a + cell.b);
  }
  result.p = ChiSquareTail(result.statistic, result.degrees);
  return result;
}

}  // namespace foretoken::lab
