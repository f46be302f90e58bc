// SPDX-License-Identifier: Apache-2.0
#include "base/machine/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/machine/cgroup.h"

namespace foretoken {
namespace {

// Beyond the 1024 CPUs of cpu_set_t: an array of sets, which the calls take as one.
constexpr int kSets = 8, kMostCpus = kSets * CPU_SETSIZE;

std::vector<int> AllowedCpus() {
  std::vector<cpu_set_t> sets(kSets);
  const std::size_t n_bytes = kSets * sizeof(cpu_set_t);
  std::vector<int> cpus;
  if (sched_getaffinity(0, n_bytes, sets.data()) == 0)
    for (int cpu = 0; cpu < kMostCpus; ++cpu)
      if (CPU_ISSET_S(cpu, n_bytes, sets.data())) cpus.push_back(cpu);
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

template <typename T>
std::optional<T> ReadFirst(const std::string& path) {
  std::ifstream file(path);
  T value;
  if (file >> value) return value;
  return std::nullopt;
}

using Core = std::pair<int, int>;  // package, number in it

Core CoreOf(int cpu, const std::string& root) {
  const std::string folder =
      root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
  const auto package = ReadFirst<int>(folder + "physical_package_id");
  const auto id = ReadFirst<int>(folder + "core_id");
  constexpr int kUnknown = std::numeric_limits<int>::min();  // packages are -1 on some machines
  return package && id ? Core{*package, *id} : Core{kUnknown, cpu};
}

// The share of time in "<quota> <period>" microseconds, in CPUs; "max" and -1 are no limit.
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

double Share(std::optional<double> quota, std::optional<double> period) {
  return quota && period && *quota > 0 && *period > 0 ? *quota / *period : kNoLimit;
}

double ShareOfGroup(const std::string& folder, bool unified) {
  if (!unified)
    return Share(ReadFirst<double>(folder + "/cpu.cfs_quota_us"),
                 ReadFirst<double>(folder + "/cpu.cfs_period_us"));
  std::ifstream file(folder + "/cpu.max");
  double quota, period;
  if (file >> quota >> period) return Share(quota, period);
  return kNoLimit;
}

// The CPU time that the process may use, in CPUs.
double QuotaCpus(const std::string& root) {
  double least = kNoLimit;
  for (const CgroupFolder& group : CgroupFolders("cpu", root))
    least = std::min(least, ShareOfGroup(group.path, group.unified));
  return least;
}

}  // namespace

std::vector<int> OrderByCore(std::vector<int> cpus, const std::string& root) {
  std::map<Core, int> n_seen;
  std::vector<std::pair<int, int>> ranked;  // (how many of its core come before, CPU)
  ranked.reserve(cpus.size());
  std::sort(cpus.begin(), cpus.end());
  for (const int cpu : cpus) ranked.emplace_back(n_seen[CoreOf(cpu, root)]++, cpu);
  std::sort(ranked.begin(), ranked.end());
  std::transform(ranked.begin(), ranked.end(), cpus.begin(), [](auto r) { return r.second; });
  return cpus;
}

int CoresAmong(const std::vector<int>& cpus, const std::string& root) {
  std::map<Core, int> n_seen;
  for (const int cpu : cpus) ++n_seen[CoreOf(cpu, root)];
  const double n_cores = static_cast<double>(n_seen.size());
  return std::max(1, static_cast<int>(std::min(n_cores, std::ceil(QuotaCpus(root)))));
}

std::vector<int> UsableCpus(const std::string& root) {
  return OrderByCore(AllowedCpus(), root);
}

int UsableCores(const std::string& root) {
  return CoresAmong(AllowedCpus(), root);
}

bool PinThisThread(int cpu) noexcept {
  if (cpu < 0 || cpu >= kMostCpus) return false;
  cpu_set_t sets[kSets] = {};
  CPU_SET_S(cpu, sizeof(sets), sets);
  return sched_setaffinity(0, sizeof(sets), sets) == 0;
}

int ThisCpu() noexcept {
  return sched_getcpu();
}

bool MoveAwayFrom(std::span<const std::atomic<int>> cpus) noexcept {
  cpu_set_t allowed[kSets] = {}, others[kSets] = {};
  if (sched_getaffinity(0, sizeof(allowed), allowed) != 0) return false;
  std::copy(std::begin(allowed), std::end(allowed), std::begin(others));
  for (const std::atomic<int>& taken : cpus)
    if (const int cpu = taken.load(std::memory_order_relaxed); cpu >= 0 && cpu < kMostCpus)
      CPU_CLR_S(cpu, sizeof(others), others);
  if (CPU_COUNT_S(sizeof(others), others) == 0) return false;
  if (sched_setaffinity(0, sizeof(others), others) != 0) return false;
  sched_setaffinity(0, sizeof(allowed), allowed);
  return true;
}

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

}  // namespace foretoken
