// SPDX-License-Identifier: Apache-2.0
// foretoken/memory_needs.h: what models take of memory. It is known before anything is loaded.
#pragma once

#include <cstdint>

namespace foretoken {

// In bytes.
struct MemoryNeeds {
  std::int64_t dense = 0;        // repacked weights that every pass reads
  std::int64_t experts = 0;      // repacked weights of experts: a row reads a few of each layer
  std::int64_t cache = 0;        // keys, values and recurrent states of all sequences
  std::int64_t checkpoints = 0;  // the part of `cache` that copies of recurrent states take
  // Activations and logits of a pass, at most: what no pass touches takes no memory.
  std::int64_t scratch = 0;
  // Rows that stay in the model file and are read from there; not part of the sums.
  std::int64_t embedding = 0;

  // What must be in memory even if the experts are paged, and what is best there.
  std::int64_t Least() const { return dense + cache; }
  std::int64_t All() const { return dense + experts + cache; }
  void Add(const MemoryNeeds& other) {
    dense += other.dense;
    experts += other.experts;
    cache += other.cache;
    checkpoints += other.checkpoints;
    scratch += other.scratch;
    embedding += other.embedding;
  }
};

}  // namespace foretoken
