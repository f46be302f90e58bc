// SPDX-License-Identifier: Apache-2.0
// kernels/generic/functions.h: all kernels but the products of matrices, as a part of a table.
#pragma once

#include "kernels/generic/activation.h"
#include "kernels/generic/attention.h"
#include "kernels/generic/cache.h"
#include "kernels/generic/hadamard.h"
#include "kernels/generic/key_bounds.h"
#include "kernels/generic/norm.h"
#include "kernels/generic/quantize.h"
#include "kernels/generic/race.h"
#include "kernels/generic/rope.h"
#include "kernels/generic/state.h"
#include "kernels/generic/vocabulary.h"
#include "kernels/parts.h"

namespace foretoken::kernels::generic {
namespace {

template <class L>
constexpr Kernels FunctionsOf() {
  return {
      .quantize = Quantize<L>,
      .rms_norm = RmsNorm<L>,
      .rope = Rope<L>,
      .silu_mul = SiluMul<L>,
      .gelu_mul = GeluMul<L>,
      .limited_swiglu = LimitedSwiglu<L>,
      .softplus = Softplus<L>,
      .convolve = Convolve<L>,
      .advance_state = AdvanceState<L>,
      .soft_cap = SoftCap<L>,
      .hadamard = Hadamard<L>,
      .store_k = {StoreColumn<L, AsFloat>, StoreColumn<L, AsHalf>, StoreColumn<L, AsBfloat>,
                  StoreColumnQ8_0<L>, StoreColumnQ4_0<L>},
      .store_v = {StoreRow<L, AsFloat>, StoreRow<L, AsHalf>, StoreRow<L, AsBfloat>, StoreRowQ8_0<L>,
                  StoreRowQ4_0<L>},
      .attention = Attention<L>,
      .bound_keys = {BoundKeys<L, F32>, BoundKeys<L, F16>, BoundKeys<L, BF16>,
                     BoundKeys<L, QuadsOf8>, BoundKeys<L, QuadsOf4>},
      .argmax = Argmax<L>,
      .max = Max<L>,
      .exp_sum = ExpSum<L>,
      .scale = Scale<L>,
      .finiteness = FinitenessIn<L>,
      .sum = Sum<L>,
      .residual = Residual<L>,
      .entropy = Entropy<L>,
      .find_cumulative = FindCumulative<L>,
      .race = Race<L>,
      .block_max = BlockMax<L>,
      .collect_at_least = CollectAtLeast<L>,
  };
}

}  // namespace
}  // namespace foretoken::kernels::generic
