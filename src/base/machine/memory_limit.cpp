// SPDX-License-Identifier: Apache-2.0
#include "base/machine/memory_limit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string_view>

#include "base/machine/cgroup.h"

namespace foretoken {
namespace {

std::int64_t PageBytes() noexcept {
  static const std::int64_t bytes = std::max(sysconf(_SC_PAGE_SIZE), 1L);
  return bytes;
}

// 0 if the file holds no number: "max", or no such file.
std::int64_t NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number ? number : 0;
}

void AddGroupLimit(const std::string& path, std::vector<MemoryLimit>& limits) {
  if (const std::int64_t bytes = NumberIn(path); bytes > 0)
    limits.push_back({.who = "its control group allows", .bytes = bytes});
}

// The sum of the named numbers in a file of lines "NAME NUMBER ...".
std::int64_t SumIn(const std::string& path, std::initializer_list<std::string_view> names) {
  std::ifstream file(path);
  std::int64_t sum = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t number = 0;
    if (words >> name >> number && std::find(names.begin(), names.end(), name) != names.end())
      sum += number;
  }
  return sum;
}

// What a group's limit leaves beside what its processes use; pages of files can be dropped.
void LowerToGroup(std::int64_t limit, std::int64_t used, std::int64_t files, std::int64_t& bytes) {
  const std::int64_t held = std::max<std::int64_t>(0, used - files);
  if (limit > 0) bytes = std::min(bytes, std::max<std::int64_t>(0, limit - held));
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

std::int64_t AvailableMemory(const std::string& root) {
  std::int64_t bytes = 1024 * SumIn(root + "/proc/meminfo", {"MemAvailable:"});
  if (bytes == 0) bytes = INT64_MAX;
  for (const CgroupFolder& folder : CgroupFolders("memory", root)) {
    const std::string at = folder.path + "/memory.";
    if (!folder.unified) {
      LowerToGroup(NumberIn(at + "limit_in_bytes"), NumberIn(at + "usage_in_bytes"),
                   SumIn(at + "stat", {"total_active_file", "total_inactive_file"}), bytes);
      continue;
    }
    for (const char* const limit : {"max", "high"})
      LowerToGroup(NumberIn(at + limit), NumberIn(at + "current"),
                   SumIn(at + "stat", {"active_file", "inactive_file"}), bytes);
  }
  return std::min(bytes, TightestMemoryLimit(root).left());
}

// The numbers of the file, in pages: all that is mapped, resident, shared, code, 0, data with
// stacks, 0.
ProcessMemory ReadProcessMemory() noexcept {
  static const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  std::array<char, 256> text = {};
  if (file < 0 || pread(file, text.data(), text.size() - 1, 0) <= 0) return {};
  long long all = 0, resident = 0, shared = 0, data = 0;
  if (std::sscanf(text.data(), "%lld %lld %lld %*d %*d %lld", &all, &resident, &shared, &data) != 4)
    return {};
  return {all * PageBytes(), resident * PageBytes(), data * PageBytes(), shared * PageBytes()};
}

}  // namespace foretoken
