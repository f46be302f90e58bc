// SPDX-License-Identifier: Apache-2.0
// base/cgroup.h: the control groups that this process is in, where Linux limits it beside the
// machine's own size.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

struct CgroupFolder {
  std::string path;      // holds the group's files
  bool unified = false;  // version 2, whose files have other names
};

// The process's groups whose limits may hold for what `controller` counts ("cpu", "memory"), each
// with all its parents: the tightest of the limits is the one that holds. Inside a container the
// path that Linux tells may be the host's: folders that are not there limit nothing, and the last
// parent is the container's own group. `root` stands in front of /proc and /sys, for tests.
std::vector<CgroupFolder> CgroupFolders(std::string_view controller, const std::string& root = "");

}  // namespace foretoken
