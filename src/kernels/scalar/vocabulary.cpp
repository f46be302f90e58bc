// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar/exp.h"
#include "kernels/scalar/functions.h"
#include "kernels/scalar/log.h"

namespace foretoken::kernels::scalar {
namespace {

constexpr int kChunk = 256;  // elements that find_cumulative adds at once
constexpr int kMaxBlock = 64;
constexpr float kMinusInf = -__builtin_inff();
constexpr float kLeastNormal = 0x1p-126f;

}  // namespace

std::int32_t Argmax(const float* x, int n) {
  std::int32_t best = 0;
  float max = kMinusInf;
  for (int i = 0; i < n; ++i) {
    if (x[i] > max) {
      max = x[i];
      best = i;
    }
  }
  return best;
}

float Max(const float* x, int n) {
  float max = kMinusInf;
  for (int i = 0; i < n; ++i) max = x[i] > max ? x[i] : max;
  return max + 0.0f;  // which zero would depend on the order of comparisons; this makes it +0
}

double ExpSum(const float* x, int n, float max, float inv_temperature, float* p) {
  double lanes[kLanes] = {};
  for (int i = 0; i < n; ++i) {
    p[i] = Exp((x[i] - max) * inv_temperature);
    lanes[i % kLanes] += static_cast<double>(p[i]);
  }
  return FoldLanes(lanes);
}

void Scale(float* x, int n, float factor) {
  for (int i = 0; i < n; ++i) x[i] *= factor;
}

Finiteness FinitenessIn(const float* x, int n) {
  std::int32_t most_signed = 0;
  std::uint32_t most_unsigned = 0;
  for (int i = 0; i < n; ++i) {
    const auto bits = __builtin_bit_cast(std::uint32_t, x[i]);
    const auto as_signed = static_cast<std::int32_t>(bits);
    most_signed = as_signed > most_signed ? as_signed : most_signed;
    most_unsigned = bits > most_unsigned ? bits : most_unsigned;
  }
  return FinitenessOf(most_signed, most_unsigned);
}

double Sum(const float* x, int n) {
  double lanes[kLanes] = {};
  for (int i = 0; i < n; ++i) lanes[i % kLanes] += static_cast<double>(x[i]);
  return FoldLanes(lanes);
}

double Residual(const float* p, const float* q, int n, float* r) {
  double lanes[kLanes] = {};
  for (int i = 0; i < n; ++i) {
    const float difference = p[i] - q[i];
    r[i] = difference > 0.0f ? difference : 0.0f;
    lanes[i % kLanes] += static_cast<double>(r[i]);
  }
  return FoldLanes(lanes);
}

double Entropy(const float* p, int n) {
  double lanes[kLanes] = {};
  for (int i = 0; i < n; ++i)
    if (p[i] >= kLeastNormal) lanes[i % kLanes] += static_cast<double>(p[i] * Log(p[i]));
  return 0.0 - FoldLanes(lanes);
}

std::int32_t FindCumulative(const float* p, int n, double target) {
  double before = 0.0;
  std::int32_t last = -1;  // the last positive element so far
  for (int begin = 0; begin < n; begin += kChunk) {
    const int size = n - begin < kChunk ? n - begin : kChunk;
    const double after = before + Sum(p + begin, size);
    const bool reached = after > target;
    double running = before;
    for (int i = begin; i < begin + size; ++i) {
      running += static_cast<double>(p[i]);
      if (reached && running > target) return i;
      if (p[i] > 0.0f) last = i;
    }
    if (reached) return last;  // the sum in order fell short of the sum by lanes
    before = after;
  }
  return last;
}

void BlockMax(const float* x, int n, float* maxima) {
  for (int begin = 0; begin < n; begin += kMaxBlock) {
    const int size = n - begin < kMaxBlock ? n - begin : kMaxBlock;
    maxima[begin / kMaxBlock] = Max(x + begin, size);
  }
}

int CollectAtLeast(const float* x, int n, float threshold, std::int32_t* ids, int room) {
  int found = 0;
  for (int i = 0; i < n; ++i) {
    if (!(x[i] >= threshold)) continue;
    if (found < room) ids[found] = i;
    ++found;
  }
  return found;
}

}  // namespace foretoken::kernels::scalar
