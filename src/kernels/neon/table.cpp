// SPDX-License-Identifier: Apache-2.0
#include "kernels/neon/functions.h"

namespace foretoken::kernels {

extern const Kernels kNeon;
const Kernels kNeon = {
    .isa = "neon",
    .matmul = {neon::MatmulF32, neon::MatmulF16, neon::MatmulBF16, neon::MatmulQ8_0,
               neon::MatmulQ4_0, neon::MatmulQ4_1, neon::MatmulQ5_0, neon::MatmulQ5_1,
               neon::MatmulQ4_K, neon::MatmulQ5_K, neon::MatmulQ6_K},
    .quantize = neon::Quantize,
    .rms_norm = neon::RmsNorm,
    .rope = neon::Rope,
    .silu_mul = neon::SiluMul,
    .store_k = {neon::StoreKF32, neon::StoreKF16, neon::StoreKBF16, neon::StoreKQ8_0},
    .store_v = {neon::StoreVF32, neon::StoreVF16, neon::StoreVBF16, neon::StoreVQ8_0},
    .attention = neon::Attention,
    .argmax = neon::Argmax,
    .max = neon::Max,
    .exp_sum = neon::ExpSum,
    .scale = neon::Scale,
    .finiteness = neon::FinitenessIn,
    .sum = neon::Sum,
    .residual = neon::Residual,
    .entropy = neon::Entropy,
    .find_cumulative = neon::FindCumulative,
    .race = neon::Race,
    .block_max = neon::BlockMax,
    .collect_at_least = neon::CollectAtLeast,
};

}  // namespace foretoken::kernels
