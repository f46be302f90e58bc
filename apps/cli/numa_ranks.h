// SPDX-License-Identifier: Apache-2.0
// cli/numa_ranks.h: the NUMA nodes of this machine as ranks, each with its own memory.
#pragma once

#include <string>

#include "cli/verb.h"

namespace foretoken::cli {

// The NUMA nodes that have processors; at least 1. `root` is put before /sys, for tests.
int NumaNodes(const std::string& root = "");

// Replaces this process by mpirun, which starts the same program with these arguments once for each of
// so many nodes, bound to it. Returns only with an error.
Error StartOnNumaNodes(int nodes, const Arguments& arguments);

}  // namespace foretoken::cli
