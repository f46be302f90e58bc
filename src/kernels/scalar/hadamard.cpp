// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar/functions.h"

namespace foretoken::kernels::scalar {

void Hadamard(float* x, int n, int block, float factor) {
  for (float* end = x + n; x != end; x += block) {
    for (int h = 1; h < block; h *= 2)
      for (int i = 0; i < block; ++i) {
        if ((i & h) != 0) continue;
        const float a = x[i], b = x[i + h];
        x[i] = a + b;
        x[i + h] = a - b;
      }
    for (int i = 0; i < block; ++i) x[i] *= factor;
  }
}

}  // namespace foretoken::kernels::scalar
