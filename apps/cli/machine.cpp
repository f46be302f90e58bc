// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.h"

#include <fstream>
#include <thread>

namespace foretoken::cli {

Machine Machine::This() {
  Machine machine{.cpu = {}, .cores = static_cast<int>(std::thread::hardware_concurrency())};
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; machine.cpu.empty() && std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos)
      machine.cpu = line.substr(colon + 2);
  }
  return machine;
}

}  // namespace foretoken::cli
