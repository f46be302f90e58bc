// SPDX-License-Identifier: Apache-2.0
// model/forward.h: one pass of a llama-like network, as every thread of the team walks it.
//
//   x = embedding
//   for each layer:   h = norm(x);  q, k, v = W h;  rotate, store k and v, attend;  x += Wo a
//                     h = norm(x);  x += Wdown (silu(Wgate h) * Wup h)
//   logits = Woutput norm(x)          for the rows that asked
//
// A head's pass begins otherwise: an EAGLE-3 head with x = feature and h = [norm(embedding),
// norm(feature)] for its block's q, k and v; an MTP head with x = Wmix [norm(embedding),
// norm(feature)].
//
// Each phase splits its work by rows, tiles or heads over the threads; Sync() stands where a phase
// reads what others wrote. No split changes a bit of any result.
#pragma once

#include "base/machine/thread_pool.h"
#include "kernels/kernels.h"
#include "model/cache_memory.h"
#include "model/config.h"
#include "model/pass.h"
#include "model/rope_table.h"
#include "model/scratch.h"
#include "model/weights.h"

namespace foretoken::model {

// What all passes of a model share.
struct PassParts {
  const ModelConfig& config;
  const Weights& weights;
  const RopeTable& rope;
  const kernels::Kernels& kernels;
  ThreadPool& pool;
  Scratch& scratch;
  CacheMemory& cache;
  const FeatureRequest& feature_request;
  float* features;  // [max_rows, parts * dim], where the request has parts
};

class ForwardPass {
 public:
  ForwardPass(const PassParts& parts, const Pass& pass) noexcept
      : config_(parts.config),
        weights_(parts.weights),
        rope_(parts.rope),
        kernels_(parts.kernels),
        pool_(parts.pool),
        scratch_(parts.scratch),
        cache_(parts.cache),
        feature_request_(parts.feature_request),
        features_(parts.features),
        pass_(pass) {}

  // alone: on the calling thread only.
  void Run(bool alone) noexcept;

 private:
  void Thread(int thread) noexcept;
  void Embed(int thread) noexcept;
  void EnterEagle(int thread) noexcept;
  void EnterMtp(int thread) noexcept;
  void PairRow(int row, const float* feature) noexcept;
  void Keep(int layer, int thread) noexcept;
  void KeepNormed(int thread) noexcept;
  void Norm(const float* weight, Activation& out, bool quantise, int thread) noexcept;
  void ProjectQkv(const LayerWeights& layer, const Activation& input, int thread) noexcept;
  void Attend(int layer, const LayerWeights& weights, int thread) noexcept;
  void AttendHead(int layer, const LayerWeights& weights, const kv::Segment& segment, int head,
                  int thread) noexcept;
  void PrepareRow(const LayerWeights& weights, int row, Pos position, int head) noexcept;
  void GateUp(const LayerWeights& layer, int thread) noexcept;
  void Output(int thread) noexcept;

  // y = W x (or y += W x) for the thread's share of the tiles.
  void Multiply(const Linear& w, const Activation& x, int n_rows, float* y, std::int64_t y_stride,
                bool accumulate, int tile_begin, int tile_end) noexcept;
  void MultiplyShare(const Linear& w, const Activation& x, Activation& y, bool accumulate,
                     int thread) noexcept;
  void QuantiseColumns(Activation& a, int row_begin, int n_rows, int begin, int end) noexcept;
  void Sync() noexcept { pool_.Barrier(); }

  const ModelConfig& config_;
  const Weights& weights_;
  const RopeTable& rope_;
  const kernels::Kernels& kernels_;
  ThreadPool& pool_;
  Scratch& scratch_;
  CacheMemory& cache_;
  const FeatureRequest& feature_request_;
  float* features_;
  const Pass& pass_;
};

}  // namespace foretoken::model
