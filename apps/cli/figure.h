// SPDX-License-Identifier: Apache-2.0
// cli/figure.h: measured figures as people read them.
#pragma once

#include <string>

namespace foretoken::cli {

// A value of at least 0 with that many significant digits, whole from 1,000 on, and never with an exponent.
std::string Figure(double value, int digits = 3);

}  // namespace foretoken::cli
