// SPDX-License-Identifier: Apache-2.0
#include "kernels/neon/exp.h"
#include "kernels/neon/functions.h"
#include "kernels/neon/lanes.h"
#include "kernels/neon/log.h"

namespace foretoken::kernels::neon {
namespace {

constexpr int kChunk = 256;  // elements that find_cumulative adds at once
constexpr int kMaxBlock = 64;
constexpr int kArgmaxBlock = 1024;
constexpr float kMinusInf = -__builtin_inff();

void TakeLarger(const Sixteen& x, Sixteen& max) {
  for (int t = 0; t < kVectors; ++t) max.v[t] = LargerOr(x.v[t], max.v[t]);
}

float MaxOf(const float* x, int n) {
  const float32x4_t none = vdupq_n_f32(kMinusInf);
  Sixteen max = {{none, none, none, none}};
  const int whole = n - n % kLanes;
  for (int i = 0; i < whole; i += kLanes) TakeLarger(Load(x + i), max);
  if (whole < n) TakeLarger(LoadFirst(x + whole, n - whole, kMinusInf), max);
  const float32x4_t four = vmaxq_f32(vmaxq_f32(max.v[0], max.v[1]), vmaxq_f32(max.v[2], max.v[3]));
  return vmaxvq_f32(four);
}

// Whether any of 16 values is at or above the threshold.
bool AnyAtLeast(const float* x, float32x4_t threshold) {
  const Sixteen v = Load(x);
  const uint32x4_t low = vorrq_u32(vcgeq_f32(v.v[0], threshold), vcgeq_f32(v.v[1], threshold));
  const uint32x4_t high = vorrq_u32(vcgeq_f32(v.v[2], threshold), vcgeq_f32(v.v[3], threshold));
  return vmaxvq_u32(vorrq_u32(low, high)) != 0;
}

std::int32_t LastPositive(const float* p, int n) {
  for (int i = n - 1; i >= 0; --i)
    if (p[i] > 0.0f) return i;
  return -1;
}

Sixteen Exponentials(const Sixteen& x, float max, float inv_temperature) {
  Sixteen e;
  for (int t = 0; t < kVectors; ++t)
    e.v[t] = vmulq_n_f32(vsubq_f32(x.v[t], vdupq_n_f32(max)), inv_temperature);
  Exp(e.v);
  return e;
}

Sixteen PositiveDifference(const Sixteen& p, const Sixteen& q) {
  Sixteen r;
  for (int t = 0; t < kVectors; ++t) {
    const float32x4_t difference = vsubq_f32(p.v[t], q.v[t]);
    r.v[t] = Masked(difference, vcgtzq_f32(difference));
  }
  return r;
}

Sixteen TimesLogs(const Sixteen& x) {
  Sixteen product;
  for (int t = 0; t < kVectors; ++t) product.v[t] = TimesLog(x.v[t]);
  return product;
}

}  // namespace

std::int32_t Argmax(const float* x, int n) {
  float max = kMinusInf;
  int begin = 0;  // of the first block that holds the maximum
  for (int i = 0; i < n; i += kArgmaxBlock) {
    const float m = MaxOf(x + i, n - i < kArgmaxBlock ? n - i : kArgmaxBlock);
    if (m > max) {
      max = m;
      begin = i;
    }
  }
  if (max == kMinusInf) return 0;
  while (x[begin] != max) ++begin;
  return begin;
}

float Max(const float* x, int n) {
  return MaxOf(x, n) + 0.0f;
}  // + 0: a zero is always +0

double ExpSum(const float* x, int n, float max, float inv_temperature, float* p) {
  const int whole = n - n % kLanes, rest = n - whole;
  DoubleLanes sum;
  for (int i = 0; i < whole; i += kLanes) {
    const Sixteen e = Exponentials(Load(x + i), max, inv_temperature);
    Store(e, p + i);
    sum.Add(e);
  }
  Sixteen e = Exponentials(LoadFirst(x + whole, rest), max, inv_temperature);
  for (int t = 0; t < kVectors; ++t) e.v[t] = Masked(e.v[t], FirstLanes(rest - t * kWidth));
  StoreFirst(e, rest, p + whole);
  sum.Add(e);
  return sum.Fold();
}

void Scale(float* x, int n, float factor) {
  const int whole = n - n % kWidth;
  for (int i = 0; i < whole; i += kWidth) vst1q_f32(x + i, vmulq_n_f32(vld1q_f32(x + i), factor));
  for (int i = whole; i < n; ++i) x[i] *= factor;
}

Finiteness FinitenessIn(const float* x, int n) {
  int32x4_t most_signed = vdupq_n_s32(0);
  uint32x4_t most_unsigned = vdupq_n_u32(0);
  const int whole = n - n % 4;
  for (int i = 0; i < whole; i += 4) {
    const uint32x4_t bits = vreinterpretq_u32_f32(vld1q_f32(x + i));
    most_signed = vmaxq_s32(most_signed, vreinterpretq_s32_u32(bits));
    most_unsigned = vmaxq_u32(most_unsigned, bits);
  }
  std::int32_t largest_signed = vmaxvq_s32(most_signed);
  std::uint32_t largest_unsigned = vmaxvq_u32(most_unsigned);
  for (int i = whole; i < n; ++i) {
    const auto bits = __builtin_bit_cast(std::uint32_t, x[i]);
    const auto as_signed = static_cast<std::int32_t>(bits);
    if (as_signed > largest_signed) largest_signed = as_signed;
    if (bits > largest_unsigned) largest_unsigned = bits;
  }
  return FinitenessOf(largest_signed, largest_unsigned);
}

double Sum(const float* x, int n) {
  const int whole = n - n % kLanes;
  DoubleLanes sum;
  for (int i = 0; i < whole; i += kLanes) sum.Add(Load(x + i));
  sum.Add(LoadFirst(x + whole, n - whole));
  return sum.Fold();
}

double Residual(const float* p, const float* q, int n, float* r) {
  const int whole = n - n % kLanes, rest = n - whole;
  DoubleLanes sum;
  for (int i = 0; i < whole; i += kLanes) {
    const Sixteen difference = PositiveDifference(Load(p + i), Load(q + i));
    Store(difference, r + i);
    sum.Add(difference);
  }
  const Sixteen last = PositiveDifference(LoadFirst(p + whole, rest), LoadFirst(q + whole, rest));
  StoreFirst(last, rest, r + whole);
  sum.Add(last);
  return sum.Fold();
}

double Entropy(const float* p, int n) {
  const int whole = n - n % kLanes;
  DoubleLanes sum;
  for (int i = 0; i < whole; i += kLanes) sum.Add(TimesLogs(Load(p + i)));
  sum.Add(TimesLogs(LoadFirst(p + whole, n - whole)));
  return 0.0 - sum.Fold();
}

std::int32_t FindCumulative(const float* p, int n, double target) {
  double before = 0.0;
  for (int begin = 0; begin < n; begin += kChunk) {
    const int size = n - begin < kChunk ? n - begin : kChunk;
    const double after = before + Sum(p + begin, size);
    if (after > target) {
      for (int i = begin; i < begin + size; ++i) {
        before += static_cast<double>(p[i]);
        if (before > target) return i;
      }
      return LastPositive(p, begin + size);  // the sum in order fell short of the sum by lanes
    }
    before = after;
  }
  return LastPositive(p, n);
}

void BlockMax(const float* x, int n, float* maxima) {
  for (int begin = 0; begin < n; begin += kMaxBlock)
    maxima[begin / kMaxBlock] = Max(x + begin, n - begin < kMaxBlock ? n - begin : kMaxBlock);
}

int CollectAtLeast(const float* x, int n, float threshold, std::int32_t* ids, int room) {
  const float32x4_t t = vdupq_n_f32(threshold);
  int found = 0;
  for (int begin = 0; begin < n; begin += kLanes) {
    const int size = n - begin < kLanes ? n - begin : kLanes;
    if (size == kLanes && !AnyAtLeast(x + begin, t)) continue;
    for (int i = begin; i < begin + size; ++i) {
      if (!(x[i] >= threshold)) continue;
      if (found < room) ids[found] = i;
      ++found;
    }
  }
  return found;
}

}  // namespace foretoken::kernels::neon
