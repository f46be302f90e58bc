// SPDX-License-Identifier: Apache-2.0
// kernels/generic/exp.h: EXP of kernels/kernels.h for several registers.
#pragma once

#include "kernels/generic/lanes.h"

namespace foretoken::kernels::generic {
namespace {

// Each step of one exponential waits for the step before, some 15 of them. So all registers go
// through a step together, and hide each other's latency.
template <class L, int n>
FORETOKEN_INLINE void Exp(typename L::F (&x)[n]) {
  typename L::Mask keep[n];
  typename L::F shifted[n], r[n], y[n];
  const typename L::F magic = L::All(12582912.0f);
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) keep[i] = L::NotLess(x[i], L::All(-87.33654f));
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) x[i] = L::AtMost(x[i], 88.37626f);
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) shifted[i] = L::Fma(x[i], L::All(1.44269504f), magic);
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) y[i] = shifted[i] - magic;  // n of the definition
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) r[i] = L::Fma(y[i], L::All(-0.693359375f), x[i]);
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) r[i] = L::Fma(y[i], L::All(2.12194440e-4f), r[i]);
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) y[i] = L::All(1.9875691500e-4f);
  constexpr float kFactors[] = {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                                1.6666665459e-1f, 5.0000001201e-1f};
#pragma GCC unroll 8
  for (const float factor : kFactors)
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) y[i] = L::Fma(y[i], r[i], L::All(factor));
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) y[i] = L::Fma(y[i], r[i] * r[i], r[i]);
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) y[i] = y[i] + L::All(1.0f);
    // The low bits of `shifted` are the integer n. Moved up by 23 they are an exponent.
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) {
    const auto power = (__builtin_bit_cast(typename L::U, shifted[i]) << 23) + 0x3f800000u;
    x[i] = L::Keep(keep[i], y[i] * __builtin_bit_cast(typename L::F, power));
  }
}

// x = ROUGH EXP of kernels/kernels.h of -x for several registers.
template <class L, int n>
FORETOKEN_INLINE void RoughExpOfNegative(typename L::F (&x)[n]) {
  typename L::F shifted[n], r[n], y[n];
  const typename L::F minus_log2_e = L::All(-1.44269504f), magic = L::All(12583039.0f);
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) x[i] = L::AtMost(x[i], 86.0f);
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) shifted[i] = L::Fma(x[i], minus_log2_e, magic);
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) r[i] = L::Fma(x[i], minus_log2_e, magic - shifted[i]);
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) y[i] = L::Fma(r[i], L::All(0.055008866f), L::All(0.24221097f));
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) y[i] = L::Fma(y[i], r[i], L::All(0.69328296f));
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) y[i] = L::Fma(y[i], r[i], L::All(1.0f));
    // The low bits of `shifted` are the integer n + 127. Moved up by 23 they are the exponent of 2^n.
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i)
    x[i] = y[i] *
           __builtin_bit_cast(typename L::F, __builtin_bit_cast(typename L::U, shifted[i]) << 23);
}

}  // namespace
}  // namespace foretoken::kernels::generic
