// SPDX-License-Identifier: Apache-2.0
// bench/micro/attention_bench.cpp: the cost of attention by context, rows and cache type.
//
// One layer in the shape of a 1B model (8 heads of keys and values of 64 dimensions, 4 queries
// each), whose heads are distributed among all cores as in the engine. Names are cache type /
// instruction set / context / rows. An iteration is one layer; layers take turns in a cache of at
// least 256 MiB, so that keys and values come from memory.
//   Time              of one layer
//   bytes_per_second  keys and values read
//   per_row           time / rows
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/machine/cpus.h"
#include "base/machine/thread_pool.h"
#include "kernels/dispatch.h"
#include "tensor/dtype.h"

namespace foretoken::kernels {
namespace {

constexpr int kHeads = 8, kGroup = 4, kHeadDim = 64, kMaxRows = 16;
constexpr int kWidth = kHeads * kGroup * kHeadDim;  // of queries and results
constexpr std::size_t kCacheBytes = std::size_t{256} << 20;

// Keys and values of enough layers to fill kCacheBytes, as the engine keeps them: [layers, heads, blocks].
class Layers {
 public:
  Layers(tensor::KvType type, int positions, const Kernels& kernels)
      : n_blocks_((positions + tensor::kKvBlock - 1) / tensor::kKvBlock),
        block_bytes_(tensor::KvBlockBytes(type, kHeadDim)),
        layer_bytes_(block_bytes_ * kHeads * static_cast<std::size_t>(n_blocks_)),
        n_layers_(std::max<std::size_t>(1, kCacheBytes / 2 / layer_bytes_)),
        k_(n_layers_ * layer_bytes_),
        v_(n_layers_ * layer_bytes_),
        ids_(static_cast<std::size_t>(n_blocks_)) {
    std::iota(ids_.begin(), ids_.end(), 0);
    Fill(kernels.store_k[static_cast<std::size_t>(type)], k_);
    Fill(kernels.store_v[static_cast<std::size_t>(type)], v_);
  }

  std::size_t n_layers() const { return n_layers_; }
  std::size_t stride() const { return block_bytes_; }
  const std::byte* K(std::size_t layer, int head) const { return At(k_, layer, head); }
  const std::byte* V(std::size_t layer, int head) const { return At(v_, layer, head); }
  const std::int32_t* ids() const { return ids_.data(); }
  std::size_t layer_bytes() const { return 2 * layer_bytes_; }

 private:
  const std::byte* At(const AlignedBytes& bytes, std::size_t layer, int head) const {
    return bytes.data() + layer * layer_bytes_ +
           static_cast<std::size_t>(head) * static_cast<std::size_t>(n_blocks_) * block_bytes_;
  }

  // One block of ordinary numbers, everywhere.
  void Fill(void (*store)(const float*, int, int, void*), AlignedBytes& bytes) {
    std::vector<float> x(kHeadDim);
    for (int slot = 0; slot < tensor::kKvBlock; ++slot) {
      for (int d = 0; d < kHeadDim; ++d)
        x[static_cast<std::size_t>(d)] =
            0.01F * static_cast<float>((slot * 31 + d * 7) % 201 - 100);
      store(x.data(), kHeadDim, slot, bytes.data());
    }
    for (std::size_t at = block_bytes_; at < bytes.size_bytes(); at += block_bytes_)
      std::copy_n(bytes.data(), block_bytes_, bytes.data() + at);
  }

  int n_blocks_;
  std::size_t block_bytes_, layer_bytes_, n_layers_;
  AlignedBytes k_, v_;
  std::vector<std::int32_t> ids_;
};

struct Rows {
  Rows() : q(std::size_t{kMaxRows} * kWidth), out(std::size_t{kMaxRows} * kWidth) {
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = 0.02F * static_cast<float>(i % 101) - 1;
  }
  AlignedBuffer<float> q, out;
};

void OneLayer(ThreadPool& pool, const Kernels& kernels, const Layers& layers, std::size_t layer,
              tensor::KvType type, Rows& rows, const std::vector<std::int32_t>& row_len,
              AlignedBuffer<float>& scratch) {
  pool.Run([&](int thread) {
    const auto share = pool.ShareOf(kHeads, thread);
    for (int head = share.begin; head < share.end; ++head) {
      const int at = head * kGroup * kHeadDim;
      kernels.attention({.q = rows.q.data() + at,
                         .q_stride = kWidth,
                         .out = rows.out.data() + at,
                         .out_stride = kWidth,
                         .n_rows = static_cast<int>(row_len.size()),
                         .n_group = kGroup,
                         .head_dim = kHeadDim,
                         .scale = 1 / std::sqrt(static_cast<float>(kHeadDim)),
                         .row_len = row_len.data(),
                         .blocks = layers.ids(),
                         .k = layers.K(layer, head),
                         .k_stride = layers.stride(),
                         .v = layers.V(layer, head),
                         .v_stride = layers.stride(),
                         .k_type = type,
                         .v_type = type,
                         .scratch = scratch.data() + static_cast<std::size_t>(thread) *
                                                         AttentionScratchFloats(kHeadDim)});
    }
  });
}

void Attention(benchmark::State& state, ThreadPool& pool, Isa isa, tensor::KvType type) {
  const int context = static_cast<int>(state.range(0)), n_rows = static_cast<int>(state.range(1));
  const Kernels& kernels = KernelsFor(isa);
  const Layers layers(type, context + n_rows, kernels);
  Rows rows;
  std::vector<std::int32_t> row_len(static_cast<std::size_t>(n_rows));
  std::iota(row_len.begin(), row_len.end(), context + 1);
  AlignedBuffer<float> scratch(static_cast<std::size_t>(pool.size()) *
                               AttentionScratchFloats(kHeadDim));
  std::size_t layer = 0;
  for (auto _ : state) {
    OneLayer(pool, kernels, layers, layer, type, rows, row_len, scratch);
    layer = (layer + 1) % layers.n_layers();
  }
  benchmark::DoNotOptimize(rows.out.data());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(layers.layer_bytes()));
  state.counters["per_row"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * n_rows,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace
}  // namespace foretoken::kernels

int main(int argc, char** argv) {
  namespace ft = foretoken::kernels;
  using foretoken::tensor::KvType;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  foretoken::ThreadPool pool(foretoken::UsableCores());
  const std::vector<ft::Isa> isas = ft::AvailableIsas();
  for (const auto& [type, name] :
       {std::pair(KvType::kF16, "F16"), std::pair(KvType::kBF16, "BF16"),
        std::pair(KvType::kQ8_0, "Q8_0"), std::pair(KvType::kQ4_0, "Q4_0")})
    for (auto isa = isas.rbegin(); isa != isas.rend(); ++isa)
      benchmark::RegisterBenchmark((std::string(name) + "/" + std::string(ft::Name(*isa))).c_str(),
                                   [&pool, type = type, isa = *isa](benchmark::State& state) {
                                     ft::Attention(state, pool, isa, type);
                                   })
          ->ArgsProduct({{512, 2048, 8192, 32768}, {1, 4, 8, 16}})
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
