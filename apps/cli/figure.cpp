// SPDX-License-Identifier: Apache-2.0
#include "cli/figure.h"

#include <fmt/format.h>

#include <cmath>

namespace foretoken::cli {

std::string Figure(double value, int digits) {
  if (value >= 999.5) return fmt::format("{:.0f}", value);
  if (value >= 1e-4 || value <= 0) return fmt::format("{:.{}g}", value, digits);
  return fmt::format("{:.{}f}", value,
                     digits - 1 - static_cast<int>(std::floor(std::log10(value))));
}

}  // namespace foretoken::cli
