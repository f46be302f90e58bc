// SPDX-License-Identifier: Apache-2.0
// draft/networks/feature_queue.h: features of a sequence's positions, in order, that the network of a
// drafter has not read yet. The constructor allocates; nothing else does.
#pragma once

#include <algorithm>

#include "base/aligned_buffer.h"
#include "draft/drafter.h"

namespace foretoken::draft {

class FeatureQueue {
 public:
  // capacity: rows at most. width: numbers of a row; dim: of each of its parts.
  FeatureQueue(int capacity, int width, int dim);

  int size() const { return n_; }
  int room() const { return capacity_ - n_; }
  // The oldest rows, if a drafter should read them in a pass of their own before it drafts. Those that the
  // last round brought, or a few of several rounds, cost little beside the first draft.
  int behind() const {
    const int newest = std::min(newest_, n_);
    return n_ > std::max(kFewRows, newest) ? n_ - newest : 0;
  }
  void Clear() noexcept { n_ = newest_ = 0; }

  // Appends n rows of the observation's features, from its row `first` on. REQUIRES: n <= room().
  void Add(const Observation& o, int first, int n) noexcept;
  void AddZeros() noexcept;  // one row
  // Moves the first n rows to `to`, [n, width].
  void Take(int n, float* to) noexcept;

 private:
  static constexpr int kFewRows = 8;

  int capacity_, width_, dim_, n_ = 0;
  int newest_ = 0;             // rows of the last round: of its first token and the accepted drafts
  AlignedBuffer<float> rows_;  // [capacity, width]
};

}  // namespace foretoken::draft
