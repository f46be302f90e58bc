// SPDX-License-Identifier: Apache-2.0
// kernels/generic/log.h: LOG of kernels/kernels.h for one register.
#pragma once

#include "kernels/generic/lanes.h"

namespace foretoken::kernels::generic {
namespace {

// What Log takes from x: x = 2^n (1 + f), f in [-0.293, 0.4143).
template <class L>
struct LogParts {
  typename L::F n, f;
};

// For a negative x the result means nothing. The bits are unsigned, so that differences may wrap around.
template <class L>
FORETOKEN_INLINE LogParts<L> PartsOf(typename L::F x) {
  using I = typename L::I;
  using U = typename L::U;
  const U bits = __builtin_bit_cast(U, x);
  const I exponent = __builtin_bit_cast(I, bits - 0x3f3504f3u) >> 23;
  const U mantissa = bits - (__builtin_bit_cast(U, exponent) << 23);
  return {Floats<L>(exponent), __builtin_bit_cast(typename L::F, mantissa) - L::All(1.0f)};
}

template <class L>
FORETOKEN_INLINE typename L::F LogOf(const LogParts<L>& x) {
  using F = typename L::F;
  const F n = x.n, f = x.f;
  F y = L::All(7.0376836292e-2f);
  y = L::Fma(y, f, L::All(-1.1514610310e-1f));
  y = L::Fma(y, f, L::All(1.1676998740e-1f));
  y = L::Fma(y, f, L::All(-1.2420140846e-1f));
  y = L::Fma(y, f, L::All(1.4249322787e-1f));
  y = L::Fma(y, f, L::All(-1.6668057665e-1f));
  y = L::Fma(y, f, L::All(2.0000714765e-1f));
  y = L::Fma(y, f, L::All(-2.4999993993e-1f));
  y = L::Fma(y, f, L::All(3.3333331174e-1f));
  const F z = f * f;
  y = (y * f) * z;
  y = L::Fma(n, L::All(-2.12194440e-4f), y);
  y = L::Fma(L::All(-0.5f), z, y);
  return L::Fma(n, L::All(0.693359375f), f + y);
}

// x * Log(x); 0 where x is not at least 2^-126.
template <class L>
FORETOKEN_INLINE typename L::F TimesLog(typename L::F x) {
  return L::Keep(L::AtLeast(x, L::All(0x1p-126f)), x * LogOf<L>(PartsOf<L>(x)));
}

}  // namespace
}  // namespace foretoken::kernels::generic
