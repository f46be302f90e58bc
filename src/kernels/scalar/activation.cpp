// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar/exp.h"
#include "kernels/scalar/functions.h"

namespace foretoken::kernels::scalar {

void SiluMul(const float* g, const float* u, int n, float* y) {
  for (int i = 0; i < n; ++i) y[i] = (g[i] / (1.0f + Exp(-g[i]))) * u[i];
}

}  // namespace foretoken::kernels::scalar
