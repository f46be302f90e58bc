// SPDX-License-Identifier: Apache-2.0
// kernels/generic/softmax.h: the running softmax of attention over the blocks of a cache.
//
// Queries are rows of 32 scores, which are folded to one number for each row. kWidth rows are folded
// together, so that the numbers come out side by side.
#pragma once

#include "kernels/generic/exp.h"
#include "kernels/generic/integer_attention.h"

namespace foretoken::kernels::generic {
namespace {

// The largest of the first n of 32 scores, in the lanes of a register.
template <class L>
FORETOKEN_INLINE typename L::F LargestScores(const float* s, int n) {
  typename L::F max = L::All(kMinusInf);
#pragma GCC unroll 8
  for (int j = 0; j < kSlots; j += L::kWidth) {
    const typename L::F seen = L::Select(L::First(n - j), L::Load(s + j), max);
    max = LargerOr<L>(seen, max);
  }
  return max;
}

// In each of kRows rows s[j] becomes Exp(s[j] - max), and 0 from n on. sums: the sum of each row, in
// the lanes of a register.
template <class L, int kRows>
FORETOKEN_INLINE void Exponentials(float* s, const int (&n)[kRows], const float* max,
                                   typename L::F* sums) {
  constexpr int kOfRow = kSlots / L::kWidth;
  typename L::F p[kRows * kOfRow];
#pragma GCC unroll 8
  for (int t = 0; t < kRows * kOfRow; ++t)
    p[t] = L::Load(s + t * L::kWidth) - L::All(max[t / kOfRow]);
  Exp<L>(p);
#pragma GCC unroll 8
  for (int t = 0; t < kRows * kOfRow; ++t) {
    p[t] = L::Keep(L::First(n[t / kOfRow] - t % kOfRow * L::kWidth), p[t]);
    L::Store(p[t], s + t * L::kWidth);
  }
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) sums[r] = SumOfRow<L>(p + r * kOfRow);
}

// largest[i] = the largest score of row i in [first, n), which sees visible(i) of them; -inf for the
// other rows.
template <class L, class Visible>
FORETOKEN_INLINE void LargestOfRows(const float* p, int first, int n, Visible visible,
                                    float* largest) {
  for (int begin = 0; begin < Padded(n); begin += L::kWidth) {
    if (begin >= n) {
      L::Store(L::All(kMinusInf), largest + begin);
      continue;
    }
    typename L::F rows[L::kWidth];
    if (first <= begin && begin + L::kWidth <= n) {
#pragma GCC unroll 16
      for (int t = 0; t < L::kWidth; ++t)
        rows[t] = LargestScores<L>(p + (begin + t) * kSlots, visible(begin + t));
    } else {
      for (int t = 0; t < L::kWidth; ++t) {
        const int i = begin + t;
        rows[t] =
            i < first || i >= n ? L::All(kMinusInf) : LargestScores<L>(p + i * kSlots, visible(i));
      }
    }
    L::Store(L::FoldRows(rows, [](typename L::F x, typename L::F y) { return LargerOr<L>(x, y); }),
             largest + begin);
  }
}

// Scores of the rows in [first, n) become Exp(score - subtracted[i]). sums[i] = their sum; 0 for the
// other rows.
template <class L, class Visible>
FORETOKEN_INLINE void ExponentialsOfRows(float* p, int first, int n, Visible visible,
                                         const float* subtracted, float* sums) {
  const auto work = [&](int i, int end, typename L::F* to) {
    if (kExpRows<L> == 2 && i + 1 < end) {
      Exponentials<L, 2>(p + i * kSlots, {visible(i), visible(i + 1)}, subtracted + i, to);
      return 2;
    }
    Exponentials<L, 1>(p + i * kSlots, {visible(i)}, subtracted + i, to);
    return 1;
  };
  SumsOfRows<L>(first, n, work, sums);
}

// to[i] = Exp(from[i]) for n of them and those that fill the last 16.
template <class L>
FORETOKEN_INLINE void ExpOfAll(const float* from, int n, float* to) {
  for (int i = 0; i < n; i += kLanes) {
    Sixteen<L> x = Sixteen<L>::Load(from + i);
    Exp<L>(x.of);
    x.Store(to + i);
  }
}

// factor[i] = Exp(change[i]) for n of them and those that fill the last 16. Returns whether all are
// Exp(0) = 1, as in most blocks of a long text (of 32 queries in a story of 16,526 tokens in 80 %).
template <class L>
bool FactorsOf(const float* change, int n, float* factor) {
  typename L::I any = {};
  for (int i = 0; i < Padded(n); i += L::kWidth)
    any |= __builtin_bit_cast(typename L::I, L::Load(change + i)) & 0x7fffffff;
  if (L::LargestOf(any) != 0) {
    ExpOfAll<L>(change, n, factor);
    return false;
  }
  for (int i = 0; i < Padded(n); i += L::kWidth) L::Store(L::All(1.0f), factor + i);
  return true;
}

// What the queries see of a block: all of it, its beginning (all positions below `visible`), or any
// part of it.
enum class Sight { kWhole, kBeginning, kPart };

// Scores become p; max, sum, factor (c of the contract) and share of the queries from `first` on
// follow. The less the queries may see, the more masks it takes. For the other queries the factor
// becomes Exp(0) = 1, and 0 is added to their sums.
template <class L, Sight kSight>
void Softmax(Tile& tile, int first, const std::byte* values) {
  const auto visible = [&tile](int i) {
    return kSight == Sight::kWhole ? kSlots : tile.visible[i];
  };
  if constexpr (kSight == Sight::kPart)  // the exponential of -inf is 0
    for (int i = first; i < tile.n; ++i)
      for (int j = 0; j < tile.hidden[i]; ++j) tile.p[i * kSlots + j] = kMinusInf;
  const bool own = tile.has_integer_values();
  float largest[kQueries], subtracted[kQueries], change[kQueries], distance[kQueries];
  LargestOfRows<L>(tile.p, first, tile.n, visible, largest);
  for (int i = 0; i < Padded(tile.n); i += L::kWidth) {
    const typename L::F before = L::Load(tile.max + i), m = L::Load(largest + i);
    const typename L::F max = LargerOr<L>(m, before);
    const auto active = [&](typename L::F x) {
      return L::Select(L::First(first - i), L::All(0.0f), L::Keep(L::First(tile.n - i), x));
    };
    L::Store(active(before - max), change + i);
    L::Store(active(m - max), distance + i);
    L::Store(own ? m : max, subtracted + i);
    L::Store(max, tile.max + i);
  }
  float sums[kQueries];
  tile.steady = FactorsOf<L>(change, tile.n, tile.factor);
  if (own) {
    ExpOfAll<L>(distance, tile.n, tile.share);
    const auto seen_by = [&tile, visible, values](int i) {
      return Seen{tile.ScalesOf(values), kSight == Sight::kPart ? tile.hidden[i] : 0, visible(i)};
    };
    WeighAll<L, kSight == Sight::kWhole>(tile.p, first, tile.n, seen_by, subtracted, tile.share,
                                         tile.groups(), tile.weights, sums);
  } else {
    ExponentialsOfRows<L>(tile.p, first, tile.n, visible, subtracted, sums);
  }
  for (int i = 0; i < Padded(tile.n); i += L::kWidth) {
    const typename L::F c = L::Load(tile.factor + i), sum = L::Load(sums + i);
    const typename L::F added = own ? L::Load(tile.share + i) * sum : sum;
    L::Store(L::Fma(L::Load(tile.sum + i), c, added), tile.sum + i);
  }
}

}  // namespace
}  // namespace foretoken::kernels::generic
