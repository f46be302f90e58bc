// SPDX-License-Identifier: Apache-2.0
#include "cli/figure.h"

#include <fmt/format.h>

namespace foretoken::cli {

std::string Figure(double value, int digits) {
  return value < 999.5 ? fmt::format("{:.{}g}", value, digits) : fmt::format("{:.0f}", value);
}

}  // namespace foretoken::cli
