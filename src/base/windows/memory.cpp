// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/machine/memory_limit.h"
#include "base/machine/pages.h"
#include "base/windows/system_error.h"

// After windows.h:
#include <psapi.h>

namespace foretoken {
namespace {

MEMORYSTATUSEX MachineMemory() noexcept {
  MEMORYSTATUSEX memory = {};
  memory.dwLength = sizeof memory;
  GlobalMemoryStatusEx(&memory);
  return memory;
}

}  // namespace

std::vector<MemoryLimit> MemoryLimits(const std::string&) {
  return {{.who = "this machine has",
           .bytes = static_cast<std::int64_t>(MachineMemory().ullTotalPhys)}};
}

MemoryLimit TightestMemoryLimit(const std::string& root) {
  return MemoryLimits(root).front();
}

std::int64_t AvailableMemory(const std::string&) {
  return static_cast<std::int64_t>(MachineMemory().ullAvailPhys);
}

// What is resident of files is not told apart; it counts as the program's own.
ProcessMemory ReadProcessMemory() noexcept {
  PROCESS_MEMORY_COUNTERS_EX memory = {};
  if (!K32GetProcessMemoryInfo(GetCurrentProcess(),
                               reinterpret_cast<PROCESS_MEMORY_COUNTERS*>(&memory), sizeof memory))
    return {};
  const auto own = static_cast<std::int64_t>(memory.PrivateUsage);
  const auto resident = static_cast<std::int64_t>(memory.WorkingSetSize);
  return {.virtual_bytes = own,
          .resident_bytes = resident,
          .data_bytes = own,
          .file_bytes = std::max<std::int64_t>(0, resident - own)};
}

std::byte* TakePages(std::size_t& bytes) noexcept {
  constexpr std::size_t kPage = 4096;
  bytes = (bytes + kPage - 1) / kPage * kPage;
  return static_cast<std::byte*>(
      VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

void ReturnPages(std::byte* pages, std::size_t) noexcept {
  VirtualFree(pages, 0, MEM_RELEASE);
}

}  // namespace foretoken
