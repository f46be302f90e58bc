// SPDX-License-Identifier: Apache-2.0
#include "loader/ranks/cluster_meter.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/machine/cpus.h"
#include "base/machine/memory_limit.h"
#include "base/stopwatch.h"
#include "comm/agreement.h"
#include "loader/ranks/memory_meter.h"

namespace foretoken::loader {
namespace {

// Sizes of gathers: those of small and of large networks, with one row and with many.
constexpr std::array kGatherBytes = {64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
constexpr int kMemoryRepeats = 5, kLeastRepeats = 9, kMostRepeats = 1000;
constexpr double kGatherUs = 100e3;  // of the repeats of one size

// A rank's facts as they travel.
struct Fact {
  std::array<char, 128> cpu;
  std::array<char, 16> isa;
  std::int64_t memory_bytes, available_bytes, threads;
  double memory_gb_per_s;
};

template <std::size_t n>
void Store(std::array<char, n>& place, const std::string& text) {
  place = {};
  std::copy_n(text.begin(), std::min(text.size(), n - 1), place.begin());
}

double MemorySpeed(ThreadPool& pool, const kernels::Kernels& kernels) {
  MemoryMeter meter(pool, kernels);
  std::vector<double> speeds;
  for (int i = 0; i < kMemoryRepeats; ++i) speeds.push_back(meter.GigabytesPerSecond());
  return SpreadOf(std::move(speeds)).median;
}

Fact OwnFact(ThreadPool& pool, const kernels::Kernels& kernels) {
  Fact fact = {.memory_bytes = TightestMemoryLimit().bytes,
               .available_bytes = AvailableMemory(),
               .threads = pool.size(),
               .memory_gb_per_s = MemorySpeed(pool, kernels)};
  Store(fact.cpu, CpuName());
  Store(fact.isa, kernels.isa);
  return fact;
}

Result<std::vector<RankFacts>> GatherFacts(comm::Ranks& ranks, const Fact& own) {
  const auto n = static_cast<std::size_t>(ranks.size());
  std::vector<Fact> all(n);
  all[static_cast<std::size_t>(ranks.rank())] = own;
  std::vector<std::int32_t> begins;
  for (std::size_t r = 0; r <= n; ++r)
    begins.push_back(static_cast<std::int32_t>(r * sizeof(Fact)));
  if (!ranks.Gather(std::as_writable_bytes(std::span(all)).data(), begins))
    return comm::Lost(ranks);
  std::vector<RankFacts> facts;
  for (std::size_t r = 0; r < n; ++r)
    facts.push_back({.host = ranks.host(static_cast<int>(r)),
                     .cpu = all[r].cpu.data(),
                     .isa = all[r].isa.data(),
                     .threads = static_cast<int>(all[r].threads),
                     .memory_bytes = all[r].memory_bytes,
                     .available_bytes = all[r].available_bytes,
                     .memory_gb_per_s = all[r].memory_gb_per_s});
  return facts;
}

// Rank 0 says how often a size is repeated, from the time of the first gathers.
Result<GatherCost> MeasureGather(comm::Ranks& ranks, int bytes) {
  std::vector<std::byte> all(static_cast<std::size_t>(bytes));
  std::vector<std::int32_t> begins;
  for (int r = 0; r <= ranks.size(); ++r)
    begins.push_back(static_cast<std::int32_t>(std::int64_t{bytes} * r / ranks.size()));
  std::vector<double> us;
  bool good = true;
  const auto gather = [&] { good = good && ranks.Gather(all.data(), begins); };
  for (int i = 0; i < kLeastRepeats; ++i) us.push_back(Microseconds(gather));
  int repeats = static_cast<int>(kGatherUs / std::max(SpreadOf(us).median, 0.1));
  repeats = std::clamp(repeats, kLeastRepeats, kMostRepeats);
  good = good && ranks.Broadcast(std::as_writable_bytes(std::span(&repeats, 1)));
  us.clear();
  for (int i = 0; i < repeats; ++i) us.push_back(Microseconds(gather));
  if (!good) return comm::Lost(ranks);
  return GatherCost{.bytes = bytes, .us = SpreadOf(std::move(us))};
}

}  // namespace

Result<ClusterFacts> MeasureCluster(comm::Ranks& ranks, ThreadPool& pool,
                                    const kernels::Kernels& kernels) {
  ClusterFacts facts;
  FORETOKEN_TRY(facts.ranks, GatherFacts(ranks, OwnFact(pool, kernels)));
  if (ranks.alone()) return facts;
  for (const int bytes : kGatherBytes) {
    FORETOKEN_TRY(GatherCost cost, MeasureGather(ranks, bytes));
    facts.gathers.push_back(cost);
  }
  return facts;
}

}  // namespace foretoken::loader
