// SPDX-License-Identifier: Apache-2.0
// draft/networks/feature_queue.h: features of a sequence's positions, in order, that the network of a
// drafter has not read yet. The constructor allocates; nothing else does.
#pragma once

#include "base/aligned_buffer.h"
#include "draft/drafter.h"

namespace foretoken::draft {

class FeatureQueue {
 public:
  // capacity: rows at most. width: numbers of a row; dim: of each of its parts.
  FeatureQueue(int capacity, int width, int dim);

  int size() const { return n_; }
  int room() const { return capacity_ - n_; }
  void Clear() noexcept { n_ = 0; }

  // Appends n rows of the observation's features, from its row `first` on. REQUIRES: n <= room().
  void Add(const Observation& o, int first, int n) noexcept;
  void AddZeros() noexcept;  // one row
  // Moves the first n rows to `to`, [n, width].
  void Take(int n, float* to) noexcept;

 private:
  int capacity_, width_, dim_, n_ = 0;
  AlignedBuffer<float> rows_;  // [capacity, width]
};

}  // namespace foretoken::draft
