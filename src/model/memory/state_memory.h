// SPDX-License-Identifier: Apache-2.0
// model/memory/state_memory.h: the memory of recurrent layers: what they keep of each sequence in place of
// keys and values.
//
// A layer keeps a state, which has taken in all positions before one of them (kv::StateMove), and the
// inputs of the newest positions: those that the state has not taken in yet, and those before them
// that a convolution still sees. The inputs lie in a ring, at their position modulo its size. So a
// position that was taken back is overwritten by the one that takes its place.
//
// How much that is depends neither on the length of a text nor on the number of drafts.
//
// Checkpoints are copies of states, with the inputs that a convolution sees behind them, and those of the
// next kv::kCopiedInputs positions, as far as the sequence has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/ids.h"
#include "base/machine/thread_pool.h"

namespace foretoken::model {

struct StateOptions {
  int n_sequences = 0;
  int rows = 0;  // inputs of positions that a state has not taken in: TablesShape::state_rows
  int n_checkpoints = 0;
};

// What one layer keeps.
struct StateLayer {
  int input = 0;           // numbers of a position's input; 0: the layer is not recurrent
  int seen = 0;            // positions before a row that its convolution sees
  std::int64_t state = 0;  // numbers of the state
};

class StateMemory {
 public:
  StateMemory(std::span<const StateLayer> layers, const StateOptions& options);
  // Bytes that the constructor reserves.
  static std::size_t Bytes(std::span<const StateLayer> layers, const StateOptions& options);
  // How many of them are for checkpoints.
  static std::size_t CheckpointBytes(std::span<const StateLayer> layers,
                                     const StateOptions& options);

  // The input that was kept of a position: [input].
  float* Input(int layer, SeqId seq, Pos position) noexcept {
    const Layer& l = layers_[static_cast<std::size_t>(layer)];
    return At(l, seq) + l.state + position % l.ring * l.input;
  }
  // Positions whose inputs a layer keeps.
  int ring(int layer) const noexcept { return layers_[static_cast<std::size_t>(layer)].ring; }
  float* State(int layer, SeqId seq) noexcept {
    return At(layers_[static_cast<std::size_t>(layer)], seq);
  }

  // The parts that hold a checkpoint.
  void AddParts(int checkpoint, std::vector<std::span<std::byte>>& parts) noexcept;

  int n_checkpoints() const noexcept { return n_checkpoints_; }
  // What all layers keep of a sequence whose state has taken in the positions before `at`. Each thread
  // of the team that runs copies a part.
  void Save(SeqId seq, Pos at, int checkpoint, const ThreadPool& pool, int thread) noexcept;
  void Restore(SeqId seq, Pos at, int checkpoint, const ThreadPool& pool, int thread) noexcept;

 private:
  struct Layer {
    std::int64_t begin = 0, stride = 0;            // of the first sequence; from one to the next
    std::int64_t first_copy = 0, copy_stride = 0;  // the same of checkpoints
    std::int64_t state = 0, input = 0;
    int ring = 1, seen = 0;
  };
  // Calls copy(of the sequence, of the checkpoint, how many numbers) for a thread's parts.
  template <typename Copy>
  void ForEachPart(SeqId seq, Pos at, int checkpoint, const ThreadPool& pool, int thread,
                   Copy&& copy) noexcept;
  float* At(const Layer& layer, SeqId seq) noexcept {
    return memory_.data() + layer.begin + seq * layer.stride;
  }

  std::vector<Layer> layers_;
  int n_checkpoints_ = 0;
  AlignedBuffer<float> memory_;  // by layer, then by sequence; behind these by layer and checkpoint
};

}  // namespace foretoken::model
