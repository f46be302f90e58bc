// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2/functions.h"

namespace foretoken::kernels {

extern const Kernels kAvx2;
const Kernels kAvx2 = {
    .isa = "avx2",
    .matmul = {avx2::MatmulF32, avx2::MatmulF16, avx2::MatmulBF16, avx2::MatmulQ8_0,
               avx2::MatmulQ4_0, avx2::MatmulQ4_1, avx2::MatmulQ5_0, avx2::MatmulQ5_1,
               avx2::MatmulQ4_K, avx2::MatmulQ5_K, avx2::MatmulQ6_K},
    .quantize = avx2::Quantize,
    .rms_norm = avx2::RmsNorm,
    .rope = avx2::Rope,
    .silu_mul = avx2::SiluMul,
    .store_k = {avx2::StoreKF32, avx2::StoreKF16, avx2::StoreKBF16, avx2::StoreKQ8_0},
    .store_v = {avx2::StoreVF32, avx2::StoreVF16, avx2::StoreVBF16, avx2::StoreVQ8_0},
    .attention = avx2::Attention,
    .argmax = avx2::Argmax,
    .max = avx2::Max,
    .exp_sum = avx2::ExpSum,
    .scale = avx2::Scale,
    .finiteness = avx2::FinitenessIn,
    .sum = avx2::Sum,
    .residual = avx2::Residual,
    .entropy = avx2::Entropy,
    .find_cumulative = avx2::FindCumulative,
    .race = avx2::Race,
    .block_max = avx2::BlockMax,
    .collect_at_least = avx2::CollectAtLeast,
};

}  // namespace foretoken::kernels
