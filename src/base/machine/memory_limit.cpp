// SPDX-License-Identifier: Apache-2.0
#include "foretoken/memory_limit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>

#include "base/machine/cgroup.h"

namespace foretoken {
namespace {

std::int64_t PageBytes() noexcept {
  static const std::int64_t bytes = std::max(sysconf(_SC_PAGE_SIZE), 1L);
  return bytes;
}

// "max" and an empty file are no limit.
void AddGroupLimit(const std::string& path, std::vector<MemoryLimit>& limits) {
  std::ifstream file(path);
  std::int64_t bytes = 0;
  if (file >> bytes && bytes > 0)
    limits.push_back({.who = "its control group allows", .bytes = bytes});
}

void AddResourceLimit(decltype(RLIMIT_AS) resource, const char* who, std::int64_t used,
                      std::vector<MemoryLimit>& limits) {
  rlimit limit = {};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  limits.push_back(
      {.who = who, .bytes = static_cast<std::int64_t>(limit.rlim_cur), .used_bytes = used});
}

}  // namespace

std::vector<MemoryLimit> MemoryLimits(const std::string& root) {
  std::vector<MemoryLimit> limits;
  const long pages = sysconf(_SC_PHYS_PAGES);
  limits.push_back({.who = "this machine has",
                    .bytes = pages > 0 ? std::int64_t{pages} * PageBytes() : INT64_MAX});
  for (const CgroupFolder& folder : CgroupFolders("memory", root)) {
    if (!folder.unified) {
      AddGroupLimit(folder.path + "/memory.limit_in_bytes", limits);
      continue;
    }
    AddGroupLimit(folder.path + "/memory.max", limits);
    AddGroupLimit(folder.path + "/memory.high", limits);  // beyond it a process is slowed to a halt
  }
  const ProcessMemory now = ReadProcessMemory();
  AddResourceLimit(RLIMIT_AS, "ulimit -v leaves", now.virtual_bytes, limits);
  AddResourceLimit(RLIMIT_DATA, "ulimit -d leaves", now.data_bytes, limits);
  return limits;
}

MemoryLimit TightestMemoryLimit(const std::string& root) {
  const std::vector<MemoryLimit> limits = MemoryLimits(root);
  return *std::min_element(limits.begin(), limits.end(),
                           [](const auto& a, const auto& b) { return a.left() < b.left(); });
}

// The numbers of the file, in pages: all that is mapped, resident, shared, code, 0, data with
// stacks, 0.
ProcessMemory ReadProcessMemory() noexcept {
  static const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  std::array<char, 256> text = {};
  if (file < 0 || pread(file, text.data(), text.size() - 1, 0) <= 0) return {};
  long long all = 0, resident = 0, data = 0;
  if (std::sscanf(text.data(), "%lld %lld %*d %*d %*d %lld", &all, &resident, &data) != 3)
    return {};
  return {all * PageBytes(), resident * PageBytes(), data * PageBytes()};
}

}  // namespace foretoken
