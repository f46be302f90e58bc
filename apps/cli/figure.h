// SPDX-License-Identifier: Apache-2.0
// cli/figure.h: measured figures as people read them.
#pragma once

#include <string>

namespace foretoken::cli {

// A value with that many significant digits, whole from 1,000 on: an exponent is only written below
// 0.0001.
std::string Figure(double value, int digits = 3);

}  // namespace foretoken::cli
