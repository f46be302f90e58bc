// SPDX-License-Identifier: Apache-2.0
// Attention as kernels/kernels.h defines it: one query at a time, one block after another.
#include "kernels/generic/seen_blocks.h"
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
    case tensor::KvType::kQ4_0:
      break;  // in integers
  }
  return 0.0f;
}

bool HasIntegerKeys(const AttentionArgs& args) {
  return tensor::HasScales(args.k_type);
}
// Whether weights become integers too.
bool HasIntegerValues(const AttentionArgs& args) {
  return args.values_in_keys == 0 && tensor::HasScales(args.v_type);
}

// How much larger the integers of a type are than its numbers.
int UnitsOf(tensor::KvType type) {
  return type == tensor::KvType::kQ4_0 ? 16 : 1;
}

// The scale of 32 dimensions at a position.
float LoadScale(tensor::KvType type, const std::byte* block, int head_dim, int group, int j) {
  const int bytes = kSlots * head_dim / (type == tensor::KvType::kQ4_0 ? 2 : 1);
  return HalfToFloat(reinterpret_cast<const std::uint16_t*>(block + bytes)[group * kSlots + j]);
}

// Half a byte, as an integer.
int Four(const std::byte* block, int at, bool upper) {
  const int byte = reinterpret_cast<const std::uint8_t*>(block)[at];
  return 16 * ((upper ? byte >> 4 : byte & 15) - 8);
}
int KeyInteger(tensor::KvType type, const std::byte* k, int j, int d) {
  if (type == tensor::KvType::kQ4_0) return Four(k, (d / 8 * kSlots + j) * 4 + d % 4, d % 8 >= 4);
  return reinterpret_cast<const std::int8_t*>(k)[(d / 4 * kSlots + j) * 4 + d % 4];
}
int ValueInteger(tensor::KvType type, const std::byte* v, int head_dim, int j, int d) {
  if (type == tensor::KvType::kQ4_0) return Four(v, (j / 8 * head_dim + d) * 4 + j % 4, j % 8 >= 4);
  return reinterpret_cast<const std::int8_t*>(v)[(j / 4 * head_dim + d) * 4 + j % 4];
}

// A query in integers, behind the accumulators in the scratch buffer.
struct IntegerQuery {
  std::int8_t* q;      // [head_dim]
  std::int32_t* sums;  // [head_dim / 32, 2]
  float* scale;        // [head_dim / 32]

  explicit IntegerQuery(const AttentionArgs& args)
      : q(reinterpret_cast<std::int8_t*>(args.scratch + args.head_dim)),
        sums(reinterpret_cast<std::int32_t*>(q + args.head_dim)),
        scale(reinterpret_cast<float*>(sums + args.head_dim / kGroup * 2)) {}

  void Set(const AttentionArgs& args, const float* x) const {
    Quantize(x, args.head_dim, 1, args.head_dim, q, scale, sums);
    const float factor = args.scale / static_cast<float>(UnitsOf(args.k_type));
    for (int g = 0; g < args.head_dim / kGroup; ++g) scale[g] *= factor;
  }
};

float Score(const AttentionArgs& args, const float* q, const std::byte* k, int j) {
  float acc = 0.0f;
  if (!HasIntegerKeys(args)) {
    for (int d = 0; d < args.head_dim; ++d)
      acc = __builtin_fmaf(q[d], Load(args.k_type, k, d * kSlots + j), acc);
    return args.scale * acc;
  }
  const IntegerQuery query(args);
  for (int g = 0; g < args.head_dim / kGroup; ++g) {
    std::int32_t sum = 0;
    for (int d = g * kGroup; d < (g + 1) * kGroup; ++d)
      sum += query.q[d] * KeyInteger(args.k_type, k, j, d);
    acc = __builtin_fmaf(static_cast<float>(sum),
                         query.scale[g] * LoadScale(args.k_type, k, args.head_dim, g, j), acc);
  }
  return acc;
}

// Dimension d of the key at position j.
float KeyAt(tensor::KvType type, const std::byte* k, int head_dim, int j, int d) {
  if (!tensor::HasScales(type)) return Load(type, k, d * kSlots + j);
  return static_cast<float>(KeyInteger(type, k, j, d) / UnitsOf(type)) *
         LoadScale(type, k, head_dim, d / kGroup, j);
}

int ValuesOf(const AttentionArgs& args) {
  return args.values_in_keys > 0 ? args.values_in_keys : args.head_dim;
}

struct Running {
  float max = kMinusInf, sum = 0.0f;
};

// 32 positions of a block, of which a row sees [first, end).
struct Block {
  const std::byte *k, *v;
  int first, end;
};

// acc = acc * c + the values weighted by p, in floats.
void AddValues(const AttentionArgs& args, const Block& block, const float* p, float c, float* acc) {
  for (int d = 0; d < ValuesOf(args); ++d) {
    float a = acc[d] * c;
    for (int j = block.first; j < block.end; ++j) {
      const float value = args.values_in_keys > 0
                              ? KeyAt(args.k_type, block.k, args.head_dim, j, d)
                              : Load(args.v_type, block.v, j * args.head_dim + d);
      a = __builtin_fmaf(p[j], value, a);
    }
    acc[d] = a;
  }
}

// The largest scale of 32 dimensions among the positions that are seen. NaN is the largest.
float LargestScale(const AttentionArgs& args, const Block& block, int group) {
  std::uint32_t largest = 0;
  for (int j = block.first; j < block.end; ++j) {
    const std::uint32_t bits =
        Bits(LoadScale(args.v_type, block.v, args.head_dim, group, j)) & 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  return FromBits(largest);
}

// acc = acc * c + share * the values weighted by p, in integers.
void AddIntegerValues(const AttentionArgs& args, const Block& block, const float* p, float c,
                      float share, float* acc) {
  for (int g = 0; g < args.head_dim / kGroup; ++g) {
    const float largest = LargestScale(args, block, g);
    const float inverse = largest > 0.0f ? 127.0f / largest : 0.0f;
    const float unit = share * (largest / (127.0f * static_cast<float>(UnitsOf(args.v_type))));
    std::int8_t weight[kSlots] = {};
    for (int j = block.first; j < block.end; ++j) {
      const float x = p[j] * (LoadScale(args.v_type, block.v, args.head_dim, g, j) * inverse);
      // Adding 1.5 * 2^23 rounds to an even integer, which the low bits then hold.
      weight[j] = static_cast<std::int8_t>(Bits(x + 12582912.0f) & 0xff);
    }
    for (int d = g * kGroup; d < (g + 1) * kGroup; ++d) {
      std::int32_t sum = 0;
      for (int j = block.first; j < block.end; ++j)
        sum += weight[j] * ValueInteger(args.v_type, block.v, args.head_dim, j, d);
      acc[d] = __builtin_fmaf(static_cast<float>(sum), unit, acc[d] * c);
    }
  }
}

void AddBlock(const AttentionArgs& args, const float* q, const Block& block, Running& state,
              float* acc) {
  const bool integers = HasIntegerValues(args);
  float p[kSlots] = {};
  float largest = kMinusInf;
  for (int j = block.first; j < block.end; ++j) {
    p[j] = Score(args, q, block.k, j);
    if (args.soft_cap > 0) SoftCap(p + j, 1, args.soft_cap);
    largest = p[j] > largest ? p[j] : largest;
  }
  const float max = largest > state.max ? largest : state.max;
  float lanes[kLanes] = {};
  for (int j = block.first; j < block.end; ++j) {
    p[j] = integers ? RoughExp(p[j] - largest) : Exp(p[j] - max);
    lanes[j % kLanes] += p[j];
  }
  const float c = Exp(state.max - max), share = integers ? Exp(largest - max) : 1.0f;
  state.max = max;
  state.sum = __builtin_fmaf(state.sum, c, share * FoldLanes(lanes));
  if (integers)
    AddIntegerValues(args, block, p, c, share, acc);
  else
    AddValues(args, block, p, c, acc);
}

}  // namespace

void Attention(const AttentionArgs& args) {
  float* acc = args.scratch;
  for (int row = 0; row < args.n_rows; ++row) {
    for (int g = 0; g < args.n_group; ++g) {
      const float* q = args.q + row * args.q_stride + g * args.head_dim;
      float* out = args.out + row * args.out_stride + g * ValuesOf(args);
      if (HasIntegerKeys(args)) IntegerQuery(args).Set(args, q);
      Running state;
      if (args.sinks != nullptr) state = {.max = args.sinks[g], .sum = 1.0f};
      for (int d = 0; d < ValuesOf(args); ++d) acc[d] = 0.0f;
      const int length = SeenLength(args, row);
      const int seen = args.window > 0 && length > args.window ? length - args.window : 0;
      for (int begin = seen / kSlots * kSlots; begin < length; begin += kSlots) {
        const int first = seen - begin, left = length - begin;
        const auto id = static_cast<std::size_t>(SeenBlock(args, begin / kSlots));
        AddBlock(args, q,
                 {.k = args.k + id * args.k_stride,
                  .v = args.v + id * args.v_stride,
                  .first = first > 0 ? first : 0,
                  .end = left < kSlots ? left : kSlots},
                 state, acc);
      }
      const float factor = 1.0f / state.sum;
      for (int d = 0; d < ValuesOf(args); ++d) out[d] = acc[d] * factor;
    }
  }
}

template <tensor::KvType kType>
void BoundKeys(const void* block, int head_dim, float* least, float* most) {
  const auto* const k = static_cast<const std::byte*>(block);
  for (int d = 0; d < head_dim; ++d) {
    float low = -kMinusInf, high = kMinusInf;
    for (int j = 0; j < kSlots; ++j) {
      const float x = KeyAt(kType, k, head_dim, j, d);
      low = x < low ? x : low, high = x > high ? x : high;
    }
    least[d] = low + 0.0f, most[d] = high + 0.0f;
  }
}
template void BoundKeys<tensor::KvType::kF32>(const void*, int, float*, float*);
template void BoundKeys<tensor::KvType::kF16>(const void*, int, float*, float*);
template void BoundKeys<tensor::KvType::kBF16>(const void*, int, float*, float*);
template void BoundKeys<tensor::KvType::kQ8_0>(const void*, int, float*, float*);
template void BoundKeys<tensor::KvType::kQ4_0>(const void*, int, float*, float*);

}  // namespace foretoken::kernels::scalar
