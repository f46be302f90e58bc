// SPDX-License-Identifier: Apache-2.0
#include "kernels/amx/rows.h"

namespace foretoken::kernels::avx512 {}

namespace foretoken::kernels::amx {
namespace {

// Shapes of the tile registers, as LDTILECFG reads them.
struct alignas(64) Configuration {
  std::uint8_t palette, start_row, reserved[14];
  std::uint16_t row_bytes[16];
  std::uint8_t rows[16];
};
static_assert(sizeof(Configuration) == 64);

// The unit of the processor. Register numbers are part of the instructions, hence the literals.
struct Processor {
  static void Configure(int rows) {
    Configuration c = {};
    c.palette = 1;
    for (int i = 0; i < 8; ++i) {
      c.row_bytes[i] = static_cast<std::uint16_t>(i == 4 || i == 5 ? kBlock : 64);
      c.rows[i] = static_cast<std::uint8_t>(i < 6 ? rows : kBlock / 4);
    }
    _tile_loadconfig(&c);
  }
  static void Release() { _tile_release(); }

  template <int i>
  static FORETOKEN_INLINE void Zero() {
    if constexpr (i == 0) _tile_zero(0);
    if constexpr (i == 1) _tile_zero(1);
    if constexpr (i == 2) _tile_zero(2);
    if constexpr (i == 3) _tile_zero(3);
  }
  template <int i>
  static FORETOKEN_INLINE void Load(const void* p, std::ptrdiff_t stride) {
    // The compiler's header does not say that the instruction reads memory.
    asm volatile("" : : "r"(p) : "memory");
    if constexpr (i == 4) _tile_loadd(4, p, stride);
    if constexpr (i == 5) _tile_loadd(5, p, stride);
    if constexpr (i == 6) _tile_loadd(6, p, stride);
    if constexpr (i == 7) _tile_loadd(7, p, stride);
  }
  template <int c, int a, int b>
  static FORETOKEN_INLINE void Dot() {
    static_assert(a == 4 + c % 2 && b == 6 + c % 2);
    if constexpr (c == 0) _tile_dpbssd(0, 4, 6);
    if constexpr (c == 1) _tile_dpbssd(1, 5, 7);
    if constexpr (c == 2) _tile_dpbssd(2, 4, 6);
    if constexpr (c == 3) _tile_dpbssd(3, 5, 7);
  }
  template <int i>
  static FORETOKEN_INLINE void Store(std::int32_t (*p)[16]) {
    if constexpr (i == 0) _tile_stored(0, p, 64);
    if constexpr (i == 1) _tile_stored(1, p, 64);
    if constexpr (i == 2) _tile_stored(2, p, 64);
    if constexpr (i == 3) _tile_stored(3, p, 64);
  }
};

// From this many rows on, the unit costs less than AVX-512. Which of them serves changes no bit.
// The conversion and the products that follow each sum cost as much as the sum itself, so the unit
// gains little, and nothing where minima or two scales a run follow: Q4_1, Q4_K and Q6_K stay with
// AVX-512. Time over AVX-512's, 2 cores of a Xeon (Sapphire Rapids), weights from memory:
//          8 rows  16 rows  32 rows  128 rows
//   Q8_0     1.13     1.02     0.98      0.91
//   Q4_0     1.16     0.94     0.90      0.82
//   Q5_0     1.18     0.90     0.88      0.81
//   Q4_K     1.23     1.05     1.03      1.02
//   Q6_K     1.29     1.20     1.19      1.22
constexpr int kWide = 32;

template <class Type>
struct WideProduct {
  static void Run(const MatmulArgs& a) {
    if (a.n_rows < kWide) return avx512::kMatmul.matmul[static_cast<int>(Type::kType)](a);
    UnitProduct<Processor, Type>::Run(a);
  }
};

constexpr Kernels Products() {
  Kernels table = {};
  generic::SetProducts<WideProduct>(UnitTypes(), table);
  return table;
}

}  // namespace

constinit const Kernels kMatmul = Products();

}  // namespace foretoken::kernels::amx
