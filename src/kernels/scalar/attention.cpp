// SPDX-License-Identifier: Apache-2.0
// Attention as kernels/kernels.h defines it: one query at a time, one block after another.
#include "kernels/scalar/exp.h"
#include "kernels/scalar/functions.h"
#include "kernels/scalar/half.h"

namespace foretoken::kernels::scalar {
namespace {

constexpr int kSlots = tensor::kKvBlock;
constexpr int kGroup = tensor::kBlock;  // dimensions that share a scale
constexpr float kMinusInf = -__builtin_inff();

float Load(tensor::KvType type, const std::byte* base, int i) {
  switch (type) {
    case tensor::KvType::kF32:
      return reinterpret_cast<const float*>(base)[i];
    case tensor::KvType::kF16:
      return HalfToFloat(reinterpret_cast<const std::uint16_t*>(base)[i]);
    case tensor::KvType::kBF16:
      return BfloatToFloat(reinterpret_cast<const std::uint16_t*>(base)[i]);
    case tensor::KvType::kQ8_0:
      break;
  }
  return static_cast<float>(reinterpret_cast<const std::int8_t*>(base)[i]);
}

float LoadScale(const std::byte* block, int head_dim, int i) {
  return HalfToFloat(reinterpret_cast<const std::uint16_t*>(block + kSlots * head_dim)[i]);
}

float Dot(const AttentionArgs& args, const float* q, const std::byte* k, int j) {
  float acc = 0.0f;
  if (args.k_type != tensor::KvType::kQ8_0) {
    for (int d = 0; d < args.head_dim; ++d)
      acc = __builtin_fmaf(q[d], Load(args.k_type, k, d * kSlots + j), acc);
    return acc;
  }
  for (int begin = 0; begin < args.head_dim; begin += kGroup) {
    float t = 0.0f;
    for (int d = begin; d < begin + kGroup; ++d)
      t = __builtin_fmaf(q[d], Load(args.k_type, k, d * kSlots + j), t);
    acc = __builtin_fmaf(t, LoadScale(k, args.head_dim, begin / kGroup * kSlots + j), acc);
  }
  return acc;
}

// Dimension d of the key at position j, where keys hold the values.
float ValueInKey(const AttentionArgs& args, const std::byte* k, int j, int d) {
  const float x = Load(args.k_type, k, d * kSlots + j);
  if (args.k_type != tensor::KvType::kQ8_0) return x;
  return x * LoadScale(k, args.head_dim, d / kGroup * kSlots + j);
}

float Value(const AttentionArgs& args, const std::byte* v, int j, int d) {
  const float x = Load(args.v_type, v, j * args.head_dim + d);
  if (args.v_type != tensor::KvType::kQ8_0) return x;
  return x * LoadScale(v, args.head_dim, (j * args.head_dim + d) / kGroup);
}

int ValuesOf(const AttentionArgs& args) {
  return args.values_in_keys > 0 ? args.values_in_keys : args.head_dim;
}

struct Running {
  float max = kMinusInf, sum = 0.0f;
};

// Positions [first, end) of a block.
void AddBlock(const AttentionArgs& args, const float* q, int block, int first, int end,
              Running& state, float* acc) {
  const std::byte* k = args.k + static_cast<std::size_t>(block) * args.k_stride;
  const std::byte* v = args.v + static_cast<std::size_t>(block) * args.v_stride;
  float p[kSlots] = {};
  float max = state.max;
  for (int j = first; j < end; ++j) {
    p[j] = args.scale * Dot(args, q, k, j);
    if (args.soft_cap > 0) SoftCap(p + j, 1, args.soft_cap);
    max = p[j] > max ? p[j] : max;
  }
  float lanes[kLanes] = {};
  for (int j = first; j < end; ++j) {
    p[j] = Exp(p[j] - max);
    lanes[j % kLanes] += p[j];
  }
  const float c = Exp(state.max - max);
  state.max = max;
  state.sum = __builtin_fmaf(state.sum, c, FoldLanes(lanes));
  for (int d = 0; d < ValuesOf(args); ++d) {
    float a = acc[d] * c;
    if (args.values_in_keys > 0)
      for (int j = first; j < end; ++j) a = __builtin_fmaf(p[j], ValueInKey(args, k, j, d), a);
    else
      for (int j = first; j < end; ++j) a = __builtin_fmaf(p[j], Value(args, v, j, d), a);
    acc[d] = a;
  }
}

}  // namespace

void Attention(const AttentionArgs& args) {
  float* acc = args.scratch;
  for (int row = 0; row < args.n_rows; ++row) {
    for (int g = 0; g < args.n_group; ++g) {
      const float* q = args.q + row * args.q_stride + g * args.head_dim;
      float* out = args.out + row * args.out_stride + g * ValuesOf(args);
      Running state;
      if (args.sinks != nullptr) state = {.max = args.sinks[g], .sum = 1.0f};
      for (int d = 0; d < ValuesOf(args); ++d) acc[d] = 0.0f;
      const int length = args.row_len[row];
      const int seen = args.window > 0 && length > args.window ? length - args.window : 0;
      for (int begin = seen / kSlots * kSlots; begin < length; begin += kSlots) {
        const int first = seen - begin, left = length - begin;
        AddBlock(args, q, args.blocks[begin / kSlots], first > 0 ? first : 0,
                 left < kSlots ? left : kSlots, state, acc);
      }
      const float factor = 1.0f / state.sum;
      for (int d = 0; d < ValuesOf(args); ++d) out[d] = acc[d] * factor;
    }
  }
}

}  // namespace foretoken::kernels::scalar
