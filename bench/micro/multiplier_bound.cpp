// SPDX-License-Identifier: Apache-2.0
// bench/micro/multiplier_bound.cpp: what the arithmetic of attention over Q8_0 takes if nothing waits,
// on AVX-512: one query, a block of 32 positions, 64 dimensions, all in registers. Beside attention_bench
// it tells how much of its time the processor's multipliers need.
//
//   multiplier_bound [THREADS]      ns, median (least-largest) of 9
//
// The products of keys and values are 64 vpdpbusd. The scales of scores, the exponentials, the weights
// and the sums of values are 32 fma and multiplications on the same two units, or 28 where no largest
// score rises. Conversions and additions have other units.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

struct Mix {
  const char* name;
  int products, multiplications, conversions, additions;
};
constexpr Mix kMixes[] = {{"64 vpdpbusd", 64, 0, 0, 0},
                          {"64 vpdpbusd, 32 fma", 64, 32, 0, 0},
                          {"64 vpdpbusd, 32 fma, 12 conversions, 8 additions", 64, 32, 12, 8},
                          {"64 vpdpbusd, 28 fma, 12 conversions, 8 additions", 64, 28, 12, 8}};
constexpr int kBlocks = 400'000;

// What a register of 512 bits holds.
typedef float Floats __attribute__((vector_size(64)));
typedef std::int32_t Integers __attribute__((vector_size(64)));

// The asm keeps each instruction as it is. Results go round a few registers, so that none waits.
template <int kMix>
__attribute__((noinline, target("avx512f,avx512vnni"))) void RunBlocks() {
  constexpr Mix kCounts = kMixes[kMix];
  Integers sums[12] = {}, bytes = Integers{} + 0x03030303;
  Floats products[8], others[4], x = Floats{} + 0.5F;
  for (Floats& product : products) product = x;
  for (int block = 0; block < kBlocks; ++block) {
#pragma GCC unroll 64
    for (int i = 0; i < kCounts.products; ++i)
      asm volatile("vpdpbusd %1, %1, %0" : "+v"(sums[i % 12]) : "v"(bytes));
#pragma GCC unroll 64
    for (int i = 0; i < kCounts.multiplications; ++i)
      asm volatile("vfmadd213ps %1, %1, %0" : "+v"(products[i % 8]) : "v"(x));
#pragma GCC unroll 64
    for (int i = 0; i < kCounts.conversions; ++i)
      asm volatile("vcvtdq2ps %1, %0" : "=v"(others[i % 2]) : "v"(bytes));
#pragma GCC unroll 64
    for (int i = 0; i < kCounts.additions; ++i)
      asm volatile("vaddps %1, %1, %0" : "=v"(others[2 + i % 2]) : "v"(x));
  }
}

template <int kMix>
void Measure(int n_threads) {
  std::array<double, 9> ns;
  for (double& one : ns) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int i = 1; i < n_threads; ++i) threads.emplace_back(RunBlocks<kMix>);
    RunBlocks<kMix>();
    for (std::thread& thread : threads) thread.join();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    one = took.count() / kBlocks;
  }
  std::sort(ns.begin(), ns.end());
  std::printf("%-52s %.2f (%.2f-%.2f)\n", kMixes[kMix].name, ns[4], ns[0], ns[8]);
}

}  // namespace

int main(int argc, char** argv) {
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vnni")) {
    std::fprintf(stderr, "multiplier_bound: this processor has no AVX-512 with VNNI\n");
    return 2;
  }
  const int n_threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  Measure<0>(n_threads);
  Measure<1>(n_threads);
  Measure<2>(n_threads);
  Measure<3>(n_threads);
  return 0;
}
