// SPDX-License-Identifier: Apache-2.0
// tensor/line_fit.h: how Quantize finds the scale and the minimum of a run of values.
//
// The values x of a run become s * q + m with integers q of few bits. For given q, the best s and m
// solve a 2 x 2 system of weighted sums. For given s and m, the best q is the nearest one. The
// search tries a series of spacings around the even division of the run's range. Each spacing gives
// codes q, and the codes give the best (s, m). The pair with the least error, sum of w (s q + m -
// x)^2, is kept. The next try counts its codes from the m of that pair, which alone lowers the
// error by half a percent. With S.. = sum of w .. the error is
//   s^2 Sqq + 2 s m Sq + m^2 S1 - 2 s Sqx - 2 m Sx + Sxx
// so each try is one pass over the run. Values are counted from the least value of the run, because
// the difference of sums would lose its digits where a run lies far from zero.
//
// Here m <= 0 (files store minima with a minus), and w = root mean square + |x|.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tensor/block_layout.h"

namespace foretoken::tensor {

// ---- Four lanes --------------------------------------------------------------------------------
// The compiler's own vectors. Sums in lanes have the same order on every machine and are fast;
// plain loops over floats could not be both.
using Lanes = float __attribute__((vector_size(16)));
constexpr int kLanes = 4;

inline Lanes Load(const float* p) {
  Lanes lanes;
  std::memcpy(&lanes, p, sizeof lanes);
  return lanes;
}

inline void Store(float* p, Lanes lanes) {
  std::memcpy(p, &lanes, sizeof lanes);
}

inline Lanes All(float x) {
  return Lanes{x, x, x, x};
}

inline float Sum(Lanes v) {
  return (v[0] + v[1]) + (v[2] + v[3]);
}

// The nearest integer to x within [low, high]; low and high are integers within +-2^22. NaN becomes
// one of the two bounds.
inline Lanes Nearest(Lanes x, float low, float high) {
  constexpr float kIntegersOnly = 0x1.8p23f;  // floats of this size have no fraction
  x = x < All(high) ? x : All(high);
  x = x > All(low) ? x : All(low);
  return (x + All(kIntegersOnly)) - All(kIntegersOnly);
}

inline float Nearest(float x, float low, float high) {
  return Nearest(All(x), low, high)[0];
}

// ---- Codes --------------------------------------------------------------------------------------

// The reciprocal of d, and 0 for 0.
inline float Inverse(float d) {
  return d != 0 ? 1.0f / d : 0.0f;
}

// The value of largest magnitude, with its sign. The first one if there are several.
inline float Extreme(const float* x, int n) {
  float extreme = 0;
  for (int i = 0; i < n; ++i)
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  return extreme;
}

using Codes = std::array<std::uint8_t, kBlock>;

inline void PackNibbles(const Codes& codes, std::uint8_t* qs) {
  for (int j = 0; j < kHalf; ++j)
    qs[j] = static_cast<std::uint8_t>((codes[j] & 15) | (codes[j + kHalf] & 15) << 4);
}

// ---- Lines --------------------------------------------------------------------------------------

// x ~ scale * q - minimum, both at least 0.
struct Line {
  float scale = 0, minimum = 0;
};

// Spacings tried: (most + first + i * step) codes over the range of the run, i = 0 .. tries - 1.
struct Search {
  int most;  // the greatest code
  float first, step;
  int tries;
};

// A run of n values and what does not depend on codes. Values are counted from `low`.
template <int n>
struct Run {
  float x[n], w[n];
  float low, range;  // low <= 0
  float s1, sx, sxx;
};

template <int n>
inline Run<n> Prepare(const float* values) {
  Run<n> run;
  Lanes square = All(0), low = All(0), high = Load(values);
  for (int i = 0; i < n; i += kLanes) {
    const Lanes v = Load(values + i);
    square += v * v;
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  run.low = std::min(std::min(low[0], low[1]), std::min(low[2], low[3]));
  run.range = std::max(std::max(high[0], high[1]), std::max(high[2], high[3])) - run.low;
  const float size = std::sqrt(Sum(square) / n);
  Lanes s1 = All(0), sx = All(0), sxx = All(0);
  for (int i = 0; i < n; i += kLanes) {
    const Lanes v = Load(values + i), x = v - All(run.low);
    const Lanes w = All(size) + (v < All(0) ? -v : v);
    Store(run.x + i, x);
    Store(run.w + i, w);
    s1 += w;
    sx += w * x;
    sxx += w * x * x;
  }
  run.s1 = Sum(s1);
  run.sx = Sum(sx);
  run.sxx = Sum(sxx);
  return run;
}

// Weighted sums of the codes that one spacing gives.
struct CodeSums {
  float q, qq, qx;
};

// The codes of values that are counted from `offset`, which is code 0.
template <int n>
inline CodeSums SumsOf(const Run<n>& run, float offset, float inverse, int most) {
  Lanes sq = All(0), sqq = All(0), sqx = All(0);
  for (int i = 0; i < n; i += kLanes) {
    const Lanes x = Load(run.x + i);
    const Lanes q = Nearest((x - All(offset)) * All(inverse), 0, static_cast<float>(most));
    const Lanes wq = Load(run.w + i) * q;
    sq += wq;
    sqq += wq * q;
    sqx += wq * x;
  }
  return {Sum(sq), Sum(sqq), Sum(sqx)};
}

template <int n>
inline float ErrorOf(const Run<n>& run, const CodeSums& s, float scale, float offset) {
  return scale * scale * s.qq + offset * offset * run.s1 + run.sxx +
         2 * (scale * offset * s.q - scale * s.qx - offset * run.sx);
}

struct Fit {
  float scale, offset;  // of values counted from run.low
};

// The best line for the given codes. Where its minimum would have the wrong sign, it is the best
// line through zero. Returns false if all codes are the same.
template <int n>
inline bool Solve(const Run<n>& run, const CodeSums& s, Fit* fit) {
  const float determinant = run.s1 * s.qq - s.q * s.q;
  if (!(determinant > 0)) return false;
  fit->scale = (run.s1 * s.qx - run.sx * s.q) / determinant;
  fit->offset = (s.qq * run.sx - s.q * s.qx) / determinant;
  if (run.low + fit->offset > 0) {
    fit->offset = -run.low;
    fit->scale = (s.qx + run.low * s.q) / s.qq;
  }
  return true;
}

template <int n>
inline Line FitRun(const float* values, const Search& search) {
  const Run<n> run = Prepare<n>(values);
  if (!(run.range > 0)) return {0, -run.low};
  const auto most = static_cast<float>(search.most);
  Fit best = {run.range / most, 0};
  float least = ErrorOf(run, SumsOf(run, 0, most / run.range, search.most), best.scale, 0);
  for (int i = 0; i < search.tries; ++i) {
    const float codes = most + search.first + search.step * static_cast<float>(i);
    const float inverse = codes / (run.range - best.offset);
    const CodeSums sums = SumsOf(run, best.offset, inverse, search.most);
    Fit fit;
    if (!Solve(run, sums, &fit)) continue;
    const float error = ErrorOf(run, sums, fit.scale, fit.offset);
    if (error < least) least = error, best = fit;
  }
  return {best.scale, -(run.low + best.offset)};
}

// The codes of n values that are nearest to a line with rounded numbers.
template <int n>
std::array<std::uint8_t, n> CodesOn(const float* x, float scale, float minimum, int most) {
  alignas(16) float q[n] = {};
  if (scale != 0)
    for (int i = 0; i < n; i += kLanes)
      Store(q + i, Nearest((Load(x + i) + All(minimum)) / All(scale), 0, static_cast<float>(most)));
  std::array<std::uint8_t, n> codes;
  for (int i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>(q[i]);
  return codes;
}

// ---- Scales -------------------------------------------------------------------------------------
// Runs of values without a minimum; w = x^2, or as for lines.

constexpr int kShortRun = 16;
constexpr int kShortRuns = kSuperBlock / kShortRun;

// Codes lie in [least, most]. Spacings tried: those that bring the value of largest magnitude to
// least + i * step, i = -tries .. tries.
struct ScaleSearch {
  float least, most, step;
  int tries;
};

// The sums over the codes of one spacing. The best scale for these codes is qx / qq, and it lowers
// the error by gain().
struct ShortFit {
  double qx = 0, qq = 0;

  double scale() const { return qq > 0 ? qx / qq : 0; }
  double gain() const { return qq > 0 ? qx * qx / qq : 0; }
};

// The weights of n values.
template <int n>
using RunWeights = std::array<float, n>;

template <int n>
inline RunWeights<n> SquareWeights(const float* x) {
  RunWeights<n> w;
  for (int i = 0; i < n; i += kLanes) Store(w.data() + i, Load(x + i) * Load(x + i));
  return w;
}

template <int n>
inline RunWeights<n> LineWeights(const float* x) {
  Lanes square = All(0);
  for (int i = 0; i < n; i += kLanes) square += Load(x + i) * Load(x + i);
  const float size = std::sqrt(Sum(square) / n);
  RunWeights<n> w;
  for (int i = 0; i < n; ++i) w[i] = size + std::fabs(x[i]);
  return w;
}

template <int n>
inline ShortFit FitAt(const float* x, const RunWeights<n>& w, float inverse,
                      const ScaleSearch& search) {
  Lanes sqx = All(0), sqq = All(0);
  for (int i = 0; i < n; i += kLanes) {
    const Lanes v = Load(x + i);
    const Lanes q = Nearest(v * All(inverse), search.least, search.most);
    const Lanes wq = Load(w.data() + i) * q;
    sqx += wq * v;
    sqq += wq * q;
  }
  return {Sum(sqx), Sum(sqq)};
}

// The scale of a run of n. Its sign brings the value of largest magnitude near the least code. The
// scale is 0 where values are so small that their squares vanish.
template <int n>
inline float FitScale(const float* x, const RunWeights<n>& w, const ScaleSearch& search) {
  constexpr float kVanishing = 1e-15f;
  const float extreme = Extreme(x, n);
  if (std::fabs(extreme) < kVanishing) return 0;
  ShortFit best = FitAt<n>(x, w, search.least / extreme, search);
  for (int i = -search.tries; i <= search.tries; ++i) {
    if (i == 0) continue;
    const float codes = -search.least + search.step * static_cast<float>(i);
    const ShortFit fit = FitAt<n>(x, w, -codes / extreme, search);
    if (fit.gain() > best.gain()) best = fit;
  }
  // Where the sums overflow, no block can hold the values anyway.
  return std::isfinite(best.scale()) ? static_cast<float>(best.scale()) : extreme / search.least;
}

// The codes of a run of 16, less the least one.
inline void ShortCodes(const float* x, float scale, const ScaleSearch& search,
                       std::uint8_t* codes) {
  for (int i = 0; i < kShortRun; ++i) {
    const float q = scale != 0 ? Nearest(x[i] / scale, search.least, search.most) : 0;
    codes[i] = static_cast<std::uint8_t>(q - search.least);
  }
}

}  // namespace foretoken::tensor
