// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar/exp.h"
#include "kernels/scalar/functions.h"

namespace foretoken::kernels::scalar {

void RmsNorm(const float* x, const float* weight, int n, float eps, float* y) {
  float lanes[kLanes] = {};
  for (int i = 0; i < n; ++i) lanes[i % kLanes] = __builtin_fmaf(x[i], x[i], lanes[i % kLanes]);
  const float ss = FoldLanes(lanes);
  const float factor = 1.0f / __builtin_sqrtf(ss / static_cast<float>(n) + eps);
  for (int i = 0; i < n; ++i) y[i] = (x[i] * factor) * weight[i];
}

}  // namespace foretoken::kernels::scalar
