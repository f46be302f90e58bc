// SPDX-License-Identifier: Apache-2.0
// base/machine/cgroup.h: the control groups that this process is in, which may limit it below the machine's
// own size.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

struct CgroupFolder {
  std::string path;      // holds the group's files
  bool unified = false;  // version 2, whose files have other names
};

// The process's groups whose limits may apply to `controller` ("cpu", "memory"), each with all its
// parents; the tightest limit counts. Inside a container the path that Linux gives may be the
// host's: missing folders limit nothing, and the last parent is the container's own group. `root`
// is put before /proc and /sys, for tests.
std::vector<CgroupFolder> CgroupFolders(std::string_view controller, const std::string& root = "");

}  // namespace foretoken
