// SPDX-License-Identifier: Apache-2.0
// kernels/generic/key_bounds.h: bound_keys of kernels/kernels.h.
#pragma once

#include "kernels/generic/key_values.h"

namespace foretoken::kernels::generic {
namespace {

template <class L, class K>
void BoundKeys(const void* block, int head_dim, float* least, float* most) {
  using F = typename L::F;
  for (int d = 0; d < head_dim; ++d) {
    float x[kSlots];
    LoadDimension<L, K>(static_cast<const std::byte*>(block), head_dim, d, x);
    F high = L::Load(x), low = -high;
#pragma GCC unroll 8
    for (int j = L::kWidth; j < kSlots; j += L::kWidth) {
      const F next = L::Load(x + j);
      high = LargerOr<L>(next, high), low = LargerOr<L>(-next, low);
    }
    most[d] = L::FoldMax(high) + 0.0f, least[d] = 0.0f - L::FoldMax(low);
  }
}

}  // namespace
}  // namespace foretoken::kernels::generic
