// SPDX-License-Identifier: Apache-2.0
// foretoken/memory_limit.h: how much memory this process may have, by the machine, its control
// groups and its resource limits (ulimit); and how much it has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace foretoken {

struct MemoryLimit {
  const char* who = "";         // "this machine has"; a number of bytes follows
  std::int64_t bytes = 0;       // the limit
  std::int64_t used_bytes = 0;  // of it, by this process now; 0 where it limits what is resident
  std::int64_t left() const { return bytes > used_bytes ? bytes - used_bytes : 0; }
};

// Every limit that there is, read anew on each call; the machine's own is always among them.
// `root` stands in front of /proc/self/cgroup and /sys, for tests.
std::vector<MemoryLimit> MemoryLimits(const std::string& root = "");

// The one that leaves least.
MemoryLimit TightestMemoryLimit(const std::string& root = "");

// What the process has now. Cheap: one file stays open, and one system call reads it. Zeros where
// Linux does not tell. Any thread.
struct ProcessMemory {
  std::int64_t virtual_bytes = 0, resident_bytes = 0, data_bytes = 0;
};
ProcessMemory ReadProcessMemory() noexcept;

}  // namespace foretoken
