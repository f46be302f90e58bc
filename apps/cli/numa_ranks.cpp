// SPDX-License-Identifier: Apache-2.0
#include "cli/numa_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/machine/program_path.h"

namespace foretoken::cli {
namespace {

namespace fs = std::filesystem;

// "node0", "node12".
bool IsNode(const std::string& name) {
  return name.starts_with("node") && name.size() > 4 &&
         std::all_of(name.begin() + 4, name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool HasProcessors(const fs::path& node) {
  std::ifstream file(node / "cpulist");
  std::string list;
  return std::getline(file, list) && !list.empty();
}

}  // namespace

int NumaNodes(const std::string& root) {
  std::error_code none;
  int nodes = 0;
  for (const auto& entry : fs::directory_iterator(root + "/sys/devices/system/node", none))
    nodes += IsNode(entry.path().filename().string()) && HasProcessors(entry.path());
  return std::max(nodes, 1);
}

Error StartOnNumaNodes(int nodes, const Arguments& arguments) {
  const std::string program = ProgramPath().string();
  // One dash, as both Open MPI and MPICH read these flags.
  Arguments command = {"mpirun", "-n",   std::to_string(nodes), "-map-by", "numa", "-bind-to",
                       "numa",   program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : command) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers.front(), pointers.data());
  return {ErrorCode::kIo,
          fmt::format("--ranks numa: mpirun cannot be started ({}); install openmpi-bin or mpich",
                      std::strerror(errno))};
}

}  // namespace foretoken::cli
