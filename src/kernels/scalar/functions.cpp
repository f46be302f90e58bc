// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar/functions.h"

#include "kernels/parts.h"

namespace foretoken::kernels::scalar {

constinit const Kernels kFunctions = {
    .quantize = Quantize,
    .rms_norm = RmsNorm,
    .rope = Rope,
    .silu_mul = SiluMul,
    .gelu_mul = GeluMul,
    .limited_swiglu = LimitedSwiglu,
    .softplus = Softplus,
    .convolve = Convolve,
    .advance_state = AdvanceState,
    .soft_cap = SoftCap,
    .hadamard = Hadamard,
    .store_k = {StoreKF32, StoreKF16, StoreKBF16, StoreKQ8_0, StoreKQ4_0},
    .store_v = {StoreVF32, StoreVF16, StoreVBF16, StoreVQ8_0, StoreVQ4_0},
    .attention = Attention,
    .bound_keys = {BoundKeys<tensor::KvType::kF32>, BoundKeys<tensor::KvType::kF16>,
                   BoundKeys<tensor::KvType::kBF16>, BoundKeys<tensor::KvType::kQ8_0>,
                   BoundKeys<tensor::KvType::kQ4_0>},
    .argmax = Argmax,
    .max = Max,
    .exp_sum = ExpSum,
    .scale = Scale,
    .finiteness = FinitenessIn,
    .sum = Sum,
    .residual = Residual,
    .entropy = Entropy,
    .find_cumulative = FindCumulative,
    .race = Race,
    .block_max = BlockMax,
    .collect_at_least = CollectAtLeast,
};

}  // namespace foretoken::kernels::scalar
