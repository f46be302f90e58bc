// SPDX-License-Identifier: Apache-2.0
// bench/micro/matmul_bench.cpp: the cost of a pass over weights in memory by the number of rows, on
// which the gain of speculation depends.
//
// One line per type, instruction set and number of rows, for 1 GiB of weights (64 MiB for scalar)
// on all cores:
//   Time      the best of several passes
//   GB/s      weights read per second
//   read      plain reading of the same memory, in GB/s: the ceiling of GB/s
//   of_read   GB/s / read
//   x1        time / time of one row
// One row and plain reading are measured again beside each line, pass by pass, so that other
// programs disturb all three alike.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/machine/cpus.h"
#include "base/machine/thread_pool.h"
#include "kernels/dispatch.h"
#include "kernels/repack.h"
#include "tensor/dtype.h"

namespace foretoken::kernels {
namespace {

using tensor::TileType;

constexpr int kK = 2048, kOutputs = 8192, kTiles = kOutputs / tensor::kTileOutputs;
constexpr int kMaxRows = 16;
constexpr int kPasses = 9;
constexpr std::size_t kWeightBytes = std::size_t{1} << 30;

struct Setup {
  Setup()
      : pool(foretoken::UsableCores()),
        weights(kWeightBytes),
        x(std::size_t{kMaxRows} * kK),
        xq(std::size_t{kMaxRows} * kK),
        xd(std::size_t{kMaxRows} * kK / 32),
        xs(std::size_t{kMaxRows} * kK / 32 * 2),
        y(std::size_t{kMaxRows} * kOutputs) {
    pool.Run([&](int thread) {
      std::uint64_t random = static_cast<std::uint64_t>(thread) + 1;
      const Piece piece = PieceOf(kWeightBytes, thread);
      for (std::size_t i = piece.begin; i < piece.end; i += 8) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        // Ordinary numbers in every type: no half, float, bfloat16 or exponent (2^-32 to 2^-17)
        // among them makes a sum subnormal or infinite.
        const std::uint64_t word =
            ((random >> 13 ^ random) & 0x0f0f0f0f0f0f0f0fu) | 0x6060606060606060u;
        std::memcpy(weights.data() + i, &word, 8);
      }
    });
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = 0.01f * static_cast<float>(i % 201) - 1;
      xq[i] = static_cast<std::int8_t>(static_cast<int>(i * 37 % 255) - 127);
      if (i % 32 < 16) xs[i / 32 * 2] += xq[i];
      xs[i / 32 * 2 + 1] += xq[i];
      xd[i / 32] = 0.01f;
    }
  }

  struct Piece {
    std::size_t begin, end;
  };
  // Thread's share of n_bytes, in whole groups of 256 bytes.
  Piece PieceOf(std::size_t n_bytes, int thread) const {
    const std::size_t n = n_bytes / 256, of = static_cast<std::size_t>(pool.size()),
                      t = static_cast<std::size_t>(thread);
    return {n * t / of * 256, n * (t + 1) / of * 256};
  }

  ThreadPool pool;
  AlignedBytes weights;
  AlignedBuffer<float> x;
  AlignedBuffer<std::int8_t> xq;
  AlignedBuffer<float> xd;
  AlignedBuffer<std::int32_t> xs;
  AlignedBuffer<float> y;
};

template <typename F>
double Seconds(F&& pass) {
  const auto start = std::chrono::steady_clock::now();
  pass();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::uint64_t ReadAll(const std::byte* p, std::size_t n_bytes) {
  std::uint64_t sum[32] = {};
  for (std::size_t i = 0; i < n_bytes; i += 256) {
    for (std::size_t line = 0; line < 256; line += 64) __builtin_prefetch(p + i + 4096 + line);
    std::uint64_t words[32];
    std::memcpy(words, p + i, 256);
    for (int j = 0; j < 32; ++j) sum[j] ^= words[j];
  }
  std::uint64_t all = 0;
  for (const std::uint64_t s : sum) all ^= s;
  return all;
}

void PassReading(Setup& setup, std::size_t n_bytes) {
  setup.pool.Run([&](int thread) {
    const Setup::Piece piece = setup.PieceOf(n_bytes, thread);
    benchmark::DoNotOptimize(ReadAll(setup.weights.data() + piece.begin, piece.end - piece.begin));
  });
}

// Like a step of the engine: matrix after matrix, with a barrier after each.
void PassMultiplying(Setup& setup, const Kernels& kernels, TileType type, int n_matrices,
                     int n_rows) {
  setup.pool.Run([&](int thread) {
    const ThreadPool::Share share = setup.pool.ShareOf(kTiles, thread);
    MatmulArgs args = {};
    args.k = kK;
    args.tile_begin = share.begin;
    args.tile_end = share.end;
    args.n_rows = n_rows;
    args.x = setup.x.data();
    args.x_stride = kK;
    args.xq = setup.xq.data();
    args.xd = setup.xd.data();
    args.xs = setup.xs.data();
    args.y = setup.y.data();
    args.y_stride = kOutputs;
    for (int i = 0; i < n_matrices; ++i) {
      args.tiles =
          setup.weights.data() + static_cast<std::size_t>(i) * TiledBytes(type, kOutputs, kK);
      kernels.matmul[static_cast<int>(type)](args);
      setup.pool.Barrier();
    }
  });
}

void Matmul(benchmark::State& state, Setup& setup, Isa isa, TileType type, int n_rows) {
  const Kernels& kernels = KernelsFor(isa);
  const std::size_t matrix_bytes = TiledBytes(type, kOutputs, kK);
  const std::size_t set_bytes = isa == Isa::kScalar ? kWeightBytes / 16 : kWeightBytes;
  const int n_matrices = std::max(1, static_cast<int>(set_bytes / matrix_bytes));
  const std::size_t n_bytes = matrix_bytes * static_cast<std::size_t>(n_matrices);
  double best = std::numeric_limits<double>::infinity(), one = best, read = best;
  for (auto _ : state) {
    for (int pass = 0; pass < (isa == Isa::kScalar ? 1 : kPasses); ++pass) {
      // A pass over the whole set comes before each, so that the last-level cache does not help a
      // small one.
      read = std::min(read, Seconds([&] { PassReading(setup, kWeightBytes); }));
      one = std::min(one, Seconds([&] { PassMultiplying(setup, kernels, type, n_matrices, 1); }));
      best = std::min(best,
                      Seconds([&] { PassMultiplying(setup, kernels, type, n_matrices, n_rows); }));
    }
    state.SetIterationTime(best);
  }
  const double speed = static_cast<double>(n_bytes) / best,
               read_speed = static_cast<double>(kWeightBytes) / read;
  state.counters["GB/s"] = speed / 1e9;
  state.counters["read"] = read_speed / 1e9;
  state.counters["of_read"] = speed / read_speed;
  state.counters["x1"] = best / one;
}

// Repacking from file layout, one thread: what loading costs for each byte of the file.
void RepackOneThread(benchmark::State& state, Setup& setup, tensor::DType type) {
  const std::size_t n_bytes = TiledBytes(tensor::InfoOf(type).tile, kOutputs, kK);
  const std::byte* rows = setup.weights.data();
  std::byte* tiles = setup.weights.data() + kWeightBytes / 2;
  for (auto _ : state) Repack(type, rows, kOutputs, kK, 0, kTiles, tiles);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(n_bytes));
}

}  // namespace
}  // namespace foretoken::kernels

int main(int argc, char** argv) {
  namespace ft = foretoken::kernels;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  ft::Setup setup;
  std::set<foretoken::tensor::TileType> measured;  // types that share a tile share its product
  for (const foretoken::tensor::DTypeInfo& info : foretoken::tensor::AllDTypes()) {
    if (!measured.insert(info.tile).second) continue;
    const foretoken::tensor::TileType tile_type = info.tile;
    const std::string type(info.name);
    const std::vector<ft::Isa> isas = ft::AvailableIsas();
    for (auto isa = isas.rbegin(); isa != isas.rend(); ++isa) {
      for (const int n_rows : {1, 2, 4, 8, 16}) {
        const std::string name =
            type + "/" + std::string(ft::Name(*isa)) + "/" + std::to_string(n_rows);
        benchmark::RegisterBenchmark(
            name.c_str(),
            [&setup, tile_type, n_rows, isa = *isa](benchmark::State& state) {
              ft::Matmul(state, setup, isa, tile_type, n_rows);
            })
            ->Iterations(1)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
    benchmark::RegisterBenchmark(("Repack/" + type).c_str(), [&setup, type = info.type](
                                                                 benchmark::State& state) {
      ft::RepackOneThread(state, setup, type);
    })->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
