// SPDX-License-Identifier: Apache-2.0
#include "base/machine/cgroup.h"

#include <fstream>

namespace foretoken {
namespace {

void AddWithParents(const std::string& mount, std::string path, bool unified,
                    std::vector<CgroupFolder>& folders) {
  for (;;) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    folders.push_back({mount + path, unified});
    if (path.empty()) return;
    const std::size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
}

}  // namespace

// Lines of /proc/self/cgroup are "<hierarchy>:<controllers>:<path>"; version 2 has no controllers.
std::vector<CgroupFolder> CgroupFolders(std::string_view controller, const std::string& root) {
  std::vector<CgroupFolder> folders;
  const std::string name(controller);
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find("," + name + ",") == std::string::npos) continue;
    const std::string mount = root + "/sys/fs/cgroup" + (unified ? "" : "/" + name);
    AddWithParents(mount, line.substr(second + 1), unified, folders);
  }
  return folders;
}

}  // namespace foretoken
