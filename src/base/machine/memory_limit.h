// SPDX-License-Identifier: Apache-2.0
// base/machine/memory_limit.h: how much memory this process may use, given the machine, its control
// groups and its resource limits (ulimit); and how much it uses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace foretoken {

struct MemoryLimit {
  const char* who = "";    // "this machine has"; a number of bytes follows
  std::int64_t bytes = 0;  // the limit
  // What this process uses of it now; 0 if it limits resident memory.
  std::int64_t used_bytes = 0;
  std::int64_t left() const { return bytes > used_bytes ? bytes - used_bytes : 0; }
};

// Every limit that applies, read again on each call; the machine's own is always among them. `root`
// is put before /proc/self/cgroup and /sys, for tests.
std::vector<MemoryLimit> MemoryLimits(const std::string& root = "");

// The limit that leaves the least memory.
MemoryLimit TightestMemoryLimit(const std::string& root = "");

// How much more memory this process can have now without taking it from other programs: what is
// free, what caches of files hold, and within that what its groups and resource limits leave.
std::int64_t AvailableMemory(const std::string& root = "");

// The memory that the process uses now. Cheap: one file stays open, and one system call reads it.
// Zeros if Linux does not tell. Any thread.
struct ProcessMemory {
  std::int64_t virtual_bytes = 0, resident_bytes = 0, data_bytes = 0;
  std::int64_t file_bytes = 0;  // the part of resident_bytes that is pages of files
};
ProcessMemory ReadProcessMemory() noexcept;

}  // namespace foretoken
