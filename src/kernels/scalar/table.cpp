// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar/functions.h"

namespace foretoken::kernels {

extern const Kernels kScalar;
const Kernels kScalar = {
    .isa = "scalar",
    .matmul = {scalar::MatmulF32, scalar::MatmulF16, scalar::MatmulBF16, scalar::MatmulQ8_0,
               scalar::MatmulQ4_0, scalar::MatmulQ4_1, scalar::MatmulQ5_0, scalar::MatmulQ5_1,
               scalar::MatmulQ4_K, scalar::MatmulQ5_K, scalar::MatmulQ6_K},
    .quantize = scalar::Quantize,
    .rms_norm = scalar::RmsNorm,
    .rope = scalar::Rope,
    .silu_mul = scalar::SiluMul,
    .store_k = {scalar::StoreKF32, scalar::StoreKF16, scalar::StoreKBF16, scalar::StoreKQ8_0},
    .store_v = {scalar::StoreVF32, scalar::StoreVF16, scalar::StoreVBF16, scalar::StoreVQ8_0},
    .attention = scalar::Attention,
    .argmax = scalar::Argmax,
    .max = scalar::Max,
    .exp_sum = scalar::ExpSum,
    .scale = scalar::Scale,
    .finiteness = scalar::FinitenessIn,
    .sum = scalar::Sum,
    .residual = scalar::Residual,
    .entropy = scalar::Entropy,
    .find_cumulative = scalar::FindCumulative,
    .race = scalar::Race,
    .block_max = scalar::BlockMax,
    .collect_at_least = scalar::CollectAtLeast,
};

}  // namespace foretoken::kernels
