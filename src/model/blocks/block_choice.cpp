// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/block_choice.h"

#include <algorithm>

#include "foretoken/drafts.h"
#include "tensor/block_layout.h"

namespace foretoken::model {
namespace {

constexpr int kBlocksOfTile = tensor::kTileOutputs;

}  // namespace

BlockChoice::BlockChoice(int n_blocks, int head_dim)
    : queries_(static_cast<std::size_t>(2 * head_dim)),
      wanted_(static_cast<std::size_t>((n_blocks + kBlocksOfTile - 1) / kBlocksOfTile)),
      seen_(static_cast<std::size_t>(n_blocks)) {
  scores_.resize(wanted_.size() * kBlocksOfTile);
  best_.reserve(static_cast<std::size_t>(std::min(n_blocks, kMaxBestBlocks)) + 1);
}

BlockChoice::Seen BlockChoice::Choose(const kernels::Kernels& kernels,
                                      const kernels::AttentionArgs& args,
                                      const std::uint16_t* bounds, int best) noexcept {
  const int skipped = args.skipped_blocks;
  Score(kernels, args, bounds);
  KeepBest(args, std::min({best, skipped, kMaxBestBlocks}));
  const auto places = std::span(best_);
  std::sort(places.begin(), places.end(),
            [](const Scored& a, const Scored& b) { return a.place < b.place; });
  std::int32_t* to = seen_.data();
  *to++ = args.blocks[0];
  for (const Scored& chosen : places) *to++ = args.blocks[chosen.place];
  const int n_blocks = (*args.row_len + tensor::kKvBlock - 1) / tensor::kKvBlock;
  std::copy(args.blocks + 1 + skipped, args.blocks + n_blocks, to);
  const int left_out = skipped - static_cast<int>(places.size());
  return {seen_.data(), *args.row_len - left_out * tensor::kKvBlock};
}

// Scores all blocks of each tile that has one of the skipped ones.
void BlockChoice::Score(const kernels::Kernels& kernels, const kernels::AttentionArgs& args,
                        const std::uint16_t* bounds) noexcept {
  const int dim = args.head_dim, n_tiles = static_cast<int>(wanted_.size());
  std::fill_n(queries_.begin(), 2 * dim, 0.0f);
  for (int g = 0; g < args.n_group; ++g)
    for (int d = 0; d < dim; ++d) {
      const float q = args.q[g * dim + d];
      queries_[static_cast<std::size_t>(d)] += std::max(q, 0.0f);
      queries_[static_cast<std::size_t>(dim + d)] += std::min(q, 0.0f);
    }
  std::fill(wanted_.begin(), wanted_.end(), std::uint8_t{0});
  for (int i = 1; i <= args.skipped_blocks; ++i)
    wanted_[static_cast<std::size_t>(args.blocks[i] / kBlocksOfTile)] = 1;
  for (int begin = 0, end = 0; begin < n_tiles; begin = end + 1) {
    end = begin;
    while (end < n_tiles && wanted_[static_cast<std::size_t>(end)] != 0) ++end;
    if (end == begin) continue;
    kernels.matmul[static_cast<int>(tensor::TileType::kF16)]({.tiles = bounds,
                                                              .k = 2 * dim,
                                                              .tile_begin = begin,
                                                              .tile_end = end,
                                                              .n_rows = 1,
                                                              .x = queries_.data(),
                                                              .x_stride = 2 * dim,
                                                              .xq = nullptr,
                                                              .xd = nullptr,
                                                              .xs = nullptr,
                                                              .x_rows = nullptr,
                                                              .y = scores_.data(),
                                                              .y_stride = n_tiles * kBlocksOfTile,
                                                              .accumulate = false});
  }
}

void BlockChoice::KeepBest(const kernels::AttentionArgs& args, int best) noexcept {
  best_.clear();
  for (std::int32_t i = 1; i <= args.skipped_blocks; ++i) {
    const Scored next{scores_[static_cast<std::size_t>(args.blocks[i])], i};
    if (next.score != next.score) continue;
    const bool full = static_cast<int>(best_.size()) == best;
    if (full && !(next < best_.front())) continue;
    if (full) {
      std::pop_heap(best_.begin(), best_.end());
      best_.pop_back();
    }
    best_.push_back(next);
    std::push_heap(best_.begin(), best_.end());
  }
}

}  // namespace foretoken::model
