// SPDX-License-Identifier: Apache-2.0
// kernels/generic/stored.h: the number types of floats in memory, as matrix products and attention
// read them: n registers of f32 from an address that has no alignment of its own.
//
// What L offers for it: LoadHalves(p), LoadBfloats(p): kWidth numbers of 16 bits to F.
#pragma once

#include "kernels/generic/lanes.h"

namespace foretoken::kernels::generic {
namespace {

template <class StoredType>
struct StoredAs {
  using Stored = StoredType;
  static constexpr int kBytes = sizeof(Stored);
};

struct F32 : StoredAs<float> {
  static constexpr tensor::TileType kType = tensor::TileType::kF32;
  template <class L, int n>
  static FORETOKEN_INLINE void Load(const void* p, typename L::F (&x)[n]) {
#pragma GCC unroll 16
    for (int t = 0; t < n; ++t) x[t] = L::Load(static_cast<const float*>(p) + t * L::kWidth);
  }
};

struct F16 : StoredAs<std::uint16_t> {
  static constexpr tensor::TileType kType = tensor::TileType::kF16;
  template <class L, int n>
  static FORETOKEN_INLINE void Load(const void* p, typename L::F (&x)[n]) {
#pragma GCC unroll 16
    for (int t = 0; t < n; ++t)
      x[t] = L::LoadHalves(static_cast<const std::uint16_t*>(p) + t * L::kWidth);
  }
};

struct BF16 : StoredAs<std::uint16_t> {
  static constexpr tensor::TileType kType = tensor::TileType::kBF16;
  template <class L, int n>
  static FORETOKEN_INLINE void Load(const void* p, typename L::F (&x)[n]) {
#pragma GCC unroll 16
    for (int t = 0; t < n; ++t)
      x[t] = L::LoadBfloats(static_cast<const std::uint16_t*>(p) + t * L::kWidth);
  }
};

}  // namespace
}  // namespace foretoken::kernels::generic
