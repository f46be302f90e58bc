// SPDX-License-Identifier: Apache-2.0
// kernels/generic/integer_attention.h: attention over keys and values of q8_0 and q4_0, whose products
// are integers. Four numbers of the cache that one integer product adds up lie together (a quad): four
// dimensions of a key, or the values of four positions. Positions or dimensions are in the lanes, so
// a register holds kWidth quads; the quad of a query is in all lanes. In q4_0 a register holds two times
// as many, in the lower and in the upper halves of its bytes.
//
// What L offers for it:
//   kQuadWords            words that hold four numbers of a query: 1, or 2 of 16-bit numbers
//   kKeyOffset            what LoadKeys adds to each key
//   Keys, LoadKeys(p)     quads of keys
//   AddKeys(sum, k, q)    I sum + the products of k with the words at q, exact
//   Values, LoadValues(p) quads of values
//   StoreTwoBlocks(v, w, p)
//                         the bytes of twice 32 numbers, where that takes fewer steps than
//                         Pack and StoreBytes of each
//   AddValues(sum, v, w)  I sum + the products of v with the word w of four weights from 0 to 127
//   LoadFourKeys<part>(p), LoadFourValues<part>(p)
//                         Keys and Values of q4_0, 16 times as large: of the lower (0) or upper (1)
//                         halves of bytes
//   Fours                 in place of those two, where products of four bits are others than those of
//                         bytes: what FoursInBytes has
#pragma once

#include "kernels/generic/attention_tile.h"
#include "kernels/generic/exp.h"
#include "kernels/generic/stored.h"

namespace foretoken::kernels::generic {
namespace {

constexpr int kQuad = 4, kQuadsOfGroup = kGroup / kQuad;

template <class L>
FORETOKEN_INLINE typename L::I AllWords(std::int32_t x) {
  return typename L::I{} + x;
}

// Numbers of eight bits. Sums of 32 products begin with Start and end with a total.
template <class L>
struct Eights : L {
  static constexpr int kParts = 1;       // quads in the bytes of one
  static constexpr float kUnits = 1.0f;  // integers are so many times the numbers
  using typename L::Keys;
  using typename L::Values;
  template <int>
  static FORETOKEN_INLINE Keys LoadKeys(const std::byte* p) {
    return L::LoadKeys(p);
  }
  template <int>
  static FORETOKEN_INLINE Values LoadValues(const std::byte* p) {
    return L::LoadValues(p);
  }
  static FORETOKEN_INLINE typename L::I Start(std::int32_t start) { return AllWords<L>(start); }
  static FORETOKEN_INLINE typename L::I KeyTotal(typename L::I sum, std::int32_t) { return sum; }
  static FORETOKEN_INLINE typename L::I ValueTotal(typename L::I sum) { return sum; }
};

// Numbers of four bits, as bytes that are 16 times as large.
template <class L>
struct FoursInBytes : Eights<L> {
  static constexpr int kParts = 2;
  static constexpr float kUnits = 16.0f;
  template <int kPart>
  static FORETOKEN_INLINE typename L::Keys LoadKeys(const std::byte* p) {
    return L::template LoadFourKeys<kPart>(p);
  }
  template <int kPart>
  static FORETOKEN_INLINE typename L::Values LoadValues(const std::byte* p) {
    return L::template LoadFourValues<kPart>(p);
  }
};

template <class L>
struct ChosenFours {
  using Numbers = FoursInBytes<L>;
};
template <class L>
requires requires {
  typename L::Fours;
}
struct ChosenFours<L> {
  using Numbers = typename L::Fours;
};
template <class L>
using Fours = typename ChosenFours<L>::Numbers;

// The words of a query's 32 dimensions.
template <class Numbers>
constexpr int kWordsOfGroup = kQuadsOfGroup* Numbers::kQuadWords;

template <class Numbers>
FORETOKEN_INLINE void PackQuad(const std::int8_t* q, std::int32_t* words) {
  if constexpr (Numbers::kQuadWords == 1) {
    __builtin_memcpy(words, q, kQuad);
  } else {  // numbers 0 and 2, then 1 and 3
    const auto pair = [](std::int32_t low, std::int32_t high) {
      return static_cast<std::int32_t>((static_cast<std::uint32_t>(low) & 0xffff) |
                                       static_cast<std::uint32_t>(high) << 16);
    };
    words[0] = pair(q[0], q[2]);
    words[1] = pair(q[1], q[3]);
  }
}

// Quantises the queries of a tile.
template <class L, class Numbers>
void PackQueries(const Tile& tile) {
  const float factor = tile.args->scale / Numbers::kUnits;
  for (int g = 0; g < tile.groups(); ++g)
    for (int i = 0; i < tile.n; ++i) {
      std::int8_t q[kGroup];
      std::int32_t sums[2];
      float d;
      QuantizeBlock<L>(tile.q[i] + g * kGroup, q, &d, sums);
      const int at = g * kQueries + i;
      tile.queries.scale[at] = d * factor;
      tile.queries.start[at] = -Numbers::kKeyOffset * sums[1];
      std::int32_t* words = tile.queries.words + at * kWordsOfGroup<Numbers>;
      for (int j = 0; j < kGroup; j += kQuad, words += Numbers::kQuadWords)
        PackQuad<Numbers>(q + j, words);
    }
}

// Brings the scales of a block closer.
template <class L>
FORETOKEN_INLINE void PrefetchScales(const std::byte* scales, int groups) {
  constexpr int kRead = kSlots * static_cast<int>(F16::kBytes);
  for (int g = 0; g < groups; ++g) PrefetchIntegers<L, kRead>(scales + g * kRead);
}

// ---- Scores -------------------------------------------------------------------------------------

// sum[i][t] += the products over four dimensions of query i with positions t kWidth ...
template <class L, class Numbers, int kPart, int kCount, int kWide>
FORETOKEN_INLINE void AddKeyQuad(const std::int32_t* words, const std::byte* k,
                                 typename L::I (&sum)[kCount][kWide]) {
  typename Numbers::Keys keys[kWide];
#pragma GCC unroll 16
  for (int t = 0; t < kWide; ++t)
    keys[t] = Numbers::template LoadKeys<kPart>(k + t * L::kWidth * kQuad);
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 16
    for (int t = 0; t < kWide; ++t)
      sum[i][t] = Numbers::AddKeys(sum[i][t], keys[t], words + i * kWordsOfGroup<Numbers>);
}

template <class L, class Numbers, int kCount, int kWide>
FORETOKEN_INLINE void AddKeyQuads(const std::int32_t* words, const std::byte* k,
                                  const std::byte* next, typename L::I (&sum)[kCount][kWide]) {
  constexpr int kRead = kWide * L::kWidth * kQuad;
#pragma GCC unroll 2
  for (int i = 0; i < kQuadsOfGroup / Numbers::kParts; ++i, k += kSlots * kQuad, next += kRead) {
    PrefetchIntegers<L, kRead>(next);
    AddKeyQuad<L, Numbers, 0>(words, k, sum);
    words += Numbers::kQuadWords;
    if constexpr (Numbers::kParts == 2) {
      AddKeyQuad<L, Numbers, 1>(words, k, sum);
      words += Numbers::kQuadWords;
    }
  }
}

// The scores of positions [j, j + kWide kWidth), group by group.
template <class L, class Numbers, int kCount, int kWide>
void IntegerScoresAt(const Tile& tile, int first, const std::byte* block, int j) {
  const int groups = tile.groups();
  const std::int32_t* words = tile.queries.words + first * kWordsOfGroup<Numbers>;
  const std::int32_t* starts = tile.queries.start + first;
  const float* of_queries = tile.queries.scale + first;
  const std::byte* scales =
      block + kSlots * tile.args->head_dim / Numbers::kParts + j * F16::kBytes;
  float* s = tile.p + first * kSlots + j;
  const std::byte* next = tile.next_keys + j * tile.args->head_dim / Numbers::kParts;
  block += j * kQuad;
  for (int g = 0; g < groups; ++g) {
    typename L::I sum[kCount][kWide];
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 16
      for (int t = 0; t < kWide; ++t) sum[i][t] = Numbers::Start(starts[i]);
    AddKeyQuads<L, Numbers>(words, block, next, sum);
    typename L::F scale[kWide];
    F16::Load<L>(scales, scale);
    // The compiler would keep the addresses of all rows, and run out of registers.
    asm("" : "+r"(s));
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      const typename L::F of_query = L::All(of_queries[i]);
#pragma GCC unroll 16
      for (int t = 0; t < kWide; ++t) {
        float* const at = s + i * kSlots + t * L::kWidth;
        const typename L::F before = g == 0 ? L::All(0.0f) : L::Load(at);
        const typename L::I total = Numbers::KeyTotal(sum[i][t], starts[i]);
        L::Store(L::Fma(Floats<L>(total), of_query * scale[t], before), at);
      }
    }
    words += kQueries * kWordsOfGroup<Numbers>;
    starts += kQueries, of_queries += kQueries;
    block += kGroup * kSlots / Numbers::kParts;
    next += kWide * L::kWidth * kGroup / Numbers::kParts;
    scales += kSlots * F16::kBytes;
  }
}

template <class L, class Numbers>
struct IntegerScores {
  template <int kCount>
  static void Run(const Tile& tile, int first, const std::byte* block) {
    constexpr int kWide = SumRegisters<L, kCount>(kSlots / L::kWidth);
    for (int j = 0; j < kSlots; j += kWide * L::kWidth)
      IntegerScoresAt<L, Numbers, kCount, kWide>(tile, first, block, j);
    PrefetchScales<L>(tile.next_keys + kSlots * tile.args->head_dim / Numbers::kParts,
                      tile.groups());
  }
};

// ---- Values -------------------------------------------------------------------------------------

// The positions [begin, end) of a block of values, which has these scales, that a query sees.
struct Seen {
  const std::byte* scales;
  int begin, end;
  bool operator==(const Seen&) const = default;
};

// ratio = scale * (127 / the largest scale that is seen), 0 where nothing is; unit = that one / units.
template <class L>
void RatiosOfScales(Seen seen, int groups, float units, float* ratio, float* unit) {
  const std::byte* scales = seen.scales;
  for (int g = 0; g < groups; ++g, scales += kSlots * F16::kBytes, ratio += kSlots) {
    typename L::F x[kBlockRegisters<L>];
    F16::Load<L>(scales, x);
    typename L::I largest = {};
#pragma GCC unroll 8
    for (int t = 0; t < kBlockRegisters<L>; ++t) {
      const int at = t * L::kWidth;
      x[t] = L::Select(L::First(seen.begin - at), L::All(0.0f),
                       L::Keep(L::First(seen.end - at), x[t]));
      const typename L::I bits = __builtin_bit_cast(typename L::I, x[t]) & 0x7fffffff;
      largest = bits > largest ? bits : largest;
    }
    const float most = __builtin_bit_cast(float, L::LargestOf(largest));
    const typename L::F inverse = L::All(most > 0.0f ? 127.0f / most : 0.0f);
    unit[g] = most / units;
#pragma GCC unroll 8
    for (int t = 0; t < kBlockRegisters<L>; ++t) L::Store(x[t] * inverse, ratio + t * L::kWidth);
  }
}

// The weights of kRows queries that see the same: ROUGH EXP of (score - subtracted) in parts of the
// largest scale, from 0 to 127. sums: those of the exponentials, in the lanes of a register.
// kWhole: they see all of the block.
template <class L, int kRows, bool kWhole>
FORETOKEN_INLINE void WeighRows(const float* s, Seen seen, const float* subtracted,
                                const float* ratio, int groups, std::int8_t* to,
                                typename L::F* sums) {
  constexpr int kOfRow = kBlockRegisters<L>;
  typename L::F p[kRows * kOfRow];
#pragma GCC unroll 8
  for (int t = 0; t < kRows * kOfRow; ++t)
    p[t] = L::All(subtracted[t / kOfRow]) - L::Load(s + t * L::kWidth);
  RoughExpOfNegative<L>(p);
  if constexpr (!kWhole)
#pragma GCC unroll 8
    for (int t = 0; t < kRows * kOfRow; ++t) {
      const int at = t % kOfRow * L::kWidth;
      p[t] = L::Select(L::First(seen.begin - at), L::All(0.0f),
                       L::Keep(L::First(seen.end - at), p[t]));
    }
  const auto weigh = [&](int r, int g, typename L::I(&v)[kOfRow]) {
#pragma GCC unroll 8
    for (int t = 0; t < kOfRow; ++t)
      v[t] = L::Nearest(p[r * kOfRow + t] * L::Load(ratio + g * kSlots + t * L::kWidth));
  };
  for (int g = 0; g < groups; ++g, to += kQueries * kSlots) {
    typename L::I v[kRows][kOfRow];
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) weigh(r, g, v[r]);
    if constexpr (kRows == 2 && requires { L::StoreTwoBlocks(v[0], v[1], to); })
      L::StoreTwoBlocks(v[0], v[1], to);
    else
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r) L::StoreBytes(L::Pack(v[r]), to + r * kSlots);
  }
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) sums[r] = SumOfRow<L>(p + r * kOfRow);
}

// The scores of the queries in [first, n) become weights. sums[i] = the sum of the exponentials, 0 for
// the other queries. Those that see the same share its ratios.
template <class L, bool kWhole, class SeenBy>
void WeighAll(const float* scores, int first, int n, SeenBy seen_by, const float* subtracted,
              const float* share, int groups, const IntegerWeights& weights, float* sums) {
  float* const largest = weights.ratio + groups * kSlots;
  Seen seen;
  int same = first;  // the queries up to this one see `seen`
  const auto work = [&](int i, int end, typename L::F* to) {
    if (i == same) {
      seen = seen_by(i);
      while (++same < n && seen_by(same) == seen) {
      }
      RatiosOfScales<L>(seen, groups, weights.units, weights.ratio, largest);
      for (int r = i; r < same; r += L::kWidth) {
        const typename L::F shares = L::LoadFirst(share + r, same - r);
        for (int g = 0; g < groups; ++g)
          L::StoreFirst(shares * L::All(largest[g]), same - r, weights.unit + g * kQueries + r);
      }
    }
    const float* const s = scores + i * kSlots;
    std::int8_t* const of = weights.of + i * kSlots;
    if (kExpRows<L> == 2 && i + 1 < end && i + 1 < same) {
      WeighRows<L, 2, kWhole>(s, seen, subtracted + i, weights.ratio, groups, of, to);
      return 2;
    }
    WeighRows<L, 1, kWhole>(s, seen, subtracted + i, weights.ratio, groups, of, to);
    return 1;
  };
  SumsOfRows<L>(first, n, work, sums);
}

FORETOKEN_INLINE std::int32_t WordAt(const std::int8_t* p) {
  std::int32_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return word;
}

// sum[i][t] += the products of query i's weights of four positions with dimensions t kWidth ...
template <class L, class Numbers, int kPart, int kCount, int kWide>
FORETOKEN_INLINE void AddValueQuad(const std::int8_t* weights, const std::byte* v,
                                   typename L::I (&sum)[kCount][kWide]) {
  typename Numbers::Values values[kWide];
#pragma GCC unroll 16
  for (int t = 0; t < kWide; ++t)
    values[t] = Numbers::template LoadValues<kPart>(v + t * L::kWidth * kQuad);
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) {
    const std::int32_t w = WordAt(weights + i * kSlots);
#pragma GCC unroll 16
    for (int t = 0; t < kWide; ++t) sum[i][t] = Numbers::AddValues(sum[i][t], values[t], w);
  }
}

// acc[i] = acc[i] factor[i] + unit[i] the totals of sum[i]. kSteady: all factors are 1.
template <class L, class Numbers, bool kSteady, int kCount, int kWide>
FORETOKEN_INLINE void AddTotals(const typename L::I (&sum)[kCount][kWide], const float* factors,
                                const float* units, float* acc, int head_dim) {
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i, acc += head_dim) {
    const typename L::F c = L::All(factors[i]), unit = L::All(units[i]);
#pragma GCC unroll 16
    for (int t = 0; t < kWide; ++t) {
      const typename L::F old = L::Load(acc + t * L::kWidth), before = kSteady ? old : old * c;
      const typename L::I total = Numbers::ValueTotal(sum[i][t]);
      L::Store(L::Fma(Floats<L>(total), unit, before), acc + t * L::kWidth);
    }
  }
}

// Dimensions [d, d + kWide kWidth), which have one scale.
template <class L, class Numbers, int kCount, int kWide>
FORETOKEN_INLINE void IntegerValuesAt(const Tile& tile, int first, const std::byte* block, int d) {
  const int head_dim = tile.args->head_dim, g = d / kGroup;
  const std::int8_t* weights = tile.weights.of + (g * kQueries + first) * kSlots;
  typename L::I sum[kCount][kWide] = {};
  constexpr int kRead = kWide * L::kWidth * kQuad;
  const std::byte* at = block + d * kQuad;
  const std::byte* next = tile.next_values + d * kSlots / Numbers::kParts;
#pragma GCC unroll 2
  for (int i = 0; i < kSlots / kQuad / Numbers::kParts;
       ++i, at += head_dim * kQuad, next += kRead) {
    PrefetchIntegers<L, kRead>(next);
    AddValueQuad<L, Numbers, 0>(weights, at, sum);
    weights += kQuad;
    if constexpr (Numbers::kParts == 2) {
      AddValueQuad<L, Numbers, 1>(weights, at, sum);
      weights += kQuad;
    }
  }
  const float *factors = tile.factor + first, *units = tile.weights.unit + g * kQueries + first;
  float* acc = tile.acc + first * head_dim + d;
  asm("" : "+r"(factors), "+r"(units));  // as for the scores: one address for all rows
  if (tile.steady)
    AddTotals<L, Numbers, true>(sum, factors, units, acc, head_dim);
  else
    AddTotals<L, Numbers, false>(sum, factors, units, acc, head_dim);
}

template <class L, class Numbers>
struct IntegerValues {
  template <int kCount>
  static void Run(const Tile& tile, int first, const std::byte* block) {
    constexpr int kWide = SumRegisters<L, kCount>(kGroup / L::kWidth);
    for (int d = 0; d < tile.args->head_dim; d += kWide * L::kWidth)
      IntegerValuesAt<L, Numbers, kCount, kWide>(tile, first, block, d);
  }
};

template <class L, class Numbers>
void AllIntegerValues(const Tile& tile, int first, const std::byte* block) {
  InGroups<L, IntegerValues<L, Numbers>>(tile, first, block);
  PrefetchScales<L>(tile.ScalesOf(tile.next_values), tile.groups());
}

}  // namespace
}  // namespace foretoken::kernels::generic
