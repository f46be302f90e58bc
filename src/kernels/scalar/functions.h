// SPDX-License-Identifier: Apache-2.0
// kernels/scalar/functions.h: the functions of this folder for its table, but for the products of
// matrices, which are a part of their own (matmul.cpp). kernels/kernels.h has the contracts.
#pragma once

#include "kernels/kernels.h"

namespace foretoken::kernels::scalar {

void Quantize(const float* x, std::int64_t x_stride, int n_rows, int k, std::int8_t* xq, float* xd,
              std::int32_t* xs);
void RmsNorm(const float* x, const float* weight, int n, float eps, float* y);
void Rope(float* x, int n_heads, int head_dim, int n_rot, bool interleaved, const float* c,
          const float* s);
void SiluMul(const float* g, const float* u, int n, float* y);
void GeluMul(const float* g, const float* u, int n, float* y);
void LimitedSwiglu(const float* g, const float* u, int n, float* y);
void Softplus(const float* x, int n, float* y);
void Convolve(const ConvolutionArgs&);
void AdvanceState(const StateArgs&);
void SoftCap(float* x, int n, float cap);
void Hadamard(float* x, int n, int block, float factor);
void StoreKF32(const float* x, int head_dim, int slot, void* block);
void StoreKF16(const float* x, int head_dim, int slot, void* block);
void StoreKBF16(const float* x, int head_dim, int slot, void* block);
void StoreKQ8_0(const float* x, int head_dim, int slot, void* block);
void StoreKQ4_0(const float* x, int head_dim, int slot, void* block);
void StoreVF32(const float* x, int head_dim, int slot, void* block);
void StoreVF16(const float* x, int head_dim, int slot, void* block);
void StoreVBF16(const float* x, int head_dim, int slot, void* block);
void StoreVQ8_0(const float* x, int head_dim, int slot, void* block);
void StoreVQ4_0(const float* x, int head_dim, int slot, void* block);
void Attention(const AttentionArgs&);
template <tensor::KvType kType>  // of all types
void BoundKeys(const void* block, int head_dim, float* least, float* most);
std::int32_t Argmax(const float* x, int n);
float Max(const float* x, int n);
double ExpSum(const float* x, int n, float max, float inv_temperature, float* p);
void Scale(float* x, int n, float factor);
Finiteness FinitenessIn(const float* x, int n);
double Sum(const float* x, int n);
double Residual(const float* p, const float* q, int n, float* r);
double Entropy(const float* p, int n);
std::int32_t FindCumulative(const float* p, int n, double target);
RaceWinner Race(const float* p, int first, int n, const RaceNoise& noise);
void BlockMax(const float* x, int n, float* maxima);
int CollectAtLeast(const float* x, int n, float threshold, std::int32_t* ids, int room);

}  // namespace foretoken::kernels::scalar
