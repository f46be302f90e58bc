// SPDX-License-Identifier: Apache-2.0
// The processors of the group that the process is in: up to 64.
#include "base/machine/cpus.h"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

#include "base/windows/system_error.h"

namespace foretoken {
namespace {

constexpr int kMostCpus = 64;

constexpr std::uint64_t BitOf(int cpu) {
  return std::uint64_t{1} << cpu;
}

// What the calling thread may use: only a change tells it.
std::uint64_t AllowedMask() noexcept {
  DWORD_PTR process = 0, system = 0;
  if (!GetProcessAffinityMask(GetCurrentProcess(), &process, &system) || process == 0) return 1;
  const DWORD_PTR before = SetThreadAffinityMask(GetCurrentThread(), process);
  if (before == 0) return process;
  SetThreadAffinityMask(GetCurrentThread(), before);
  return before & process;
}

std::vector<int> AllowedCpus() {
  const std::uint64_t mask = AllowedMask();
  std::vector<int> cpus;
  for (int cpu = 0; cpu < kMostCpus; ++cpu)
    if ((mask & BitOf(cpu)) != 0) cpus.push_back(cpu);
  return cpus;
}

// The processors of each core.
std::vector<std::uint64_t> CoreMasks() {
  DWORD size = 0;
  GetLogicalProcessorInformation(nullptr, &size);
  std::vector<SYSTEM_LOGICAL_PROCESSOR_INFORMATION> rows(
      size / sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION));
  std::vector<std::uint64_t> masks;
  if (rows.empty() || !GetLogicalProcessorInformation(rows.data(), &size)) return masks;
  for (const auto& row : rows)
    if (row.Relationship == RelationProcessorCore) masks.push_back(row.ProcessorMask);
  return masks;
}

// Where the system does not tell, the processor is a core of its own.
std::uint64_t CoreOf(int cpu, const std::vector<std::uint64_t>& masks) {
  for (const std::uint64_t mask : masks)
    if ((mask & BitOf(cpu)) != 0) return mask;
  return BitOf(cpu);
}

}  // namespace

std::vector<int> OrderByCore(std::vector<int> cpus, const std::string&) {
  const std::vector<std::uint64_t> masks = CoreMasks();
  std::map<std::uint64_t, int> n_seen;
  std::vector<std::pair<int, int>> ranked;  // (how many of its core come before, CPU)
  std::sort(cpus.begin(), cpus.end());
  for (const int cpu : cpus) ranked.emplace_back(n_seen[CoreOf(cpu, masks)]++, cpu);
  std::sort(ranked.begin(), ranked.end());
  std::transform(ranked.begin(), ranked.end(), cpus.begin(), [](auto r) { return r.second; });
  return cpus;
}

int CoresAmong(const std::vector<int>& cpus, const std::string&) {
  const std::vector<std::uint64_t> masks = CoreMasks();
  std::map<std::uint64_t, int> n_seen;
  for (const int cpu : cpus) ++n_seen[CoreOf(cpu, masks)];
  return std::max(1, static_cast<int>(n_seen.size()));
}

std::vector<int> UsableCpus(const std::string& root) {
  return OrderByCore(AllowedCpus(), root);
}

int UsableCores(const std::string& root) {
  return CoresAmong(AllowedCpus(), root);
}

bool PinThisThread(int cpu) noexcept {
  return cpu >= 0 && cpu < kMostCpus && SetThreadAffinityMask(GetCurrentThread(), BitOf(cpu)) != 0;
}

int ThisCpu() noexcept {
  return static_cast<int>(GetCurrentProcessorNumber());
}

bool MoveAwayFrom(std::span<const std::atomic<int>> cpus) noexcept {
  const std::uint64_t allowed = AllowedMask();
  std::uint64_t others = allowed;
  for (const std::atomic<int>& taken : cpus)
    if (const int cpu = taken.load(std::memory_order_relaxed); cpu >= 0 && cpu < kMostCpus)
      others &= ~BitOf(cpu);
  if (others == 0) return false;
  if (SetThreadAffinityMask(GetCurrentThread(), others) == 0) return false;
  SetThreadAffinityMask(GetCurrentThread(), allowed);
  return true;
}

// CPUID's leaves from 0x80000002 on have the name in three parts.
std::string CpuName() {
  std::array<unsigned, 12> words = {};
  for (unsigned part = 0; part < 3; ++part) {
    unsigned* const at = words.data() + 4 * part;
    if (__get_cpuid(0x80000002u + part, at, at + 1, at + 2, at + 3) == 0) return "";
  }
  std::array<char, sizeof words + 1> text = {};
  std::memcpy(text.data(), words.data(), sizeof words);
  std::string name(text.data());
  while (name.ends_with(' ')) name.pop_back();
  return name;
}

}  // namespace foretoken
