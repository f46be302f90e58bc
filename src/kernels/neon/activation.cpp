// SPDX-License-Identifier: Apache-2.0
#include "kernels/neon/exp.h"
#include "kernels/neon/functions.h"
#include "kernels/neon/lanes.h"

namespace foretoken::kernels::neon {
namespace {

Sixteen Gated(const Sixteen& g, const Sixteen& u) {
  Sixteen e, y;
  for (int t = 0; t < kVectors; ++t) e.v[t] = vnegq_f32(g.v[t]);
  Exp(e.v);
  for (int t = 0; t < kVectors; ++t)
    y.v[t] = vmulq_f32(vdivq_f32(g.v[t], vaddq_f32(vdupq_n_f32(1.0f), e.v[t])), u.v[t]);
  return y;
}

}  // namespace

void SiluMul(const float* g, const float* u, int n, float* y) {
  const int whole = n - n % kLanes;
  for (int i = 0; i < whole; i += kLanes) Store(Gated(Load(g + i), Load(u + i)), y + i);
  const int rest = n - whole;
  StoreFirst(Gated(LoadFirst(g + whole, rest), LoadFirst(u + whole, rest)), rest, y + whole);
}

}  // namespace foretoken::kernels::neon
