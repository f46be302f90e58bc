// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar/exp.h"
#include "kernels/scalar/functions.h"

namespace foretoken::kernels::scalar {

void SiluMul(const float* g, const float* u, int n, float* y) {
  for (int i = 0; i < n; ++i) y[i] = (g[i] / (1.0f + Exp(-g[i]))) * u[i];
}

void GeluMul(const float* g, const float* u, int n, float* y) {
  for (int i = 0; i < n; ++i) {
    const float t = (g[i] * 1.5957691216f) * __builtin_fmaf(g[i] * g[i], 0.044715f, 1.0f);
    y[i] = (g[i] / (1.0f + Exp(-t))) * u[i];
  }
}

void LimitedSwiglu(const float* g, const float* u, int n, float* y) {
  for (int i = 0; i < n; ++i) {
    const float a = g[i] > 7.0f ? 7.0f : g[i];
    const float b = u[i] > 7.0f ? 7.0f : u[i] < -7.0f ? -7.0f : u[i];
    y[i] = (a / (1.0f + Exp(a * -1.702f))) * (b + 1.0f);
  }
}

void SoftCap(float* x, int n, float cap) {
  const float factor = 2.0f / cap;
  for (int i = 0; i < n; ++i) x[i] = cap * (1.0f - 2.0f / (Exp(x[i] * factor) + 1.0f));
}

}  // namespace foretoken::kernels::scalar
