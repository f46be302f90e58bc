// SPDX-License-Identifier: Apache-2.0
#include "lab/tune_choice.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "foretoken/tools/measure.h"

namespace foretoken::lab {
namespace {

constexpr double kOverPlain = 1.03, kOverAnother = 1.02, kOnce = 1.05;
constexpr double kStandardErrors = 3;

// In each repeat `challenger` and `holder` ran within the same seconds, so their ratio does not
// depend on what slows the machine for longer.
bool Displaces(const std::vector<double>& challenger, const std::vector<double>& holder,
               double margin) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < challenger.size(); ++i) ratios.push_back(challenger[i] / holder[i]);
  if (ratios.size() == 1)
    return ratios.front() > std::max(margin, kOnce);  // the noise is not known
  const auto n = static_cast<double>(ratios.size());
  const double mean = std::accumulate(ratios.begin(), ratios.end(), 0.0) / n;
  double squares = 0;
  for (const double ratio : ratios) squares += (ratio - mean) * (ratio - mean);
  const double standard_error = std::sqrt(squares / (n - 1) / n);
  const Spread spread = SpreadOf(std::move(ratios));
  return spread.least > 1 && spread.median > margin && mean - 1 > kStandardErrors * standard_error;
}

}  // namespace

std::optional<std::size_t> ChooseTrial(const std::vector<std::vector<double>>& speedups) {
  std::optional<std::size_t> holder;
  for (std::size_t i = 0; i < speedups.size(); ++i) {
    const std::vector<double> plain(speedups[i].size(), 1.0);
    if (holder ? Displaces(speedups[i], speedups[*holder], kOverAnother)
               : Displaces(speedups[i], plain, kOverPlain))
      holder = i;
  }
  return holder;
}

}  // namespace foretoken::lab
