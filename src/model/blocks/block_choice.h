// SPDX-License-Identifier: Apache-2.0
// model/blocks/block_choice.h: which blocks of a cache a row sees beside the first one and those of its window:
// those in which a key may fit its queries best.
//
// A block's score is the most that a key within its bounds (memory/key_bounds.h) can give, summed over the
// queries g that share the keys: sum over d of max(q[g][d], 0) * most[d] + min(q[g][d], 0) * least[d].
// Where scores are equal, the earlier block is taken. A block whose score is NaN is never taken.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace foretoken::model {

// The working memory of one thread.
class BlockChoice {
 public:
  // For caches of n_blocks blocks, and heads of at most head_dim dimensions.
  BlockChoice(int n_blocks, int head_dim);

  struct Seen {
    const std::int32_t* blocks;
    std::int32_t length;  // positions of them
  };
  // What a row sees that skips args.skipped_blocks blocks behind the first one: of these it gets `best`
  // back, at most kMaxBestBlocks.
  // args: one row. bounds: those of the head (KeyBounds::Of). Valid until the next call.
  Seen Choose(const kernels::Kernels& kernels, const kernels::AttentionArgs& args,
              const std::uint16_t* bounds, int best) noexcept;

 private:
  void Score(const kernels::Kernels& kernels, const kernels::AttentionArgs& args,
             const std::uint16_t* bounds) noexcept;
  void KeepBest(const kernels::AttentionArgs& args, int best) noexcept;

  struct Scored {
    float score;
    std::int32_t place;  // in the list of the sequence's blocks
    // The worst one is the heap's first.
    bool operator<(const Scored& other) const noexcept {
      return score != other.score ? score > other.score : place < other.place;
    }
  };
  std::vector<float> queries_;        // [2 head_dim]
  std::vector<float> scores_;         // [n_blocks, rounded up to 16]
  std::vector<std::uint8_t> wanted_;  // [tiles of 16 blocks]
  std::vector<Scored> best_;          // a heap
  std::vector<std::int32_t> seen_;    // [n_blocks]
};

}  // namespace foretoken::model
