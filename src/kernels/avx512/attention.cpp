// SPDX-License-Identifier: Apache-2.0
// kernels/avx512/attention.cpp: attention for two processors of AMD.
//
#include "kernels/generic/attention.h"
#include "kernels/avx512/lanes.h"
#include "kernels/parts.h"

namespace foretoken::kernels::avx512 {
namespace {

// Zen 4, whose multipliers take a register in two halves. The compiler loads a number of a query that
// serves two registers to a third one, and there such loads and conversions from f16 delay each other:
// 8 queries, 16 positions each take 1.15 cycles for each fma so, and 1.01 if each fma reads the number
// from memory. Multipliers that take whole registers start two fma a cycle, and as many loads are all
// that the CPU can do: there an fma that reads memory is slower (on a Zen 5 1.14 of the time, 8 rows,
// 8,192 positions).
struct HalvedLanes : Lanes {
  static FORETOKEN_INLINE F MulAddAt(F x, const float* y, F to) {
    asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(to) : "v"(x), "m"(*y));
    return to;
  }
};

// Zen 5, which can fetch many lines into the first level at once. So integers go there, and push out
// nothing that the second level holds. One row, two threads, 32,768 positions, time as a share of fetching
// into the second level, up to three blocks ahead (medians of 6 to 8 in turn): q8_0 with heads of 64 0.84,
// of 128 0.87, of 32 0.92; q4_0 with heads of 64 0.95.
struct StreamedLanes : Lanes {
  static FORETOKEN_INLINE void PrefetchIntegers(const void* p) { _mm_prefetch(p, _MM_HINT_NTA); }
};

}  // namespace

constinit const Kernels kHalvedAttention = {.attention = generic::Attention<HalvedLanes>};
constinit const Kernels kStreamedAttention = {.attention = generic::Attention<StreamedLanes>};

}  // namespace foretoken::kernels::avx512
