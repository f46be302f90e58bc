// SPDX-License-Identifier: Apache-2.0
#include <arm_neon.h>

#include "kernels/neon/functions.h"

namespace foretoken::kernels::neon {
namespace {

constexpr int kPairs = 4;

struct Pairs {
  float32x4_t a, b;
};

Pairs Rotate(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t s) {
  return {vfmaq_f32(vnegq_f32(vmulq_f32(b, s)), a, c), vfmaq_f32(vmulq_f32(b, c), a, s)};
}

void RotateOne(float* a, float* b, float c, float s) {
  const float first = *a, second = *b;
  *a = __builtin_fmaf(first, c, -(second * s));
  *b = __builtin_fmaf(first, s, second * c);
}

void RotateSplit(float* a, float* b, int n, const float* c, const float* s) {
  int i = 0;
  for (; i + kPairs <= n; i += kPairs) {
    const Pairs y = Rotate(vld1q_f32(a + i), vld1q_f32(b + i), vld1q_f32(c + i), vld1q_f32(s + i));
    vst1q_f32(a + i, y.a);
    vst1q_f32(b + i, y.b);
  }
  for (; i < n; ++i) RotateOne(a + i, b + i, c[i], s[i]);
}

void RotateInterleaved(float* x, int n, const float* c, const float* s) {
  int i = 0;
  for (; i + kPairs <= n; i += kPairs) {
    const float32x4x2_t both = vld2q_f32(x + 2 * i);
    const Pairs y = Rotate(both.val[0], both.val[1], vld1q_f32(c + i), vld1q_f32(s + i));
    vst2q_f32(x + 2 * i, {{y.a, y.b}});
  }
  for (; i < n; ++i) RotateOne(x + 2 * i, x + 2 * i + 1, c[i], s[i]);
}

}  // namespace

void Rope(float* x, int n_heads, int head_dim, int n_rot, bool interleaved, const float* c,
          const float* s) {
  const int half = n_rot / 2;
  for (int h = 0; h < n_heads; ++h) {
    float* head = x + static_cast<std::ptrdiff_t>(h) * head_dim;
    if (interleaved)
      RotateInterleaved(head, half, c, s);
    else
      RotateSplit(head, head + half, half, c, s);
  }
}

}  // namespace foretoken::kernels::neon
