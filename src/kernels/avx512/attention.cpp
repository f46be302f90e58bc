// SPDX-License-Identifier: Apache-2.0
// kernels/avx512/attention.cpp: attention for AMD's Zen 4, whose multipliers take a register in two
// halves. The compiler loads a number of a query that serves two registers to a third one, and there
// such loads and conversions from f16 delay each other: 8 queries, 16 positions each take 1.15 cycles
// for each fma so, and 1.01 if each fma reads the number from memory. Multipliers that take whole
// registers start two fma a cycle, and as many loads are all that the CPU can do: there an fma that reads
// memory is slower (on a Zen 5 1.14 of the time, 8 rows, 8,192 positions).
#include "kernels/generic/attention.h"
#include "kernels/avx512/lanes.h"
#include "kernels/parts.h"

namespace foretoken::kernels::avx512 {
namespace {

struct HalvedLanes : Lanes {
  static FORETOKEN_INLINE F MulAddAt(F x, const float* y, F to) {
    asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(to) : "v"(x), "m"(*y));
    return to;
  }
};

}  // namespace

constinit const Kernels kHalvedAttention = {.attention = generic::Attention<HalvedLanes>};

}  // namespace foretoken::kernels::avx512
