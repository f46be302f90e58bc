// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/speeds.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/aligned_buffer.h"
#include "base/machine/memory_limit.h"
#include "comm/agreement.h"
#include "kernels/repack.h"
#include "tensor/dtype.h"

namespace foretoken::model {
namespace {

constexpr double kEqual = 1.1;  // of two speeds, where they count as equal
constexpr int kFastest = 10;    // share of the fastest rank
constexpr int kRuns = 6;        // the fastest one counts
// A matrix larger than caches, in a type that is common; a smaller one where memory is short.
constexpr int kColumns = 4096;
constexpr std::int64_t kMostBytes = 128 << 20, kLeastBytes = 1 << 20;
constexpr int kPartOfMemory = 4;
// A layer gathers four times. Besides, each pass sends a message and gathers its logits.
constexpr int kGathersALayer = 4, kGathersAPass = 2;
constexpr int kGatherRuns = 21;  // the median counts
constexpr int kTimedGatherBytes = 4096;

double SecondsOf(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// One strip of Q4_0 weights. All strips of the matrix are like it.
std::vector<std::byte> MakeStrip() {
  constexpr std::uint16_t kOne = 0x3C00;  // as a half
  std::vector<tensor::BlockQ4_0> rows(tensor::kTileOutputs * kColumns / tensor::kBlock);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::memset(&rows[i], static_cast<int>(i * 37 % 256), sizeof rows[i]);
    rows[i].d = kOne;
  }
  std::vector<std::byte> strip(kernels::StripBytes(tensor::TileType::kQ4_0, kColumns));
  kernels::Repack(tensor::DType::kQ4_0, rows.data(), tensor::kTileOutputs, kColumns, 0, 1,
                  strip.data());
  return strip;
}

double MeasureProduct(const kernels::Kernels& kernels, ThreadPool& pool) {
  const std::vector<std::byte> strip = MakeStrip();
  const std::int64_t bytes = std::clamp(AvailableMemory() / kPartOfMemory, kLeastBytes, kMostBytes);
  const int n_tiles = static_cast<int>(bytes / static_cast<std::int64_t>(strip.size()));
  AlignedBytes tiles(static_cast<std::size_t>(n_tiles) * strip.size());
  AlignedBuffer<std::int8_t> xq(kColumns);
  AlignedBuffer<float> xd(kColumns / tensor::kBlock);
  AlignedBuffer<std::int32_t> xs(2 * kColumns / tensor::kBlock);
  AlignedBuffer<float> y(static_cast<std::size_t>(n_tiles) * tensor::kTileOutputs);
  pool.Run([&](int thread) {
    const auto share = pool.ShareOf(n_tiles, thread);
    for (int tile = share.begin; tile < share.end; ++tile)
      std::memcpy(tiles.data() + static_cast<std::size_t>(tile) * strip.size(), strip.data(),
                  strip.size());
  });
  const auto multiply = [&](int thread) {
    const auto share = pool.ShareOf(n_tiles, thread);
    if (share.begin >= share.end) return;
    kernels.matmul[static_cast<std::size_t>(tensor::TileType::kQ4_0)]({.tiles = tiles.data(),
                                                                       .k = kColumns,
                                                                       .tile_begin = share.begin,
                                                                       .tile_end = share.end,
                                                                       .n_rows = 1,
                                                                       .xq = xq.data(),
                                                                       .xd = xd.data(),
                                                                       .xs = xs.data(),
                                                                       .y = y.data()});
  };
  double best = INFINITY;
  for (int i = 0; i < kRuns; ++i) best = std::min(best, SecondsOf([&] { pool.Run(multiply); }));
  return static_cast<double>(tiles.size_bytes()) / best;
}

// In microseconds, as this rank sees it. All ranks begin together.
double MeasureGather(comm::Ranks& ranks) {
  std::vector<std::int32_t> begins(static_cast<std::size_t>(ranks.size()) + 1);
  for (int r = 0; r <= ranks.size(); ++r)
    begins[static_cast<std::size_t>(r)] = kTimedGatherBytes * r / ranks.size();
  std::array<std::byte, kTimedGatherBytes> bytes{};
  std::array<double, kGatherRuns> times{};
  for (double& time : times)
    time = 1e6 * SecondsOf([&] { static_cast<void>(ranks.Gather(bytes.data(), begins)); });
  std::sort(times.begin(), times.end());
  return times[kGatherRuns / 2];
}

struct Measured {
  double gather_us = 0, n_threads = 0, bytes_per_second = 0;
};

// The mean of the ranks on its machine with as many threads.
double SpeedOf(const comm::Ranks& ranks, std::span<const Measured> all, int rank) {
  const double n_threads = all[static_cast<std::size_t>(rank)].n_threads;
  double sum = 0;
  int n = 0;
  for (int r = 0; r < ranks.size(); ++r) {
    const Measured& other = all[static_cast<std::size_t>(r)];
    if (ranks.host(r) != ranks.host(rank) || other.n_threads != n_threads) continue;
    sum += other.bytes_per_second;
    ++n;
  }
  return sum / n;
}

}  // namespace

Result<RankSpeeds> MeasureSpeeds(comm::Ranks& ranks, const kernels::Kernels& kernels,
                                 ThreadPool& pool) {
  if (ranks.alone()) return RankSpeeds{.bytes_per_second = {1}};
  const auto n = static_cast<std::size_t>(ranks.size()),
             own = static_cast<std::size_t>(ranks.rank());
  std::vector<Measured> all(n);
  all[own] = {.gather_us = MeasureGather(ranks), .n_threads = static_cast<double>(pool.size())};
  all[own].bytes_per_second = MeasureProduct(kernels, pool);
  std::vector<std::int32_t> begins(n + 1);
  for (std::size_t r = 0; r <= n; ++r) begins[r] = static_cast<std::int32_t>(r * sizeof(Measured));
  if (!ranks.Gather(reinterpret_cast<std::byte*>(all.data()), begins)) return comm::Lost(ranks);
  RankSpeeds speeds{.gather_us = all[0].gather_us};
  for (int r = 0; r < ranks.size(); ++r) speeds.bytes_per_second.push_back(SpeedOf(ranks, all, r));
  return speeds;
}

std::vector<int> SharesOf(std::span<const double> bytes_per_second) {
  std::vector<std::size_t> order(bytes_per_second.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return bytes_per_second[a] > bytes_per_second[b];
  });
  std::vector<int> shares(order.size());
  double fastest = 0;  // the mean of the fastest ranks that count as equal
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    double sum = 0;
    for (; end < order.size() &&
           bytes_per_second[order[end]] * kEqual >= bytes_per_second[order[begin]];
         ++end)
      sum += bytes_per_second[order[end]];
    const double mean = sum / static_cast<double>(end - begin);
    if (begin == 0) fastest = mean;
    for (; begin < end; ++begin)
      shares[order[begin]] = std::max(1, static_cast<int>(std::lround(kFastest * mean / fastest)));
  }
  return shares;
}

bool WorthDividing(const PassSize& size, const RankSpeeds& speeds) {
  const auto& all = speeds.bytes_per_second;
  if (all.size() < 2) return false;
  const double bytes = static_cast<double>(size.bytes);
  const double gathers = kGathersALayer * size.n_layers + kGathersAPass;
  const double together =
      bytes / std::accumulate(all.begin(), all.end(), 0.0) + gathers * speeds.gather_us * 1e-6;
  return together < bytes / all[0];
}

}  // namespace foretoken::model
