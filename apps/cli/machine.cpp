// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.h"

#include <thread>

#include "foretoken/tools/profile.h"

namespace foretoken::cli {

Machine Machine::This() {
  return {.cpu = ProfileMachine::This({}, 0).cpu,
          .cores = static_cast<int>(std::thread::hardware_concurrency())};
}

}  // namespace foretoken::cli
