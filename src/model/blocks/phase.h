// SPDX-License-Identifier: Apache-2.0
// model/blocks/phase.h: how the arithmetic of a network is divided among the threads of a team.
//
// A block declares phases. A phase is what every thread does between two barriers: it takes its
// share of rows, tiles or heads, and reads what earlier phases wrote. The walk over all phases
// (model/network.h) is the only place with a barrier in it. No division changes a bit of a result.
//
// Where several ranks compute a network, each holds a part of the tiles and heads, which its threads
// share. A block that reads what others computed adds a Gather (blocks/gather.h) before.
#pragma once

#include <vector>

#include "base/machine/thread_pool.h"
#include "comm/ranks.h"
#include "kernels/kernels.h"
#include "model/config.h"
#include "model/memory/cache_memory.h"
#include "model/memory/state_memory.h"
#include "model/pass.h"
#include "model/ranks/division.h"
#include "model/scratch.h"
#include "model/weights/linear.h"

namespace foretoken::model {

enum class Split {
  // A thread reads and writes nothing but its share of the pass's rows, ShareOf(n_rows, thread). So
  // no barrier is needed between two such phases.
  kRows,
  kOther
};

struct Phase {
  void (*run)(const void* block, const Pass& pass, int thread) noexcept;
  const void* block;
  Split split;
  bool (*wanted)(const Pass& pass) = nullptr;  // null: in every pass
};

// What all blocks of a network compute with.
struct Workspace {
  const kernels::Kernels& kernels;
  const ThreadPool& pool;
  Scratch& scratch;
  CacheMemory& cache;
  StateMemory& states;
  comm::Ranks& ranks;
  const Division& division;

  ThreadPool::Share RowsOf(const Pass& pass, int thread) const noexcept {
    return pool.ShareOf(pass.n_rows(), thread);
  }
  // The thread's share of the tiles that this rank has of a matrix, in units of `unit` tiles.
  ThreadPool::Share TilesOf(const Linear& w, int thread, int unit = 1) const noexcept {
    const ThreadPool::Share share = pool.ShareOf(w.n_tiles, thread, unit);
    return {w.first_tile + share.begin, w.first_tile + share.end};
  }
};

// y = max(g, 0)^2.
inline void ReluSquared(const float* g, const float*, int n, float* y) {
  for (int i = 0; i < n; ++i) {
    const float x = g[i] < 0 ? 0 : g[i];
    y[i] = x * x;
  }
}

using GateKernel = void (*)(const float* g, const float* u, int n, float* y);
inline GateKernel KernelOf(GateFunction function, const kernels::Kernels& kernels) {
  switch (function) {
    case GateFunction::kGelu:
      return kernels.gelu_mul;
    case GateFunction::kLimitedSwiglu:
      return kernels.limited_swiglu;
    case GateFunction::kReluSquared:
      return ReluSquared;
    default:
      return kernels.silu_mul;
  }
}

class Block {
 public:
  virtual ~Block() = default;
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Appends the block's phases. They refer to the block, which must outlive them.
  virtual void AddPhases(std::vector<Phase>& phases) const = 0;
  // Appends those for passes of a block drafter that read features (blocks/heads/injection.h).
  virtual void AddInjectionPhases(std::vector<Phase>&) const {}
};

// The phase that calls a member function: PhaseOf<&Attention::Project>(*this, Split::kOther).
template <auto kMember, typename B>
Phase PhaseOf(const B& block, Split split, bool (*wanted)(const Pass&) = nullptr) {
  const auto run = [](const void* self, const Pass& pass, int thread) noexcept {
    (static_cast<const B*>(self)->*kMember)(pass, thread);
  };
  return {.run = run, .block = &block, .split = split, .wanted = wanted};
}

}  // namespace foretoken::model
