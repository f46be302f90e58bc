// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace foretoken::cli {

struct Machine {
  std::string cpu;  // as the system names it; "" where it does not
  int cores = 0;    // that this program may use

  static Machine This();
};

}  // namespace foretoken::cli
