// SPDX-License-Identifier: Apache-2.0
// kernels/generic/attention.h: attention of kernels/kernels.h.
//
// Blocks are the outer loop and queries the inner one: a tile of up to kAttentionQueries queries
// walks the cache blocks once, and within a block groups of up to L::kTogether queries share each
// key and value register on its way from memory (and its conversion to f32).
//
// L says how the work is cut: kAccumulators, the registers that the sums of a loop have, and the
// constants of LaneDefaults.
#pragma once

#include "kernels/generic/activation.h"
#include "kernels/generic/attention_tile.h"
#include "kernels/generic/float_attention.h"
#include "kernels/generic/integer_attention.h"
#include "kernels/generic/key_values.h"
#include "kernels/generic/seen_blocks.h"
#include "kernels/generic/softmax.h"

namespace foretoken::kernels::generic {
namespace {

// The passes over a block, by the types of keys and values.
template <class L>
constexpr BlockPass kScores[tensor::kKvTypes] = {
    InGroups<L, Scores<L, F32>>, InGroups<L, Scores<L, F16>>, InGroups<L, Scores<L, BF16>>,
    InGroups<L, IntegerScores<L, Eights<L>>>, InGroups<L, IntegerScores<L, Fours<L>>>};
template <class L>
constexpr BlockPass kValues[tensor::kKvTypes] = {
    InGroups<L, Values<L, F32>>, InGroups<L, Values<L, F16>>, InGroups<L, Values<L, BF16>>,
    AllIntegerValues<L, Eights<L>>, AllIntegerValues<L, Fours<L>>};
template <class L>
constexpr BlockPass kPartValues[tensor::kKvTypes] = {
    InGroups<L, PartValues<L, F32>>, InGroups<L, PartValues<L, F16>>,
    InGroups<L, PartValues<L, BF16>>, AllIntegerValues<L, Eights<L>>,
    AllIntegerValues<L, Fours<L>>};

template <class L, class K>
void AllKeyValues(const Tile& tile, int first, const std::byte* block) {
  AddKeyValues<L, K>({.first = first,
                      .n = tile.n,
                      .visible = tile.visible,
                      .p = tile.p,
                      .factor = tile.factor,
                      .acc = tile.acc,
                      .head_dim = tile.args->head_dim,
                      .n_values = tile.args->values_in_keys},
                     block);
}
template <class L>
constexpr BlockPass kKeyValues[tensor::kKvTypes] = {
    AllKeyValues<L, F32>, AllKeyValues<L, F16>, AllKeyValues<L, BF16>, AllKeyValues<L, QuadsOf8>,
    AllKeyValues<L, QuadsOf4>};
template <class L>
BlockPass ValuesPass(const AttentionArgs& args) {
  return args.values_in_keys > 0 ? kKeyValues<L>[static_cast<int>(args.k_type)]
                                 : kValues<L>[static_cast<int>(args.v_type)];
}

// Caps `rows` rows of 32 scores.
template <class L>
void CapScores(const AttentionArgs& args, float* scores, int rows) {
  if (args.soft_cap > 0) SoftCap<L>(scores, rows * kSlots, args.soft_cap);
}

inline const std::byte* KeysOf(const AttentionArgs& args, int block) {
  return args.k + SeenBlock(args, block) * static_cast<std::ptrdiff_t>(args.k_stride);
}
inline const std::byte* ValuesOf(const AttentionArgs& args, int block) {
  if (args.values_in_keys > 0) return KeysOf(args, block);
  return args.v + SeenBlock(args, block) * static_cast<std::ptrdiff_t>(args.v_stride);
}

// How many blocks of so many bytes memory is asked for ahead.
template <class L>
int BlocksAhead(const Tile& tile, int block_bytes) {
  constexpr int kBytesAhead = 12288;
  if (L::kIntegerBytes == 0 || !tile.has_integer_values())
    return 1 + kBytesAhead / (block_bytes + 1);
  return block_bytes < L::kIntegerBytes ? L::kIntegerBytes / block_bytes : 1;
}

// What memory is asked for while the block at position `begin` is worked on: keys and values further on, or
// a block that is there already where the sequence ends before.
inline void LookAhead(Tile& tile, int begin) {
  const auto next = [&](int ahead) {
    return (begin + ahead < tile.length[tile.n - 1] ? begin + ahead : begin) / kSlots;
  };
  tile.next_keys = KeysOf(*tile.args, next(tile.keys_ahead));
  tile.next_values = ValuesOf(*tile.args, next(tile.values_ahead));
}

// How many blocks go through each stage together: as many as the scores have room for. With integers it is
// at most what memory is asked for ahead, so that requests for keys and for values alternate and memory is
// always busy; and one where the scores of several would not fill one register.
template <class L>
int BlocksTogether(const Tile& tile) {
  const int most = kQueries / tile.n;
  if (!tile.has_integer_values()) return most;
  const int ahead = BlocksAhead<L>(tile, static_cast<int>(tile.args->k_stride));
  if (ahead * tile.n < L::kWidth) return 1;
  return ahead < most ? ahead : most;
}

// Few queries leave the running softmax bound by latency: the maximum, the exponentials and the sum
// of a block each wait for the one before. So several blocks go through each stage together. Only the
// maxima, one comparison a block, and the values follow the order of the blocks.
// REQUIRES: all queries see all of the blocks [block, block + count); count * tile.n <= kQueries.
template <class L>
void RunWholeBlocks(Tile& tile, int block, int count) {
  const AttentionArgs& args = *tile.args;
  const BlockPass scores = kScores<L>[static_cast<int>(args.k_type)], values = ValuesPass<L>(args);
  float *const p = tile.p, *const factor = tile.factor, *const share = tile.share;
  const int n = tile.n, rows = count * n;
  const bool own = tile.has_integer_values();
  const std::byte* scales_of[kQueries];
  for (int i = 0; i < n; ++i) tile.visible[i] = kSlots;
  for (int b = 0; b < count; ++b) {
    tile.p = p + b * n * kSlots;
    LookAhead(tile, (block + b) * kSlots);
    scores(tile, 0, KeysOf(args, block + b));
    const std::byte* const of_block = ValuesOf(args, block + b);
    for (int i = 0; i < n; ++i) scales_of[b * n + i] = tile.ScalesOf(of_block);
  }
  CapScores<L>(args, p, rows);
  const auto all = [](int) { return kSlots; };
  float largest[kQueries], change[kQueries] = {}, distance[kQueries] = {}, sums[kQueries];
  float before[2 * kQueries];     // the maximum before a row;
  float* const max = before + n;  // the one behind it, which is the one before the next block's
  LargestOfRows<L>(p, 0, rows, all, largest);
  for (int i = 0; i < n; ++i) before[i] = tile.max[i];
  for (int r = 0; r < rows; ++r) max[r] = largest[r] > before[r] ? largest[r] : before[r];
  for (int r = 0; r < rows; ++r) {
    change[r] = before[r] - max[r];
    distance[r] = largest[r] - max[r];
  }
  tile.steady = FactorsOf<L>(change, rows, factor);
  IntegerWeights& weights = tile.weights;
  const IntegerWeights all_weights = weights;
  if (own) {
    ExpOfAll<L>(distance, rows, share);
    const auto seen_by = [&scales_of](int r) { return Seen{scales_of[r], 0, kSlots}; };
    WeighAll<L, true>(p, 0, rows, seen_by, largest, share, tile.groups(), weights, sums);
    for (int r = 0; r < rows; ++r) sums[r] *= share[r];
  } else {
    ExponentialsOfRows<L>(p, 0, rows, all, max, sums);
  }
  for (int r = 0; r < rows; r += n)
    for (int i = 0; i < n; ++i)
      tile.sum[i] = __builtin_fmaf(tile.sum[i], factor[r + i], sums[r + i]);
  for (int i = 0; i < n; ++i) tile.max[i] = max[rows - n + i];
  for (int b = 0; b < count; ++b) {
    tile.p = p + b * n * kSlots;
    tile.factor = factor + b * n;
    weights.of = all_weights.of + b * n * kSlots;
    weights.unit = all_weights.unit + b * n;
    LookAhead(tile, (block + b) * kSlots);
    values(tile, 0, ValuesOf(args, block + b));
  }
  tile.p = p;
  tile.factor = factor;
  weights = all_weights;
}

// Positions [begin, ...), block by block.
template <class L>
void RunBlocks(Tile& tile, int begin) {
  const AttentionArgs& args = *tile.args;
  const BlockPass scores = kScores<L>[static_cast<int>(args.k_type)], values = ValuesPass<L>(args);
  int first = 0;  // the first query that sees the block
  for (; begin < tile.length[tile.n - 1]; begin += kSlots) {
    while (tile.length[first] <= begin) ++first;
    for (int i = first; i < tile.n; ++i) {
      const int left = tile.length[i] - begin;
      tile.visible[i] = left < kSlots ? left : kSlots;
    }
    LookAhead(tile, begin);
    scores(tile, first, KeysOf(args, begin / kSlots));
    CapScores<L>(args, tile.p + first * kSlots, tile.n - first);
    const std::byte* const block_values = ValuesOf(args, begin / kSlots);
    if (tile.visible[first] == kSlots)  // rows are ascending, so the first one sees least
      Softmax<L, Sight::kWhole>(tile, first, block_values);
    else
      Softmax<L, Sight::kBeginning>(tile, first, block_values);
    values(tile, first, block_values);
  }
}

// The first position that query i sees.
inline int SeenFrom(const Tile& tile, int i) {
  const int window = tile.args->window;
  return window > 0 && tile.length[i] > window ? tile.length[i] - window : 0;
}

// The blocks in which the window of some query begins. Returns the position after them.
template <class L>
int RunEdgeBlocks(Tile& tile) {
  const AttentionArgs& args = *tile.args;
  const int n = tile.n, head_dim = args.head_dim;
  const int end = (SeenFrom(tile, n - 1) + kSlots - 1) / kSlots * kSlots;
  int begin = SeenFrom(tile, 0) / kSlots * kSlots;
  int first = 0, last = 0;  // the queries that see some of the block
  for (; begin < end && begin < tile.length[n - 1]; begin += kSlots) {
    while (tile.length[first] <= begin) ++first;
    while (last < n && SeenFrom(tile, last) < begin + kSlots) ++last;
    if (first >= last) continue;
    tile.n = last;
    for (int i = first; i < last; ++i) {
      const int hidden = SeenFrom(tile, i) - begin, left = tile.length[i] - begin;
      tile.hidden[i] = hidden > 0 ? hidden : 0;
      tile.visible[i] = left < kSlots ? left : kSlots;
    }
    LookAhead(tile, begin);
    kScores<L>[static_cast<int>(args.k_type)](tile, first, KeysOf(args, begin / kSlots));
    CapScores<L>(args, tile.p + first * kSlots, last - first);
    const std::byte* const values = ValuesOf(args, begin / kSlots);
    Softmax<L, Sight::kPart>(tile, first, values);
    for (int i = first; i < last; ++i) {
      float* const acc = tile.acc + i * head_dim;
      for (int d = 0; d < head_dim; ++d) acc[d] *= tile.factor[i];
      tile.factor[i] = 1.0f;
    }
    kPartValues<L>[static_cast<int>(args.v_type)](tile, first, values);
  }
  tile.n = n;
  return begin;
}

// out = acc / sum for each query.
template <class L>
void WriteResults(const Tile& tile) {
  const int in_keys = tile.args->values_in_keys, head_dim = tile.args->head_dim;
  for (int i = 0; i < tile.n; ++i) {
    const float factor = 1.0f / tile.sum[i];
    float* out = tile.out[i];
    if (in_keys > 0) {
      for (int d = 0; d < in_keys; ++d) out[d] = tile.acc[SumAt<L>(tile.n, d, i)] * factor;
      continue;
    }
    const float* acc = tile.acc + i * head_dim;
    for (int d = 0; d < head_dim; ++d) out[d] = acc[d] * factor;
  }
}

template <class L>
void RunTile(Tile& tile) {
  const int in_keys = tile.args->values_in_keys,
            n_sums = in_keys > 0 ? LanesOf(tile.n) * in_keys : tile.n * tile.args->head_dim;
  for (int i = 0; i < n_sums; ++i) tile.acc[i] = 0.0f;
  for (int i = 0; i < kQueries; ++i) {
    const bool sink = tile.args->sinks != nullptr && i < tile.n;
    tile.max[i] = sink ? tile.sink[i] : kMinusInf;
    tile.sum[i] = sink ? 1.0f : 0.0f;
  }
  tile.keys_ahead = kSlots * BlocksAhead<L>(tile, static_cast<int>(tile.args->k_stride));
  tile.values_ahead = kSlots * BlocksAhead<L>(tile, static_cast<int>(tile.args->v_stride));
  int begin = tile.args->window > 0 ? RunEdgeBlocks<L>(tile) : 0;
  if constexpr (L::kWholeBlocks) {
    const int together = BlocksTogether<L>(tile);
    const bool few = tile.n <= kLanes / 2, worth = L::kIntegerBytes > 0 && together > 1;
    if (few && (worth || !tile.has_integer_values())) {
      const int whole = tile.length[0] / kSlots;
      for (int b = begin / kSlots; b < whole; b += together)
        RunWholeBlocks<L>(tile, b, whole - b < together ? whole - b : together);
      begin = begin > whole * kSlots ? begin : whole * kSlots;
    }
  }
  RunBlocks<L>(tile, begin);
  WriteResults<L>(tile);
}

// Divides the scratch buffer.
template <class L>
void PlaceTile(Tile& tile) {
  const int head_dim = tile.args->head_dim, groups = tile.groups();
  float* at = tile.args->scratch;
  const auto take = [&at](int floats) {
    float* const begin = at;
    at += floats;
    return begin;
  };
  tile.acc = take(kQueries * head_dim);
  tile.p = take(kQueries * kSlots);
  tile.max = take(kQueries);
  tile.sum = take(kQueries);
  tile.factor = take(kQueries);
  tile.share = take(kQueries);
  tile.queries = {
      .words = reinterpret_cast<std::int32_t*>(take(kQueries * head_dim / kQuad * L::kQuadWords)),
      .start = reinterpret_cast<std::int32_t*>(take(kQueries * groups)),
      .scale = take(kQueries * groups)};
  tile.weights = {.of = reinterpret_cast<std::int8_t*>(take(kQueries * groups * kSlots / 4)),
                  .unit = take(kQueries * groups),
                  .ratio = take(groups * (kSlots + 1)),
                  .units = 127.0f * (tile.has_fours() ? Fours<L>::kUnits : Eights<L>::kUnits)};
}

template <class L>
void Attention(const AttentionArgs& args) {
  Tile tile;
  tile.args = &args;
  PlaceTile<L>(tile);
  const int n_queries = args.n_rows * args.n_group,
            n_values = args.values_in_keys > 0 ? args.values_in_keys : args.head_dim;
  const int most = args.values_in_keys > 0 ? kKeyValueQueries<L> : kQueries;
  for (int begin = 0; begin < n_queries; begin += most) {
    tile.n = n_queries - begin < most ? n_queries - begin : most;
    for (int i = 0; i < tile.n; ++i) {
      const int row = (begin + i) / args.n_group, g = (begin + i) % args.n_group;
      tile.q[i] = args.q + row * args.q_stride + g * args.head_dim;
      tile.out[i] = args.out + row * args.out_stride + g * n_values;
      tile.length[i] = SeenLength(args, row);
      if (args.sinks != nullptr) tile.sink[i] = args.sinks[g];
    }
    if (args.k_type == tensor::KvType::kQ8_0) PackQueries<L, Eights<L>>(tile);
    if (args.k_type == tensor::KvType::kQ4_0) PackQueries<L, Fours<L>>(tile);
    RunTile<L>(tile);
  }
}

}  // namespace
}  // namespace foretoken::kernels::generic
