// SPDX-License-Identifier: Apache-2.0
// kernels/generic/lanes.h: the 16 lanes of kernels.h, spread over the registers of an instruction
// set.
//
// The files of this folder are written once, over a type L, the lanes of an instruction set.
// avx2/lanes.h, avx512/lanes.h and neon/lanes.h each define such a type and compile these files for
// it. Everything here has internal linkage, so each instruction set has a copy of its own and none
// can run on a processor that lacks it.
//
// What L offers:
//   kWidth                    floats in a register: 4, 8 or 16
//   F, D, I, U, U64           a register of kWidth floats, kWidth / 2 doubles, kWidth int32, kWidth
//                             uint32, kWidth / 2 uint64. They are the compiler's own vectors: the
//                             operators + - * / & ^ << >> and < > ? : work on them, lane by lane,
//                             each operation with one rounding.
//   Mask                      one truth value for each lane of a register
//   All(x), Load, Store       a value in every lane; a register from memory and to memory
//   LoadFirst(p, n)           the first n values, and zero in the other lanes; n may be below 0 or
//                             above kWidth. Memory beyond the n values is not touched.
//   StoreFirst(x, n, p)       the counterpart
//   Fma(a, b, c)              a * b + c, rounded once
//   MulAdd(x, y, to), MulSub  to + x * y and to - x * y with a scalar y, rounded once
//   MulAddAt(x, p, to)        to + x * *p, where one instruction does that; attention.h uses it
//   AllPairs(p)               p[0] and p[1] in turn, where a register has 16 lanes; key_values.h uses it
//   AtMost(x, bound)          the smaller one; NaN stays NaN
//   First(n), Less, NotLess, Greater, AtLeast, Equal, Both, Either, Any, Bits
//                             masks: made by comparisons, combined, and as bits of an integer
//   Keep(mask, x)             x where the mask is set, otherwise 0
//   Select(mask, x, y)        x where the mask is set, otherwise y
//   Nearest(x)                F to I, to nearest even
//   FoldSum, FoldMax, LargestOf
//                             the lanes of one register folded to a number, halves onto halves
//   FoldRows(x, combine)      each of kWidth registers folded to a number, in lane i that of x[i]
//   LowDoubles, HighDoubles   the halves of an F as D
// Five groups of functions serve one file each, which describes them: rope.h (Zip, Unzip,
// InPairOrder), quantize.h (Pack, StoreBytes, StoreSums), stored.h (LoadHalves, ...), race.h
// (Product, Weave) and integer_attention.h. Other constants that begin with k say how much work the
// registers hold.
#pragma once

#include "kernels/generic/lane_basics.h"
#include "kernels/kernels.h"

namespace foretoken::kernels::generic {
namespace {

constexpr int kLanes = 16;
constexpr float kMinusInf = -__builtin_inff();

// Registers that hold the 16 lanes.
template <class L>
constexpr int kRegisters = kLanes / L::kWidth;

template <class L>
FORETOKEN_INLINE typename L::F Floats(typename L::I x) {
  return __builtin_convertvector(x, typename L::F);
}
// x where x > y, otherwise y (also where one of them is NaN): one instruction on x86.
template <class L>
FORETOKEN_INLINE typename L::F LargerOr(typename L::F x, typename L::F y) {
  return x > y ? x : y;
}

// One value in each of the 16 lanes.
template <class L>
struct Sixteen {
  typename L::F of[kRegisters<L>];

  static FORETOKEN_INLINE Sixteen All(float value) {
    Sixteen x;
#pragma GCC unroll 4
    for (int t = 0; t < kRegisters<L>; ++t) x.of[t] = L::All(value);
    return x;
  }
  static FORETOKEN_INLINE Sixteen Load(const float* p) {
    Sixteen x;
#pragma GCC unroll 4
    for (int t = 0; t < kRegisters<L>; ++t) x.of[t] = L::Load(p + t * L::kWidth);
    return x;
  }
  // The first n values; the other lanes are zero.
  static FORETOKEN_INLINE Sixteen LoadFirst(const float* p, int n) {
    Sixteen x;
#pragma GCC unroll 4
    for (int t = 0; t < kRegisters<L>; ++t)
      x.of[t] = L::LoadFirst(p + t * L::kWidth, n - t * L::kWidth);
    return x;
  }
  FORETOKEN_INLINE void Store(float* p) const {
#pragma GCC unroll 4
    for (int t = 0; t < kRegisters<L>; ++t) L::Store(of[t], p + t * L::kWidth);
  }
  FORETOKEN_INLINE void StoreFirst(int n, float* p) const {
#pragma GCC unroll 4
    for (int t = 0; t < kRegisters<L>; ++t)
      L::StoreFirst(of[t], n - t * L::kWidth, p + t * L::kWidth);
  }
};

// Half the registers are added to the other half until one is left, which the instruction set
// folds.
template <class L>
FORETOKEN_INLINE float FoldSum(Sixteen<L> x) {
#pragma GCC unroll 4
  for (int n = kRegisters<L> / 2; n > 0; n /= 2)
#pragma GCC unroll 4
    for (int t = 0; t < n; ++t) x.of[t] = x.of[t] + x.of[t + n];
  return L::FoldSum(x.of[0]);
}

// 16 sums in double, one for each lane.
template <class L>
struct DoubleSums {
  static constexpr int kParts = 2 * kRegisters<L>;
  typename L::D of[kParts];

  FORETOKEN_INLINE DoubleSums() {
#pragma GCC unroll 8
    for (int t = 0; t < kParts; ++t) of[t] = typename L::D{};
  }
  FORETOKEN_INLINE void Add(const typename L::F* x) {
#pragma GCC unroll 4
    for (int t = 0; t < kRegisters<L>; ++t) {
      of[2 * t] = of[2 * t] + L::LowDoubles(x[t]);
      of[2 * t + 1] = of[2 * t + 1] + L::HighDoubles(x[t]);
    }
  }
  FORETOKEN_INLINE double Fold() {
#pragma GCC unroll 4
    for (int n = kParts / 2; n > 0; n /= 2)
#pragma GCC unroll 4
      for (int t = 0; t < n; ++t) of[t] = of[t] + of[t + n];
    return L::FoldSum(of[0]);
  }
};

}  // namespace
}  // namespace foretoken::kernels::generic
