// SPDX-License-Identifier: Apache-2.0
// kernels/generic/cache.h: store_k and store_v of kernels/kernels.h. head_dim is a multiple of 8.
//
// What L offers for it:
//   StoreHalves(x, p)     F as f16, to p;  StoreLow16(u, p): the low 16 bits of each lane of U
//   ToHalf(x), FromHalf   one number to f16 and back
#pragma once

#include "kernels/generic/quantize.h"

namespace foretoken::kernels::generic {
namespace {

constexpr int kSlots = tensor::kKvBlock;
constexpr int kGroup = tensor::kBlock;  // dimensions that share a scale

struct AsFloat {
  using Stored = float;
  template <class L>
  static FORETOKEN_INLINE void Store(typename L::F x, float* to) {
    L::Store(x, to);
  }
};

struct AsHalf {
  using Stored = std::uint16_t;
  template <class L>
  static FORETOKEN_INLINE void Store(typename L::F x, std::uint16_t* to) {
    L::StoreHalves(x, to);
  }
};

struct AsBfloat {
  using Stored = std::uint16_t;
  template <class L>
  static FORETOKEN_INLINE void Store(typename L::F x, std::uint16_t* to) {
    using F = typename L::F;
    using U = typename L::U;
    const U bits = __builtin_bit_cast(U, x);
    const U high = bits >> 16;
    const U rounded = (bits + ((high & 1u) + 0x7fffu)) >> 16;
    const F quiet = __builtin_bit_cast(F, high | 0x40u);  // NaN stays NaN
    const F chosen = L::Select(L::Equal(x, x), __builtin_bit_cast(F, rounded), quiet);
    L::StoreLow16(__builtin_bit_cast(U, chosen), to);
  }
};

template <class L, class Type>
void StoreColumn(const float* x, int head_dim, int slot, void* block) {
  using Stored = typename Type::Stored;
  Stored* column = static_cast<Stored*>(block) + slot;
  for (int d = 0; d < head_dim; d += L::kWidth) {
    Stored converted[L::kWidth];
    Type::template Store<L>(L::LoadFirst(x + d, head_dim - d), converted);
    const int n = head_dim - d < L::kWidth ? head_dim - d : L::kWidth;
    for (int i = 0; i < n; ++i) column[(d + i) * kSlots] = converted[i];
  }
}

template <class L, class Type>
void StoreRow(const float* x, int head_dim, int slot, void* block) {
  using Stored = typename Type::Stored;
  Stored* row = static_cast<Stored*>(block) + slot * head_dim;
  int d = 0;
  for (; d + L::kWidth <= head_dim; d += L::kWidth)
    Type::template Store<L>(L::Load(x + d), row + d);
  if (d == head_dim) return;
  Stored last[L::kWidth];
  Type::template Store<L>(L::LoadFirst(x + d, head_dim - d), last);
  for (int i = 0; d + i < head_dim; ++i) row[d + i] = last[i];
}

// x between -127 and 127.
template <class L>
FORETOKEN_INLINE typename L::I InBytes(typename L::I x) {
  const typename L::I above = x < -127 ? typename L::I{} - 127 : x;
  return above > 127 ? typename L::I{} + 127 : above;
}

// Quantises 32 values to q and returns their scale.
template <class L>
FORETOKEN_INLINE std::uint16_t QuantizeGroup(const float* x, std::int8_t* q) {
  const std::uint16_t scale = L::ToHalf(LargestMagnitude<L>(x) / 127.0f);
  const float d = L::FromHalf(scale);
  typename L::I v[kBlockRegisters<L>];
#pragma GCC unroll 8
  for (int t = 0; t < kBlockRegisters<L>; ++t) {
    const typename L::F ratio = L::Load(x + t * L::kWidth) / L::All(d);
    v[t] = d == 0.0f ? typename L::I{} : InBytes<L>(L::Nearest(ratio));
  }
  L::StoreBytes(L::Pack(v), q);
  return scale;
}

// Rounds to numbers from -8 to 7, as 0 to 15. NaN is the largest, as above.
template <class L>
FORETOKEN_INLINE std::uint16_t QuantizeFours(const float* x, std::int8_t* q) {
  using I = typename L::I;
  I above = {}, below = {};  // the bits of the largest x, and of the largest -x
#pragma GCC unroll 8
  for (int t = 0; t < kBlockRegisters<L>; ++t) {
    const I bits = __builtin_bit_cast(I, L::Load(x + t * L::kWidth)), negated = bits ^ INT32_MIN;
    above = bits > above ? bits : above;
    below = negated > below ? negated : below;
  }
  const auto part = [](I largest, float of) {
    return __builtin_bit_cast(std::int32_t, __builtin_bit_cast(float, L::LargestOf(largest)) / of);
  };
  const std::int32_t of_above = part(above, 7.25f), of_below = part(below, 8.25f);
  const std::uint16_t scale =
      L::ToHalf(__builtin_bit_cast(float, of_above > of_below ? of_above : of_below));
  const float d = L::FromHalf(scale);
  I v[kBlockRegisters<L>];
#pragma GCC unroll 8
  for (int t = 0; t < kBlockRegisters<L>; ++t) {
    const I rounded = L::Nearest(L::Load(x + t * L::kWidth) / L::All(d));
    const I above_least = rounded < -8 ? I{} - 8 : rounded;
    v[t] = d == 0.0f ? I{} + 8 : (above_least > 7 ? I{} + 7 : above_least) + 8;
  }
  L::StoreBytes(L::Pack(v), q);
  return scale;
}

// The scales of a block whose numbers take so many bytes.
inline std::uint16_t* ScalesOf(void* block, int bytes) {
  return reinterpret_cast<std::uint16_t*>(static_cast<std::int8_t*>(block) + bytes);
}

template <class L>
void StoreColumnQ8_0(const float* x, int head_dim, int slot, void* block) {
  std::int8_t* const column = static_cast<std::int8_t*>(block) + slot * 4;
  std::uint16_t* scales = ScalesOf(block, kSlots * head_dim) + slot;
  for (int d = 0; d < head_dim; d += kGroup) {
    std::int8_t q[kGroup];
    scales[d / kGroup * kSlots] = QuantizeGroup<L>(x + d, q);
    for (int i = 0; i < kGroup; i += 4) __builtin_memcpy(column + (d + i) * kSlots, q + i, 4);
  }
}

template <class L>
void StoreRowQ8_0(const float* x, int head_dim, int slot, void* block) {
  std::int8_t* const row = static_cast<std::int8_t*>(block) + slot / 4 * head_dim * 4 + slot % 4;
  std::uint16_t* scales = ScalesOf(block, kSlots * head_dim) + slot;
  for (int d = 0; d < head_dim; d += kGroup) {
    std::int8_t q[kGroup];
    scales[d / kGroup * kSlots] = QuantizeGroup<L>(x + d, q);
    for (int i = 0; i < kGroup; ++i) row[(d + i) * 4] = q[i];
  }
}

template <class L>
void StoreColumnQ4_0(const float* x, int head_dim, int slot, void* block) {
  std::int8_t* const column = static_cast<std::int8_t*>(block) + slot * 4;
  std::uint16_t* scales = ScalesOf(block, kSlots * head_dim / 2) + slot;
  for (int d = 0; d < head_dim; d += kGroup) {
    std::int8_t q[kGroup];
    scales[d / kGroup * kSlots] = QuantizeFours<L>(x + d, q);
    for (int i = 0; i < kGroup; i += 8) {
      std::uint32_t lower, upper;
      __builtin_memcpy(&lower, q + i, 4);
      __builtin_memcpy(&upper, q + i + 4, 4);
      lower |= upper << 4;
      __builtin_memcpy(column + (d + i) / 2 * kSlots, &lower, 4);
    }
  }
}

template <class L>
void StoreRowQ4_0(const float* x, int head_dim, int slot, void* block) {
  std::uint8_t* const row = static_cast<std::uint8_t*>(block) + slot / 8 * head_dim * 4 + slot % 4;
  const int shift = slot % 8 / 4 * 4, kept = 0xf0 >> shift;  // the other position's half
  std::uint16_t* scales = ScalesOf(block, kSlots * head_dim / 2) + slot;
  for (int d = 0; d < head_dim; d += kGroup) {
    std::int8_t q[kGroup];
    scales[d / kGroup * kSlots] = QuantizeFours<L>(x + d, q);
    for (int i = 0; i < kGroup; ++i) {
      std::uint8_t& both = row[(d + i) * 4];
      both = static_cast<std::uint8_t>((both & kept) | q[i] << shift);
    }
  }
}

}  // namespace
}  // namespace foretoken::kernels::generic
