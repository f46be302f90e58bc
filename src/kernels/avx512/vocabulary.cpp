// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512/exp.h"
#include "kernels/avx512/functions.h"
#include "kernels/avx512/lanes.h"
#include "kernels/avx512/log.h"

namespace foretoken::kernels::avx512 {
namespace {

constexpr int kChunk = 256;  // elements that find_cumulative adds at once
constexpr int kMaxBlock = 64;
constexpr int kArgmaxBlock = 1024;
constexpr int kStep = 4;  // vectors that exp_sum works on at a time
constexpr float kMinusInf = -__builtin_inff();

// max(x, lanes) gives its second operand where x is NaN.
float MaxOf(const float* x, int n) {
  const __m512 minus_inf = _mm512_set1_ps(kMinusInf);
  __m512 m[4] = {minus_inf, minus_inf, minus_inf, minus_inf};
  int i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes)
    for (int j = 0; j < 4; ++j) m[j] = _mm512_max_ps(_mm512_loadu_ps(x + i + j * kLanes), m[j]);
  for (; i < n; i += kLanes) {
    const __mmask16 mask = FirstLanes(n - i < kLanes ? n - i : kLanes);
    m[0] = _mm512_max_ps(_mm512_mask_loadu_ps(minus_inf, mask, x + i), m[0]);
  }
  return FoldMax(_mm512_max_ps(_mm512_max_ps(m[0], m[1]), _mm512_max_ps(m[2], m[3])));
}

std::int32_t LastPositive(const float* p, int n) {
  for (int i = n - 1; i >= 0; --i)
    if (p[i] > 0.0f) return i;
  return -1;
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
  const __m512 wanted = _mm512_set1_ps(max);
  for (int i = begin;; i += kLanes) {
    const __mmask16 mask = FirstLanes(n - i < kLanes ? n - i : kLanes);
    const __mmask16 equal =
        _mm512_mask_cmp_ps_mask(mask, _mm512_maskz_loadu_ps(mask, x + i), wanted, _CMP_EQ_OQ);
    if (equal != 0) return i + __builtin_ctz(equal);
  }
}

float Max(const float* x, int n) {
  return MaxOf(x, n) + 0.0f;
}  // + 0: a zero is always +0

double ExpSum(const float* x, int n, float max, float inv_temperature, float* p) {
  const __m512 top = _mm512_set1_ps(max), factor = _mm512_set1_ps(inv_temperature);
  const int whole = n - n % kLanes;
  DoubleLanes sum;
  int i = 0;
  for (; i + kStep * kLanes <= n; i += kStep * kLanes) {
    __m512 e[kStep];
#pragma GCC unroll 4
    for (int t = 0; t < kStep; ++t)
      e[t] = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(x + i + t * kLanes), top), factor);
    Exp(e);
#pragma GCC unroll 4
    for (int t = 0; t < kStep; ++t) {
      _mm512_storeu_ps(p + i + t * kLanes, e[t]);
      sum.Add(e[t]);
    }
  }
  for (; i < whole; i += kLanes) {
    const __m512 e = Exp(_mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(x + i), top), factor));
    _mm512_storeu_ps(p + i, e);
    sum.Add(e);
  }
  const __mmask16 rest = FirstLanes(n - whole);
  const __m512 last = _mm512_maskz_loadu_ps(rest, x + whole);
  const __m512 e = Exp(_mm512_mul_ps(_mm512_sub_ps(last, top), factor));
  _mm512_mask_storeu_ps(p + whole, rest, e);
  sum.Add(_mm512_maskz_mov_ps(rest, e));
  return sum.Fold();
}

void Scale(float* x, int n, float factor) {
  const __m512 f = _mm512_set1_ps(factor);
  const int whole = n - n % kLanes;
  for (int i = 0; i < whole; i += kLanes)
    _mm512_storeu_ps(x + i, _mm512_mul_ps(_mm512_loadu_ps(x + i), f));
  const __mmask16 rest = FirstLanes(n - whole);
  _mm512_mask_storeu_ps(x + whole, rest, _mm512_mul_ps(_mm512_maskz_loadu_ps(rest, x + whole), f));
}

Finiteness FinitenessIn(const float* x, int n) {
  __m512i most_signed = _mm512_setzero_si512(), most_unsigned = _mm512_setzero_si512();
  for (int i = 0; i < n; i += kLanes) {
    const __mmask16 mask = FirstLanes(n - i < kLanes ? n - i : kLanes);
    const __m512i bits = _mm512_maskz_loadu_epi32(mask, x + i);
    most_signed = _mm512_max_epi32(most_signed, bits);
    most_unsigned = _mm512_max_epu32(most_unsigned, bits);
  }
  return FinitenessOf(_mm512_reduce_max_epi32(most_signed), _mm512_reduce_max_epu32(most_unsigned));
}

double Sum(const float* x, int n) {
  const int whole = n - n % kLanes;
  DoubleLanes sum;
  for (int i = 0; i < whole; i += kLanes) sum.Add(_mm512_loadu_ps(x + i));
  sum.Add(_mm512_maskz_loadu_ps(FirstLanes(n - whole), x + whole));
  return sum.Fold();
}

double Residual(const float* p, const float* q, int n, float* r) {
  DoubleLanes sum;
  for (int i = 0; i < n; i += kLanes) {
    const __mmask16 mask = FirstLanes(n - i < kLanes ? n - i : kLanes);
    const __m512 difference =
        _mm512_sub_ps(_mm512_maskz_loadu_ps(mask, p + i), _mm512_maskz_loadu_ps(mask, q + i));
    const __m512 positive = _mm512_max_ps(difference, _mm512_setzero_ps());
    _mm512_mask_storeu_ps(r + i, mask, positive);
    sum.Add(positive);
  }
  return sum.Fold();
}

double Entropy(const float* p, int n) {
  DoubleLanes sum;
  for (int i = 0; i < n; i += kLanes)
    sum.Add(TimesLog(_mm512_maskz_loadu_ps(FirstLanes(n - i < kLanes ? n - i : kLanes), p + i)));
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
  const __m512 t = _mm512_set1_ps(threshold);
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  int found = 0;
  for (int i = 0; i < n; i += kLanes) {
    const __mmask16 mask = FirstLanes(n - i < kLanes ? n - i : kLanes);
    const __mmask16 hit =
        _mm512_mask_cmp_ps_mask(mask, _mm512_maskz_loadu_ps(mask, x + i), t, _CMP_GE_OQ);
    if (hit == 0) continue;
    const int count = __builtin_popcount(hit);
    const int left = found < room ? room - found : 0;
    const __m512i id =
        _mm512_maskz_compress_epi32(hit, _mm512_add_epi32(lane, _mm512_set1_epi32(i)));
    if (left > 0)
      _mm512_mask_storeu_epi32(ids + found, FirstLanes(count < left ? count : left), id);
    found += count;
  }
  return found;
}

}  // namespace foretoken::kernels::avx512
