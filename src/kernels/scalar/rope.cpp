// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar/functions.h"

namespace foretoken::kernels::scalar {

void Rope(float* x, int n_heads, int head_dim, int n_rot, bool interleaved, const float* c,
          const float* s) {
  const int half = n_rot / 2;
  const int first_step = interleaved ? 2 : 1, second = interleaved ? 1 : half;
  for (int h = 0; h < n_heads; ++h) {
    float* head = x + static_cast<std::ptrdiff_t>(h) * head_dim;
    for (int i = 0; i < half; ++i) {
      float* pair = head + i * first_step;
      const float a = pair[0], b = pair[second];
      pair[0] = __builtin_fmaf(a, c[i], -(b * s[i]));
      pair[second] = __builtin_fmaf(a, s[i], b * c[i]);
    }
  }
}

}  // namespace foretoken::kernels::scalar
