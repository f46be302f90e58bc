// SPDX-License-Identifier: Apache-2.0
// tests/counts/count_kernels.cpp: runs each important kernel once on a fixed amount of fixed
// numbers, for counts_test.py, which counts its instructions under valgrind.
//
// usage: count_kernels scalar|avx2|build
// Prints the name of each piece of work, in the order of the calls of CountedCall; with "build",
// the compiler and its flags. Exit code 77: this processor has no such table.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/dispatch.h"
#include "kernels/repack.h"
#include "tensor/dtype.h"

// What valgrind counts: from here to the return, once for each piece of work, known by its name.
extern "C" [[gnu::noinline, gnu::noclone]] void CountedCall(const std::function<void()>& work) {
  work();
  asm volatile("" ::: "memory");  // no tail call: the return must be this function's
}

namespace foretoken::kernels {
namespace {

using tensor::KvType;
using tensor::TileType;

constexpr int kK = 512, kOutputs = 64;  // of a matrix: 4 strips of 2 super-blocks
constexpr int kWidth = 2048;            // of a hidden state
constexpr int kVocabulary = 4096;
constexpr int kMaxRows = 8;
constexpr int kHeadDim = 64, kGroup = 4, kPositions = 200;  // the last cache block is not full

// Its own random numbers, which do not depend on a library.
class Noise {
 public:
  std::uint32_t Word() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 33);
  }
  float Value() { return static_cast<float>(static_cast<int>(Word() % 4001) - 2000) / 1000.0f; }
  AlignedBuffer<float> Values(int n) {
    AlignedBuffer<float> values(static_cast<std::size_t>(n));
    for (float& v : values.span()) v = Value();
    return values;
  }
  // Ordinary numbers in every type: no half among them is subnormal or infinite.
  AlignedBytes Weights(std::size_t n_bytes) {
    AlignedBytes bytes(n_bytes);
    for (std::size_t i = 0; i + 4 <= n_bytes; i += 4) {
      const std::uint32_t word = (Word() & 0x0fff0fffu) | 0x30003000u;
      std::memcpy(bytes.data() + i, &word, 4);
    }
    return bytes;
  }

 private:
  std::uint64_t state_ = 1;
};

class Counter {
 public:
  explicit Counter(const Kernels& kernels) : kernels_(kernels) {}

  void CountAll() {
    // Types without a vector product run the scalar one everywhere; they have no speed to guard.
    // Types that share a tile share its product.
    std::set<TileType> counted;
    for (const tensor::DTypeInfo& info : tensor::AllDTypes())
      if (counted.insert(info.tile).second && ProductIsa(Isa::kAvx2, info.tile) == Isa::kAvx2 &&
          (IsQuantised(info.tile) || info.tile == TileType::kF16))
        for (const int n_rows : {1, 4, 8}) CountMatmul(std::string(info.name), info.tile, n_rows);
    for (const int n_rows : {1, 8}) CountAttention(KvType::kF16, "F16", n_rows);
    CountRowKernels();
    CountRope();
    CountVocabularyKernels();
    for (const int n_steps : {1, 4}) CountRecurrentKernels(n_steps);
    for (const int n_rows : {1, 8}) CountAttention(KvType::kQ8_0, "Q8_0", n_rows);
    for (const int n_rows : {1, 8}) CountAttention(KvType::kQ4_0, "Q4_0", n_rows);
  }

 private:
  static void Count(const std::string& name, const std::function<void()>& work) {
    std::puts(name.c_str());
    CountedCall(work);
  }

  // Activations in both forms, quantised by scalar: the same numbers for every table.
  void CountMatmul(const std::string& type_name, TileType type, int n_rows) {
    const AlignedBytes tiles = noise_.Weights(TiledBytes(type, kOutputs, kK));
    const AlignedBuffer<float> x = noise_.Values(kMaxRows * kK);
    AlignedBuffer<std::int8_t> xq(kMaxRows * kK);
    AlignedBuffer<float> xd(kMaxRows * kK / 32), y(kMaxRows * kOutputs);
    AlignedBuffer<std::int32_t> xs(kMaxRows * kK / 32 * 2);
    KernelsFor(Isa::kScalar).quantize(x.data(), kK, kMaxRows, kK, xq.data(), xd.data(), xs.data());
    MatmulArgs args = {};
    args.tiles = tiles.data();
    args.k = kK;
    args.tile_end = TilesFor(kOutputs);
    args.n_rows = n_rows;
    args.x = x.data();
    args.x_stride = kK;
    args.xq = xq.data();
    args.xd = xd.data();
    args.xs = xs.data();
    args.y = y.data();
    args.y_stride = kOutputs;
    Count("matmul " + type_name + ", rows " + std::to_string(n_rows),
          [&] { kernels_.matmul[static_cast<int>(type)](args); });
  }

  // The rows are the last ones of the sequence, as when drafts are verified.
  void CountAttention(KvType type, const std::string& name, int n_rows) {
    constexpr int kBlocks = (kPositions + tensor::kKvBlock - 1) / tensor::kKvBlock;
    const std::size_t block_bytes = tensor::KvBlockBytes(type, kHeadDim);
    const AlignedBytes keys = noise_.Weights(kBlocks * block_bytes),
                       values = noise_.Weights(kBlocks * block_bytes);
    const AlignedBuffer<float> queries = noise_.Values(kMaxRows * kGroup * kHeadDim);
    AlignedBuffer<float> out(kMaxRows * kGroup * kHeadDim),
        scratch(AttentionScratchFloats(kHeadDim));
    std::vector<std::int32_t> blocks, row_len;
    for (int b = 0; b < kBlocks; ++b) blocks.push_back(b);
    for (int row = 1; row <= n_rows; ++row) row_len.push_back(kPositions - n_rows + row);
    AttentionArgs args = {};
    args.q = queries.data();
    args.q_stride = kGroup * kHeadDim;
    args.out = out.data();
    args.out_stride = kGroup * kHeadDim;
    args.n_rows = n_rows;
    args.n_group = kGroup;
    args.head_dim = kHeadDim;
    args.scale = 0.125f;
    args.row_len = row_len.data();
    args.blocks = blocks.data();
    args.k = keys.data();
    args.k_stride = block_bytes;
    args.v = values.data();
    args.v_stride = block_bytes;
    args.k_type = args.v_type = type;
    args.scratch = scratch.data();
    Count("attention " + name + ", rows " + std::to_string(n_rows),
          [&] { kernels_.attention(args); });
  }

  void CountRowKernels() {
    const AlignedBuffer<float> x = noise_.Values(kWidth), weight = noise_.Values(kWidth);
    AlignedBuffer<float> y(kWidth), xd(kWidth / 32);
    AlignedBuffer<std::int8_t> xq(kWidth);
    AlignedBuffer<std::int32_t> xs(kWidth / 32 * 2);
    Count("quantize",
          [&] { kernels_.quantize(x.data(), kWidth, 1, kWidth, xq.data(), xd.data(), xs.data()); });
    Count("rms_norm", [&] { kernels_.rms_norm(x.data(), weight.data(), kWidth, 1e-5f, y.data()); });
    Count("silu_mul", [&] { kernels_.silu_mul(x.data(), weight.data(), kWidth, y.data()); });
  }

  void CountRope() {
    constexpr int kHeads = kWidth / kHeadDim;
    AlignedBuffer<float> x = noise_.Values(kWidth);
    const AlignedBuffer<float> c = noise_.Values(kHeadDim / 2), s = noise_.Values(kHeadDim / 2);
    for (const auto& [name, interleaved] : {std::pair{"rope", false}, {"rope, interleaved", true}})
      Count(name, [&, in_pairs = interleaved] {
        kernels_.rope(x.data(), kHeads, kHeadDim, kHeadDim, in_pairs, c.data(), s.data());
      });
  }

  // Positions of a head of which the first one is kept.
  void CountRecurrentKernels(int n_steps) {
    constexpr int kDim = 128, kTaps = 4, kMostSteps = 4;
    const AlignedBuffer<float> x = noise_.Values((kTaps - 1 + kMostSteps) * kDim),
                               weights = noise_.Values(kTaps * kDim),
                               q = noise_.Values(kMostSteps * kDim),
                               k = noise_.Values(kMostSteps * kDim), gates(kMostSteps);
    AlignedBuffer<float> v(kMostSteps * kDim), state(kDim * kDim), work(kDim * kDim);
    std::vector<const float*> rows;
    for (int i = 0; i < kTaps - 1 + n_steps; ++i) rows.push_back(x.data() + i * kDim);
    const std::string suffix = ", positions " + std::to_string(n_steps);
    Count("convolve" + suffix, [&] {
      kernels_.convolve({.x = rows.data(),
                         .weights = weights.data(),
                         .weights_stride = kDim,
                         .bias = nullptr,
                         .n_taps = kTaps,
                         .n_steps = n_steps,
                         .column = 0,
                         .n = kDim,
                         .activates = true,
                         .y = v.data(),
                         .y_stride = kDim});
    });
    Count("advance_state" + suffix, [&] {
      kernels_.advance_state({.state = state.data(),
                              .work = work.data(),
                              .n_in = kDim,
                              .n_out = kDim,
                              .n_steps = n_steps,
                              .n_kept = 1,
                              .q = q.data(),
                              .k = k.data(),
                              .v = v.data(),
                              .decay = gates.data(),
                              .beta = gates.data(),
                              .n_silent = 0,
                              .out = v.data(),
                              .out_stride = kDim});
    });
  }

  void CountVocabularyKernels() {
    const AlignedBuffer<float> x = noise_.Values(kVocabulary);
    AlignedBuffer<float> p(kVocabulary);
    Count("argmax", [&] { kernels_.argmax(x.data(), kVocabulary); });
    Count("exp_sum", [&] { kernels_.exp_sum(x.data(), kVocabulary, 2.0f, 1.25f, p.data()); });
  }

  const Kernels& kernels_;
  Noise noise_;
};

int Main(const char* name) {
  const auto isa = ParseIsa(name);
  if (!isa) {
    std::fprintf(stderr, "count_kernels: %s\n", isa.error().message.c_str());
    return 2;
  }
  const Kernels& kernels = KernelsFor(*isa);
  if (std::string(kernels.isa) != name) {
    std::fprintf(stderr, "count_kernels: this processor has no %s\n", name);
    return 77;
  }
  Counter(kernels).CountAll();
  return 0;
}

}  // namespace
}  // namespace foretoken::kernels

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "build") {
    std::puts(FORETOKEN_BUILD);
    return 0;
  }
  if (argc == 2) return foretoken::kernels::Main(argv[1]);
  std::fputs("usage: count_kernels scalar|avx2|build\n", stderr);
  return 2;
}
