// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/scalar/functions.h"

namespace foretoken::kernels::scalar {
namespace {

using tensor::kBlock;

void QuantizeBlock(const float* x, std::int8_t* q, float* d, std::int32_t* sums) {
  float amax = 0;
  for (int i = 0; i < kBlock; ++i)  // once it is NaN it stays so
    amax = std::fabs(x[i]) <= amax ? amax : amax != amax ? amax : std::fabs(x[i]);
  if (amax < 0x1p-100f) amax = 0;
  *d = amax / 127.0f;
  const float id = amax > 0 ? 127.0f / amax : 0.0f;
  sums[0] = sums[1] = 0;
  for (int i = 0; i < kBlock; ++i) {
    q[i] = static_cast<std::int8_t>(std::lrint(x[i] * id));
    if (i < kBlock / 2) sums[0] += q[i];
    sums[1] += q[i];
  }
}

}  // namespace

void Quantize(const float* x, std::int64_t x_stride, int n_rows, int k, std::int8_t* xq, float* xd,
              std::int32_t* xs) {
  for (int row = 0; row < n_rows; ++row) {
    for (int i = 0; i < k; i += kBlock) {
      QuantizeBlock(x + row * x_stride + i, xq, xd++, xs);
      xq += kBlock;
      xs += 2;
    }
  }
}

}  // namespace foretoken::kernels::scalar
