// SPDX-License-Identifier: Apache-2.0
// kernels/generic/lane_basics.h: what the lanes of all instruction sets are made of (lanes.h).
#pragma once

// A function that is always inlined. Inner loops keep their sums in registers only if every
// function in them is.
#define FORETOKEN_INLINE inline __attribute__((always_inline))

namespace foretoken::kernels::generic {
namespace {

// n within [0, most].
constexpr int Bounded(int n, int most) {
  return n < 0 ? 0 : n > most ? most : n;
}

// Pairs of numbers that rope rotates: the first ones and the second ones.
template <class L>
struct Pairs {
  typename L::F a, b;
};

// How much work the registers of an instruction set hold, unless its lanes say otherwise. No result
// depends on these numbers.
struct LaneDefaults {
  static constexpr int kExpGroups = 1;  // groups of 16 exponentials that are computed together
  static constexpr int kTogether = 4;   // queries of attention that share a key or a value
  // Whether attention with few queries takes several blocks through each stage together.
  static constexpr bool kWholeBlocks = false;
  // With integers, how many bytes of keys memory is asked for ahead, which are also the most that go through
  // a stage together; 0: one block at a time goes through, and memory is asked as for other numbers.
  static constexpr int kIntegerBytes = 0;
  static constexpr int kStateGroups = 1;  // groups of 16 columns of a state that share a loop
  // Brings memory that is read soon into the first-level cache, or memory that is read later into the
  // second. Instruction sets that do not define them ask for nothing.
  static void Prefetch(const void*) {}
  static void PrefetchFar(const void*) {}
};

}  // namespace
}  // namespace foretoken::kernels::generic
