// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512/functions.h"

namespace foretoken::kernels {

extern const Kernels kAvx512;
const Kernels kAvx512 = {
    .isa = "avx512",
    .matmul = {avx512::MatmulF32, avx512::MatmulF16, avx512::MatmulBF16, avx512::MatmulQ8_0,
               avx512::MatmulQ4_0, avx512::MatmulQ4_1, avx512::MatmulQ5_0, avx512::MatmulQ5_1,
               avx512::MatmulQ4_K, avx512::MatmulQ5_K, avx512::MatmulQ6_K},
    .quantize = avx512::Quantize,
    .rms_norm = avx512::RmsNorm,
    .rope = avx512::Rope,
    .silu_mul = avx512::SiluMul,
    .store_k = {avx512::StoreKF32, avx512::StoreKF16, avx512::StoreKBF16, avx512::StoreKQ8_0},
    .store_v = {avx512::StoreVF32, avx512::StoreVF16, avx512::StoreVBF16, avx512::StoreVQ8_0},
    .attention = avx512::Attention,
    .argmax = avx512::Argmax,
    .max = avx512::Max,
    .exp_sum = avx512::ExpSum,
    .scale = avx512::Scale,
    .finiteness = avx512::FinitenessIn,
    .sum = avx512::Sum,
    .residual = avx512::Residual,
    .entropy = avx512::Entropy,
    .find_cumulative = avx512::FindCumulative,
    .race = avx512::Race,
    .block_max = avx512::BlockMax,
    .collect_at_least = avx512::CollectAtLeast,
};

}  // namespace foretoken::kernels
