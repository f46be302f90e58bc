// SPDX-License-Identifier: Apache-2.0
// kernels/generic/matmul.h: how products walk rows and tiles: all but the integer sums themselves.
//
// The 16 outputs of a tile lie in the lanes, and a block of R rows meets each register of weights
// once. Each row keeps sums of its own, so no result depends on R. Rows of quantised activations
// are packed first, run by run, so that the inner loop has one pointer and constant offsets.
//
// The rest is written by hand for each instruction set, as a type Core that extends CoreOf<L>:
//   kCacheBytes, kLeastStrips    the strips that row blocks take turns on fit kCacheBytes of the
//                                second-level cache, but are never fewer than kLeastStrips
//   kFloatRows, kStrips<R>       float tiles: rows of a block, and strips side by side
//   kRows<Type>                  quantised tiles: rows of a block
//   kLoneRows<Type>              the same where one block takes all rows; may be left out: kRows
//   PackStarts<Type>(xs, to)     where CoreOf says so
//   kIsWide<Type, R>             whether activations are packed as int16, by Widen(block, to); may be
//                                left out: no
//   Run<Type, R>(tile, run, rows, sums)
//                                adds one run of a tile to the sums of R rows
#pragma once

#include "kernels/generic/stored.h"
#include "kernels/generic/tiles.h"
#include "kernels/parts.h"

namespace foretoken::kernels::generic {
namespace {

// ---- Sums ---------------------------------------------------------------------------------------

// The sums of a row block: 16 outputs of each row.
template <class L, int R>
struct RowSums {
  typename L::F of[R][kRegisters<L>];

  FORETOKEN_INLINE void Clear() {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int t = 0; t < kRegisters<L>; ++t) of[r][t] = L::All(0.0f);
  }
  FORETOKEN_INLINE void Store(const MatmulArgs& a, int row, int tile) const {
    float* y = a.y + row * a.y_stride + std::int64_t{tile} * kTileOutputs;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r, y += a.y_stride)
#pragma GCC unroll 4
      for (int t = 0; t < kRegisters<L>; ++t) {
        float* to = y + t * L::kWidth;
        L::Store(a.accumulate ? L::Load(to) + of[r][t] : of[r][t], to);
      }
  }
};

// Keeps the compiler from moving loads and prefetches across.
FORETOKEN_INLINE void KeepOrder() {
  asm volatile("" : : : "memory");
}

// ---- Defaults -----------------------------------------------------------------------------------

template <class Lanes>
struct CoreOf {
  using L = Lanes;
  static constexpr int kFloatSteps = 4;   // k of a float tile in one turn of the loop
  static constexpr int kMostSums = 2;     // starting values of a PackedRow, at most
  static constexpr bool kSigned = false;  // whether weights of Q8_0 and of tables have no offset
  // Whether R rows meet weights of two and three bits times their scales, so that a run has one sum.
  template <int R>
  static constexpr bool kScalesWeights = false;
  // Whether what the integer sums of R rows start from is packed by PackStarts<Type>(xs, to).
  template <class Type, int R>
  static constexpr bool kPacksStarts = false;
  static constexpr bool kKeepsOrder = false;  // whether float weights are loaded k by k
  // Whether row blocks of quantised tiles ask for the strips that come next. Those of floats would take
  // 0.8 to 0.9 times as long from memory, and 1.1 to 1.4 times from the cache (AVX2, Zen 3).
  static constexpr bool kAsksForNext = false;
  // Whether R rows of activations are packed as int16.
  template <class Type, int R>
  static constexpr bool kIsWide = false;
  // What Core's weights of a type have on top of the type's offset.
  template <class Type>
  static constexpr int kAddedOffset = 0;

  // Asks for weights that R rows meet soon: kBytes of a tile, some distance beyond p.
  template <int R, int kBytes>
  static FORETOKEN_INLINE void PrefetchFloats(const void*) {}
  template <int R, int kBytes>
  static FORETOKEN_INLINE void PrefetchRun(const void*) {}
};

// Whether the weights of a run come with their scales: q * scale, plus kScaledOffset for Q3_K,
// whose least is 31 * -4.
template <class Core, class Type, int R>
constexpr bool kIsScaled = Core::template kScalesWeights<R>&& Type::kBits <= 3;
constexpr int kScaledOffset = 127;

// The offset of a type's weights as the integer sums of Core meet them.
template <class Core, class Type, int R = 1>
constexpr int kOffset = kIsScaled<Core, Type, R> ? (Type::kOffset > 0 ? kScaledOffset : 0)
                        : Core::kSigned && (Type::kBits == 8 || Type::kHasTable)
                            ? 0
                            : Type::kOffset + Core::template kAddedOffset<Type>;

template <class Core, class Type, int R = 1>
constexpr int kSums = kIsScaled<Core, Type, R> ? 1 : Type::kSums;

template <class Core, class Type, int R = 1>
constexpr int kStarts = Type::kMinima > 0                        ? Type::kMinima
                        : kSums<Core, Type, R> < Core::kMostSums ? kSums<Core, Type, R>
                                                                 : Core::kMostSums;

template <class Core, class Type, int R>
using RowOf = PackedRow<kStarts<Core, Type, R>, Core::template kIsWide<Type, R>>;

constexpr int kLine = 64;  // bytes that the caches hold together

// ---- Row blocks ---------------------------------------------------------------------------------

// What a row block asks for while it multiplies: its own weights a little ahead, where they come from
// memory, and a part of the strips that row blocks take turns on next.
struct Ahead {
  bool own = true;
  const char *next = nullptr, *next_end = nullptr;
  int lines = 0;  // of the next strips, for each run

  FORETOKEN_INLINE void AskForNext() {
    for (int i = 0; i < lines && next < next_end; ++i, next += kLine)
      __builtin_prefetch(next, 0, 2);
  }
};

using RowsFunction = void (*)(const MatmulArgs& a, int row, int tile_begin, int tile_end,
                              Ahead ahead);

// Rows<1>::Run to Rows<n>::Run, one for each size of a row block.
template <template <int> class Rows, int n>
struct ByRows {
  constexpr ByRows() { Fill<n>(); }
  template <int R>
  constexpr void Fill() {
    of[R - 1] = Rows<R>::Run;
    if constexpr (R > 1) Fill<R - 1>();
  }
  RowsFunction of[n] = {};
};

// What block `block` of n, which meets the strips before tile `tile`, asks for: its share of the strips
// [tile, tile_end), which come next. run_lines: lines of a run; 0: nothing is asked for beforehand.
inline Ahead AheadOf(const MatmulArgs& a, std::int64_t strip_bytes, int run_lines, int block, int n,
                     int tile, int tile_end) {
  if (n == 1 || run_lines == 0) return {};
  const char* const next = static_cast<const char*>(a.tiles) + tile * strip_bytes;
  const std::int64_t bytes = (tile_end - tile) * strip_bytes;
  return {.own = false,
          .next = next + bytes * block / n,
          .next_end = next + bytes * (block + 1) / n,
          .lines = (run_lines + n - 1) / n};
}

// Cuts the rows into even blocks of at most max_rows. Where there are several blocks, they take
// turns on a group of strips that stays in the second-level cache, so that memory is read once; and
// while they do, they ask for the next group, so that memory is read all the time.
template <class Core>
void ForRowBlocks(const MatmulArgs& a, std::int64_t strip_bytes, const RowsFunction* by_rows,
                  int max_rows, int run_lines = 0) {
  const int n_row_blocks = (a.n_rows + max_rows - 1) / max_rows;
  int group = a.tile_end - a.tile_begin;
  if (n_row_blocks > 1) {
    const std::int64_t fit = Core::kCacheBytes / (strip_bytes + 1);
    group = fit < Core::kLeastStrips ? Core::kLeastStrips : static_cast<int>(fit);
  }
  const auto end_of = [&](int tile) {
    return a.tile_end - tile < group ? a.tile_end : tile + group;
  };
  for (int tile = a.tile_begin; tile < a.tile_end; tile += group) {
    const int tile_end = end_of(tile);
    for (int block = 0; block < n_row_blocks; ++block) {
      const int row = static_cast<int>(std::int64_t{a.n_rows} * block / n_row_blocks);
      const int row_end = static_cast<int>(std::int64_t{a.n_rows} * (block + 1) / n_row_blocks);
      Ahead ahead =
          AheadOf(a, strip_bytes, run_lines, block, n_row_blocks, tile_end, end_of(tile_end));
      if (tile == a.tile_begin && block == 0) ahead.own = true;
      by_rows[row_end - row - 1](a, row, tile, tile_end, ahead);
    }
  }
}

// The row of activations that row `row` reads.
FORETOKEN_INLINE std::int64_t InputRow(const MatmulArgs& a, int row) {
  return a.x_rows == nullptr ? row : a.x_rows[row];
}

// ---- Quantised tiles ----------------------------------------------------------------------------

constexpr int kPackRuns = 1024;  // k up to 32768 is packed once for each row block, on the stack

template <class Type>
constexpr std::int64_t StripBytes(int k) {
  return k / kBlock / Type::kRuns * static_cast<std::int64_t>(sizeof(typename Type::Tile));
}

// Copies 32 bytes in one register where there are registers of that size; memcpy takes two.
FORETOKEN_INLINE void CopyBlock(const void* from, void* to) {
  using Block = std::int8_t __attribute__((vector_size(kBlock), aligned(1), may_alias));
  *static_cast<Block*>(to) = *static_cast<const Block*>(from);
}

// Runs [run, run + n) of R rows: out[n][R].
template <class Core, class Type, int R>
FORETOKEN_INLINE void PackRows(const MatmulArgs& a, int row, int run, int n,
                               RowOf<Core, Type, R>* out) {
  const std::int64_t n_runs = a.k / kBlock;
  for (int r = 0; r < R; ++r) {
    const std::int64_t first = InputRow(a, row + r) * n_runs + run;
    for (int b = 0; b < n; ++b) {
      RowOf<Core, Type, R>& to = out[b * R + r];
      if constexpr (Core::template kIsWide<Type, R>)
        Core::Widen(a.xq + (first + b) * kBlock, to.q);
      else
        CopyBlock(a.xq + (first + b) * kBlock, to.q);
      to.d = a.xd[first + b];
      const std::int32_t* xs = a.xs + 2 * (first + b);
      if constexpr (Type::kMinima == 1) {
        to.xs[0] = to.d * static_cast<float>(xs[1]);
      } else if constexpr (Type::kMinima == 2) {
        to.xs[0] = to.d * static_cast<float>(xs[0]);
        to.xs[1] = to.d * static_cast<float>(xs[1] - xs[0]);
      } else if constexpr (Core::template kPacksStarts<Type, R>) {
        Core::template PackStarts<Type>(xs, to);
      } else {
        PackOffsets<kSums<Core, Type, R>, kOffset<Core, Type, R>>(xs, to);
      }
    }
  }
}

template <class Core, class Type, int R>
FORETOKEN_INLINE void AddStrip(const typename Type::Tile* w, const RowOf<Core, Type, R>* rows,
                               int n_runs, RowSums<typename Core::L, R>& sums, Ahead& ahead) {
  constexpr int kBytes = sizeof(typename Type::Tile) / Type::kRuns;
  for (; n_runs > 0; n_runs -= Type::kRuns, ++w) {
    for (int run = 0; run < Type::kRuns; ++run, rows += R) {
      if (ahead.own)
        Core::template PrefetchRun<R, kBytes>(reinterpret_cast<const char*>(w) + run * kBytes);
      ahead.AskForNext();
      Core::template Run<Type, R>(*w, run, rows, sums);
    }
  }
}

template <class Core, class Type>
struct QuantisedProduct {
  // The most rows of a block where a row has more than kPackRuns runs, which are packed part by part.
  static constexpr int kLongRows = Core::template kRows<Type> < 4 ? Core::template kRows<Type> : 4;

  static constexpr int kRows = Core::template kRows<Type>;
  static constexpr int LoneRows() {
    if constexpr (requires { Core::template kLoneRows<Type>; })
      return Core::template kLoneRows<Type>;
    else
      return kRows;
  }

  static bool AreLong(const MatmulArgs& a) { return a.k / kBlock > kPackRuns; }
  static int RowsOfBlock(const MatmulArgs& a) {
    if (AreLong(a)) return kLongRows;
    return a.n_rows <= LoneRows() ? LoneRows() : kRows;
  }

  static FORETOKEN_INLINE const typename Type::Tile* Strip(const MatmulArgs& a, int tile) {
    return static_cast<const typename Type::Tile*>(a.tiles) +
           std::int64_t{tile} * (a.k / kBlock / Type::kRuns);
  }

  template <int R>
  struct Rows {
    using Sums = RowSums<typename Core::L, R>;

    static __attribute__((noinline)) void Run(const MatmulArgs& a, int row, int tile_begin,
                                              int tile_end, Ahead ahead) {
      if constexpr (R <= kLongRows)
        if (AreLong(a)) return RunInParts(a, row, tile_begin, tile_end, ahead);
      alignas(64) RowOf<Core, Type, R> rows[kPackRuns * R];
      const int n_runs = a.k / kBlock;
      PackRows<Core, Type, R>(a, row, 0, n_runs, rows);
      for (int tile = tile_begin; tile < tile_end; ++tile) {
        Sums sums;
        sums.Clear();
        AddStrip<Core, Type, R>(Strip(a, tile), rows, n_runs, sums, ahead);
        sums.Store(a, row, tile);
      }
    }

    // Packs the rows anew for each tile. A function of its own: with a second place that packs, the
    // loop of Run would keep fewer values in registers.
    static __attribute__((noinline)) void RunInParts(const MatmulArgs& a, int row, int tile_begin,
                                                     int tile_end, Ahead ahead) {
      alignas(64) RowOf<Core, Type, R> rows[kPackRuns * R];
      const int n_runs = a.k / kBlock;
      for (int tile = tile_begin; tile < tile_end; ++tile) {
        Sums sums;
        sums.Clear();
        for (int b = 0; b < n_runs; b += kPackRuns) {
          const int n = n_runs - b < kPackRuns ? n_runs - b : kPackRuns;
          PackRows<Core, Type, R>(a, row, b, n, rows);
          AddStrip<Core, Type, R>(Strip(a, tile) + b / Type::kRuns, rows, n, sums, ahead);
        }
        sums.Store(a, row, tile);
      }
    }
  };

  static void Run(const MatmulArgs& a) {
    static constexpr ByRows<Rows, LoneRows()> kByRows;
    constexpr int kRunLines = (sizeof(typename Type::Tile) / Type::kRuns + kLine - 1) / kLine;
    ForRowBlocks<Core>(a, StripBytes<Type>(a.k), kByRows.of, RowsOfBlock(a),
                       Core::kAsksForNext ? kRunLines : 0);
  }
};

// ---- Float tiles --------------------------------------------------------------------------------

template <class Core, class Type>
struct FloatProduct {
  using L = typename Core::L;
  using Stored = typename Type::Stored;

  // One k: acc[t] of row r += w[t] * x[at[r]].
  template <int T, int R>
  static FORETOKEN_INLINE void Step(const Stored* w, std::int64_t strip, const float* x,
                                    const std::int64_t (&at)[R], RowSums<L, R> (&acc)[T]) {
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      if constexpr (Core::kKeepsOrder) KeepOrder();
      typename L::F q[kRegisters<L>];
      Type::template Load<L>(w + t * strip, q);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const typename L::F xr = L::All(x[at[r]]);
#pragma GCC unroll 4
        for (int v = 0; v < kRegisters<L>; ++v) acc[t].of[r][v] = L::Fma(q[v], xr, acc[t].of[r][v]);
      }
    }
  }

  // Asks for the next line of each strip. The compiler would gather the lines of several k before
  // their loads. Apart from each other they cost less: 512 MiB of F32 with 8 rows take 18.2 ms and
  // not 22.6 with AVX-512, F16 with 3 rows 18.7 ms and not 23.3 with AVX2, on 2 threads of a Xeon
  // (Sapphire Rapids).
  template <int T, int R>
  static FORETOKEN_INLINE void Prefetch(const Stored* w, std::int64_t strip) {
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      KeepOrder();
      Core::template PrefetchFloats<R, kLine>(w + t * strip);
      if constexpr (T > 1) KeepOrder();
    }
  }

  // T strips side by side, so that few rows still give enough independent chains of fma.
  template <int T, int R>
  static FORETOKEN_INLINE void Strips(const MatmulArgs& a, int row, int tile) {
    constexpr int kSteps = Core::kFloatSteps;
    const std::int64_t n = a.k, strip = n * kTileOutputs;
    const auto* w = static_cast<const Stored*>(a.tiles) + tile * strip;
    const float* x = a.x + InputRow(a, row) * a.x_stride;
    std::int64_t at[R] = {};  // where the rows begin
#pragma GCC unroll 16
    for (int r = 1; r < R; ++r) at[r] = (InputRow(a, row + r) - InputRow(a, row)) * a.x_stride;
    RowSums<L, R> acc[T];
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) acc[t].Clear();
    const float *const end = x + n, *const whole = x + n / kSteps * kSteps;
    for (; x != whole; x += kSteps, w += kSteps * kTileOutputs) {
      // The compiler would add every i below to every row beforehand, and run out of registers.
#pragma GCC unroll 16
      for (int r = 1; r < R; ++r) asm("" : "+r"(at[r]));
#pragma GCC unroll 4
      for (int i = 0; i < kSteps; ++i) {
        if (i * kTileOutputs * Type::kBytes % kLine == 0)
          Prefetch<T, R>(w + i * kTileOutputs, strip);
        Step<T, R>(w + i * kTileOutputs, strip, x + i, at, acc);
      }
    }
    for (; x != end; ++x, w += kTileOutputs) Step<T, R>(w, strip, x, at, acc);
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) acc[t].Store(a, row, tile + t);
  }

  template <int R>
  struct Rows {
    static __attribute__((noinline)) void Run(const MatmulArgs& a, int row, int tile_begin,
                                              int tile_end, Ahead) {
      constexpr int T = Core::template kStrips<R>;
      int tile = tile_begin;
      for (; tile + T <= tile_end; tile += T) Strips<T, R>(a, row, tile);
      for (; tile < tile_end; ++tile) Strips<1, R>(a, row, tile);
    }
  };

  static void Run(const MatmulArgs& a) {
    static constexpr ByRows<Rows, Core::kFloatRows> kByRows;
    ForRowBlocks<Core>(a, std::int64_t{a.k} * kTileOutputs * Type::kBytes, kByRows.of,
                       Core::kFloatRows);
  }
};

// ---- Tables -------------------------------------------------------------------------------------

template <class... Types>
struct TypeList {};
using FloatTypes = TypeList<F32, F16, BF16>;
using QuantisedTypes = TypeList<Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K, MXFP4, IQ4_NL,
                                IQ4_XS, Q3_K, Q2_K, Wide>;

// Puts Product<Type>::Run for each of the types into a table.
template <template <class> class Product, class... Types>
constexpr void SetProducts(TypeList<Types...>, Kernels& table) {
  ((table.matmul[static_cast<int>(Types::kType)] = Product<Types>::Run), ...);
}

// The products of all types, as a part of a table.
template <class Core>
struct ProductsOf {
  template <class Type>
  using Quantised = QuantisedProduct<Core, Type>;
  template <class Type>
  using Float = FloatProduct<Core, Type>;

  static constexpr Kernels OfQuantisedTypes() {
    Kernels table = {};
    SetProducts<Quantised>(QuantisedTypes(), table);
    return table;
  }
  static constexpr Kernels OfAllTypes() {
    Kernels table = OfQuantisedTypes();
    SetProducts<Float>(FloatTypes(), table);
    return table;
  }
};

}  // namespace
}  // namespace foretoken::kernels::generic
