// SPDX-License-Identifier: Apache-2.0
// kernels/amx/rows.h: quantised products by a unit of tile registers: that of the processor, or an
// emulated one that lets any machine with AVX-512 test this code.
//
// A register holds 16 rows of 64 bytes. For a run of 32 k the unit computes C = A . B:
//   A  [R rows][32 k]                   signed activations
//   B  [8 words of 4 k][16 outputs][4]  signed weights, without the offset that tiles add to them
//   C  [R rows][16 outputs] int32       exact, so it does not matter who computes it
// Four runs are under way at a time, in C 0 to 3. The conversion and the fma that follow are those
// of AVX-512, in the same order, so the bits are the same. This serves types with one scale a run,
// hence not Q6_K.
//
// A Unit has static functions Configure(rows), Release(), Load<register>(p, stride),
// Zero<register>(), Dot<c, a, b>() and Store<register>(p). Registers 0-3 are C, 4-5 A, 6-7 B.
#pragma once

#include "kernels/avx512/weights.h"
#include "kernels/generic/matmul.h"

namespace foretoken::kernels::amx {
namespace {

using avx512::Lanes;
using generic::kBlock;
using generic::kPackRuns;

constexpr int kRows = 16;
constexpr int kGroup = 4;

// A run of the rows: what the unit reads, and what follows it.
template <class Type>
struct alignas(64) PackedRun {
  std::int8_t q[kRows][kBlock];
  float d[kRows];
  float xs[Type::kMinima > 0 ? kRows : 1];
};

template <class Type>
void Pack(const MatmulArgs& a, int row, int n_rows, int run, int n, PackedRun<Type>* out) {
  const std::int64_t n_runs = a.k / kBlock;
  for (int r = 0; r < n_rows; ++r) {
    const std::int64_t first = generic::InputRow(a, row + r) * n_runs + run;
    for (int b = 0; b < n; ++b) {
      PackedRun<Type>& to = out[b];
      __builtin_memcpy(to.q[r], a.xq + (first + b) * kBlock, kBlock);
      to.d[r] = a.xd[first + b];
      if constexpr (Type::kMinima > 0)
        to.xs[r] = to.d[r] * static_cast<float>(a.xs[2 * (first + b) + 1]);
    }
  }
}

// The signed weights of a run as the unit reads them. Tiles hold them with an offset. Taking it off
// eight registers costs less than taking its product off the sums of up to 16 rows.
template <class Type>
FORETOKEN_INLINE void Spread(const typename Type::Tile& w, int run, std::int8_t* to) {
  __m512i q[8];
  avx512::Weights<Type>(w, run, q);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    if constexpr (Type::kOffset != 0)
      q[i] = _mm512_sub_epi8(q[i], _mm512_set1_epi8(static_cast<char>(Type::kOffset)));
    _mm512_store_si512(to + 64 * i, q[i]);
  }
}

// What the unit does for a group of up to four runs: the sums [runs][rows][16 outputs].
template <class Unit, class Type>
struct Group {
  alignas(64) std::int8_t weights[kGroup][512];
  alignas(64) std::int32_t sums[kGroup][kRows][16];

  // Runs [run, run + n) of the strip.
  FORETOKEN_INLINE void Multiply(const typename Type::Tile* w, const PackedRun<Type>* x, int run,
                                 int n) {
    for (int i = 0; i < n; ++i)
      Spread<Type>(w[(run + i) / Type::kRuns], (run + i) % Type::kRuns, weights[i]);
    Product<0>(x + run);
    if (n > 1) Product<1>(x + run);
    if (n > 2) Product<2>(x + run);
    if (n > 3) Product<3>(x + run);
  }
  // Moves their sums from the registers to memory.
  FORETOKEN_INLINE void Save(int n) {
    Unit::template Store<0>(sums[0]);
    if (n > 1) Unit::template Store<1>(sums[1]);
    if (n > 2) Unit::template Store<2>(sums[2]);
    if (n > 3) Unit::template Store<3>(sums[3]);
  }

 private:
  template <int i>
  FORETOKEN_INLINE void Product(const PackedRun<Type>* x) {
    constexpr int a = 4 + i % 2, b = 6 + i % 2;
    Unit::template Zero<i>();
    Unit::template Load<a>(x[i].q[0], kBlock);
    Unit::template Load<b>(weights[i], 64);
    Unit::template Dot<i, a, b>();
  }
};

// The rest: acc of every row, for one run whose integer sums are known.
template <class Type, int R>
FORETOKEN_INLINE void AddRun(const typename Type::Tile& w, int run, const PackedRun<Type>& x,
                             const std::int32_t (*sums)[16], generic::RowSums<Lanes, R>& acc) {
  const generic::TileScales<Lanes, Type> scales(w, run, 0);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const struct { float d, xs[1]; } row = {x.d[r], {x.xs[Type::kMinima > 0 ? r : 0]}};
    scales.Add(Lanes::Signed(_mm512_load_si512(sums[r])), row, acc.of[r][0]);
  }
}

// The unit multiplies one group while the sums of the group before are added up. The sums of the
// new group are saved after that; waiting for them earlier costs a third of the gain.
template <class Unit, class Type, int R>
FORETOKEN_INLINE void Strip(const typename Type::Tile* w, const PackedRun<Type>* x, int n_runs,
                            generic::RowSums<Lanes, R>& acc) {
  static_assert(Type::kSums == 1 && Type::kMinima <= 1);
  constexpr int kBytes = sizeof(typename Type::Tile) / Type::kRuns;
  Group<Unit, Type> groups[2];
  const auto length = [&](int run) { return n_runs - run < kGroup ? n_runs - run : kGroup; };
  groups[0].Multiply(w, x, 0, length(0));
  groups[0].Save(length(0));
  for (int run = 0, now = 0; run < n_runs; run += kGroup, now ^= 1) {
    const int n = length(run), next = run + kGroup;
    for (int i = 0; i < n; ++i)
      avx512::PrefetchAhead<8192, 2048, kBytes>(reinterpret_cast<const char*>(w) +
                                                static_cast<std::ptrdiff_t>(run + i) * kBytes);
    if (next < n_runs) groups[now ^ 1].Multiply(w, x, next, length(next));
    for (int i = 0; i < n; ++i) {
      const typename Type::Tile& tile = w[(run + i) / Type::kRuns];
      AddRun<Type, R>(tile, (run + i) % Type::kRuns, x[run + i], groups[now].sums[i], acc);
    }
    if (next < n_runs) groups[now ^ 1].Save(length(next));
  }
}

// Rows [row, row + R), R <= kRows.
template <class Unit, class Type, int R>
__attribute__((noinline)) void Rows(const MatmulArgs& a, int row, int tile_begin, int tile_end) {
  alignas(64) PackedRun<Type> x[kPackRuns];
  const int n_runs = a.k / kBlock;
  const bool packs_once = n_runs <= kPackRuns;
  if (packs_once) Pack<Type>(a, row, R, 0, n_runs, x);
  Unit::Configure(R);
  for (int tile = tile_begin; tile < tile_end; ++tile) {
    const auto* w = static_cast<const typename Type::Tile*>(a.tiles) +
                    std::int64_t{tile} * (n_runs / Type::kRuns);
    generic::RowSums<Lanes, R> acc;
    acc.Clear();
    for (int b = 0; b < n_runs; b += kPackRuns) {
      const int n = n_runs - b < kPackRuns ? n_runs - b : kPackRuns;
      if (!packs_once) Pack<Type>(a, row, R, b, n, x);
      Strip<Unit, Type, R>(w + b / Type::kRuns, x, n, acc);
    }
    acc.Store(a, row, tile);
  }
  Unit::Release();
}

template <class Unit, class Type>
struct UnitProduct {
  template <int R>
  struct OfRows {
    static void Run(const MatmulArgs& a, int row, int tile_begin, int tile_end, generic::Ahead) {
      Rows<Unit, Type, R>(a, row, tile_begin, tile_end);
    }
  };
  static void Run(const MatmulArgs& a) {
    static constexpr generic::ByRows<OfRows, kRows> kByRows;
    generic::ForRowBlocks<avx512::CacheShare>(a, generic::StripBytes<Type>(a.k), kByRows.of, kRows);
  }
};

// The types whose products the unit can serve with a gain: see matmul.cpp.
using UnitTypes =
    generic::TypeList<generic::Q8_0, generic::Q4_0, generic::Q5_0, generic::Q5_1, generic::Q5_K,
                      generic::MXFP4, generic::IQ4_NL, generic::IQ4_XS>;

}  // namespace
}  // namespace foretoken::kernels::amx
