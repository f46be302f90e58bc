// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace foretoken::cli {

struct Machine {
  std::string cpu;  // the system's name for it; "" if it has none
  int cores = 0;    // that this program may use

  static Machine This();
};

}  // namespace foretoken::cli
