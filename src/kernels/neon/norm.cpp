// SPDX-License-Identifier: Apache-2.0
#include "kernels/neon/functions.h"
#include "kernels/neon/lanes.h"

namespace foretoken::kernels::neon {
namespace {

void AddSquares(const Sixteen& x, Sixteen& lanes) {
  for (int t = 0; t < kVectors; ++t) lanes.v[t] = vfmaq_f32(lanes.v[t], x.v[t], x.v[t]);
}

Sixteen Scaled(const Sixteen& x, float factor, const Sixteen& weight) {
  Sixteen y;
  for (int t = 0; t < kVectors; ++t) y.v[t] = vmulq_f32(vmulq_n_f32(x.v[t], factor), weight.v[t]);
  return y;
}

}  // namespace

void RmsNorm(const float* x, const float* weight, int n, float eps, float* y) {
  const int whole = n - n % kLanes, rest = n - whole;
  Sixteen lanes = {{vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)}};
  for (int i = 0; i < whole; i += kLanes) AddSquares(Load(x + i), lanes);
  const Sixteen last = LoadFirst(x + whole, rest);
  AddSquares(last, lanes);  // zeros leave a lane as it is
  const float factor = 1.0f / __builtin_sqrtf(FoldSum(lanes) / static_cast<float>(n) + eps);

  for (int i = 0; i < whole; i += kLanes)
    Store(Scaled(Load(x + i), factor, Load(weight + i)), y + i);
  StoreFirst(Scaled(last, factor, LoadFirst(weight + whole, rest)), rest, y + whole);
}

}  // namespace foretoken::kernels::neon
