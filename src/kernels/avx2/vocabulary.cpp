// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernels/avx2/exp.h"
#include "kernels/avx2/functions.h"
#include "kernels/avx2/lanes.h"
#include "kernels/avx2/log.h"

namespace foretoken::kernels::avx2 {
namespace {

constexpr int kChunk = 256;  // elements that find_cumulative adds at once
constexpr int kMaxBlock = 64;
constexpr int kArgmaxBlock = 1024;
constexpr float kMinusInf = -__builtin_inff();

// max(x, lanes) gives its second operand where x is NaN.
float MaxOf(const float* x, int n) {
  const __m256 minus_inf = _mm256_set1_ps(kMinusInf);
  __m256 m[4] = {minus_inf, minus_inf, minus_inf, minus_inf};
  int i = 0;
  for (; i + 4 * kHalf <= n; i += 4 * kHalf)
    for (int j = 0; j < 4; ++j) m[j] = _mm256_max_ps(_mm256_loadu_ps(x + i + j * kHalf), m[j]);
  for (; i < n; i += kHalf) {
    const __m256i mask = FirstLanes(n - i);
    const __m256 v =
        _mm256_blendv_ps(minus_inf, _mm256_maskload_ps(x + i, mask), _mm256_castsi256_ps(mask));
    m[0] = _mm256_max_ps(v, m[0]);
  }
  return FoldMax(_mm256_max_ps(_mm256_max_ps(m[0], m[1]), _mm256_max_ps(m[2], m[3])));
}

// Bit i is set where x[i] passes the comparison, for the first n of 8.
template <int kComparison>
unsigned Passing(const float* x, int n, __m256 threshold) {
  const __m256i mask = FirstLanes(n);
  const __m256 hit = _mm256_cmp_ps(_mm256_maskload_ps(x, mask), threshold, kComparison);
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_and_ps(hit, _mm256_castsi256_ps(mask))));
}

std::int32_t LastPositive(const float* p, int n) {
  for (int i = n - 1; i >= 0; --i)
    if (p[i] > 0.0f) return i;
  return -1;
}

__m256 PositiveDifference(__m256 p, __m256 q) {
  return _mm256_max_ps(_mm256_sub_ps(p, q), _mm256_setzero_ps());
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
  for (int i = begin;; i += kHalf) {
    const unsigned equal = Passing<_CMP_EQ_OQ>(x + i, n - i, _mm256_set1_ps(max));
    if (equal != 0) return i + __builtin_ctz(equal);
  }
}

float Max(const float* x, int n) {
  return MaxOf(x, n) + 0.0f;
}  // + 0: a zero is always +0

double ExpSum(const float* x, int n, float max, float inv_temperature, float* p) {
  const __m256 top = _mm256_set1_ps(max), factor = _mm256_set1_ps(inv_temperature);
  const int whole = n - n % kLanes;
  DoubleLanes sum;
  for (int i = 0; i < whole; i += kLanes) {
    __m256 e[2];
#pragma GCC unroll 2
    for (int t = 0; t < 2; ++t)
      e[t] = _mm256_mul_ps(_mm256_sub_ps(_mm256_loadu_ps(x + i + t * kHalf), top), factor);
    Exp(e);
    _mm256_storeu_ps(p + i, e[0]);
    _mm256_storeu_ps(p + i + kHalf, e[1]);
    sum.Add(e[0], e[1]);
  }
  const __m256i low = FirstLanes(n - whole), high = FirstLanes(n - whole - kHalf);
  const __m256 x0 = _mm256_sub_ps(_mm256_maskload_ps(x + whole, low), top);
  const __m256 x1 = _mm256_sub_ps(_mm256_maskload_ps(x + whole + kHalf, high), top);
  const __m256 e0 = _mm256_and_ps(Exp(_mm256_mul_ps(x0, factor)), _mm256_castsi256_ps(low));
  const __m256 e1 = _mm256_and_ps(Exp(_mm256_mul_ps(x1, factor)), _mm256_castsi256_ps(high));
  _mm256_maskstore_ps(p + whole, low, e0);
  _mm256_maskstore_ps(p + whole + kHalf, high, e1);
  sum.Add(e0, e1);
  return sum.Fold();
}

void Scale(float* x, int n, float factor) {
  const __m256 f = _mm256_set1_ps(factor);
  const int whole = n - n % kHalf;
  for (int i = 0; i < whole; i += kHalf)
    _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), f));
  const __m256i rest = FirstLanes(n - whole);
  _mm256_maskstore_ps(x + whole, rest, _mm256_mul_ps(_mm256_maskload_ps(x + whole, rest), f));
}

Finiteness FinitenessIn(const float* x, int n) {
  __m256i most_signed = _mm256_setzero_si256(), most_unsigned = _mm256_setzero_si256();
  const auto take = [&](__m256i bits) {
    most_signed = _mm256_max_epi32(most_signed, bits);
    most_unsigned = _mm256_max_epu32(most_unsigned, bits);
  };
  const int whole = n - n % kHalf;
  for (int i = 0; i < whole; i += kHalf)
    take(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i)));
  take(_mm256_maskload_epi32(reinterpret_cast<const int*>(x + whole), FirstLanes(n - whole)));
  alignas(32) std::int32_t all_signed[kHalf];
  alignas(32) std::uint32_t all_unsigned[kHalf];
  _mm256_store_si256(reinterpret_cast<__m256i*>(all_signed), most_signed);
  _mm256_store_si256(reinterpret_cast<__m256i*>(all_unsigned), most_unsigned);
  for (int i = 1; i < kHalf; ++i) {
    if (all_signed[i] > all_signed[0]) all_signed[0] = all_signed[i];
    if (all_unsigned[i] > all_unsigned[0]) all_unsigned[0] = all_unsigned[i];
  }
  return FinitenessOf(all_signed[0], all_unsigned[0]);
}

double Sum(const float* x, int n) {
  const int whole = n - n % kLanes;
  DoubleLanes sum;
  for (int i = 0; i < whole; i += kLanes)
    sum.Add(_mm256_loadu_ps(x + i), _mm256_loadu_ps(x + i + kHalf));
  sum.Add(_mm256_maskload_ps(x + whole, FirstLanes(n - whole)),
          _mm256_maskload_ps(x + whole + kHalf, FirstLanes(n - whole - kHalf)));
  return sum.Fold();
}

double Residual(const float* p, const float* q, int n, float* r) {
  const int whole = n - n % kLanes;
  DoubleLanes sum;
  for (int i = 0; i < whole; i += kLanes) {
    const __m256 r0 = PositiveDifference(_mm256_loadu_ps(p + i), _mm256_loadu_ps(q + i));
    const __m256 r1 =
        PositiveDifference(_mm256_loadu_ps(p + i + kHalf), _mm256_loadu_ps(q + i + kHalf));
    _mm256_storeu_ps(r + i, r0);
    _mm256_storeu_ps(r + i + kHalf, r1);
    sum.Add(r0, r1);
  }
  const __m256i low = FirstLanes(n - whole), high = FirstLanes(n - whole - kHalf);
  p += whole, q += whole, r += whole;
  const __m256 r0 = PositiveDifference(_mm256_maskload_ps(p, low), _mm256_maskload_ps(q, low));
  const __m256 r1 =
      PositiveDifference(_mm256_maskload_ps(p + kHalf, high), _mm256_maskload_ps(q + kHalf, high));
  _mm256_maskstore_ps(r, low, r0);
  _mm256_maskstore_ps(r + kHalf, high, r1);
  sum.Add(r0, r1);
  return sum.Fold();
}

double Entropy(const float* p, int n) {
  DoubleLanes sum;
  for (int i = 0; i < n; i += kLanes)
    sum.Add(TimesLog(_mm256_maskload_ps(p + i, FirstLanes(n - i))),
            TimesLog(_mm256_maskload_ps(p + i + kHalf, FirstLanes(n - i - kHalf))));
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
  const __m256 t = _mm256_set1_ps(threshold);
  int found = 0;
  for (int i = 0; i < n; i += kHalf) {
    for (unsigned hit = Passing<_CMP_GE_OQ>(x + i, n - i, t); hit != 0; hit &= hit - 1, ++found)
      if (found < room) ids[found] = i + __builtin_ctz(hit);
  }
  return found;
}

}  // namespace foretoken::kernels::avx2
