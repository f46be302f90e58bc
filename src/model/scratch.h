// SPDX-License-Identifier: Apache-2.0
// model/scratch.h: the buffers that a pass writes, allocated once. Rows that are never touched cost
// no resident memory.
#pragma once

#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/ids.h"
#include "kernels/choice.h"
#include "model/blocks/block_choice.h"
#include "model/config.h"
#include "tensor/block_layout.h"

namespace foretoken::model {

// A view of activations in f32, and in int8 with a scale and two sums for each 32 values, which is
// what quantised weights read.
struct Activation {
  float* x = nullptr;       // [rows, stride]
  std::int64_t stride = 0;  // width rounded up to 16: matmul writes whole tiles
  int width = 0;
  std::int8_t* q = nullptr;   // [rows, width]
  float* d = nullptr;         // [rows, width / 32]
  std::int32_t* s = nullptr;  // [rows, width / 32, 2]

  float* Row(int row) const noexcept { return x + row * stride; }
  // The rows from `row` on.
  Activation From(int row) const noexcept {
    const std::int64_t blocks = std::int64_t{row} * width / tensor::kBlock;
    return {.x = Row(row),
            .stride = stride,
            .width = width,
            .q = q == nullptr ? q : q + blocks * tensor::kBlock,
            .d = d == nullptr ? d : d + blocks,
            .s = s == nullptr ? s : s + 2 * blocks};
  }
};

// The memory of activations of up to max_width values. Layers of different widths share it.
class ActivationMemory {
 public:
  ActivationMemory() = default;
  // quantised: with room for the int8 form.
  ActivationMemory(int max_rows, int max_width, bool quantised = true);
  // REQUIRES: width <= max_width.
  Activation View(int width) noexcept;
  std::size_t size_bytes() const noexcept;

 private:
  int max_width_ = 0;
  AlignedBuffer<float> x_, d_;
  AlignedBuffer<std::int8_t> q_;
  AlignedBuffer<std::int32_t> s_;
};

// What mixtures of experts write.
struct ExpertsScratch {
  ActivationMemory logits;             // [rows, experts] of the router, then probabilities
  ActivationMemory scores;             // [rows, experts]: what experts are chosen by
  ActivationMemory routed;             // [rows, dim]: the input of a router with its own norm
  ActivationMemory shared;             // [rows, 1]: the gate of the shared part
  ActivationMemory gate, up;           // [rows * used, width], ordered by expert
  ActivationMemory sum;                // [rows, dim]: the weighted results
  AlignedBuffer<std::int32_t> chosen;  // [rows, used]
  AlignedBuffer<float> weights;        // [rows, used]
  // Rows ordered by expert: those of expert e lie in [begins[e], begins[e + 1]), rows ascending.
  AlignedBuffer<std::int32_t> begins;  // [experts + 1]
  AlignedBuffer<std::int32_t> rows;    // [rows * used]
  AlignedBuffer<float> row_weights;    // [rows * used]
  std::int64_t n_distinct = 0;  // experts that the pass has read so far, added over its layers

  std::size_t size_bytes() const noexcept;
};

// What latent attention writes. The results of all heads are in `attention` of Scratch.
struct LatentScratch {
  ActivationMemory q_a;       // [rows, q_rank]: what is between the two matrices of the queries
  ActivationMemory q;         // [rows, heads * query_dim]
  ActivationMemory key;       // [rows, key_dim]
  ActivationMemory queries;   // [rows, heads * key_dim], in the space of the latents
  ActivationMemory attended;  // [rows, heads * rank]

  std::size_t size_bytes() const noexcept;
};

// What a rank says of its part of a row of logits.
struct RankBest {
  kernels::PartBest best;
  std::int32_t finite = 1;
};

// What the choices of tokens write, where there are several ranks (ranks/choices.h).
struct ChoiceScratch {
  std::int64_t stride = 0;  // rows of logits of a thread
  // [threads, stride]
  AlignedBuffer<kernels::PartBest> bests;
  AlignedBuffer<double> sums;
  AlignedBuffer<kernels::RaceWinner> winners;
  // [logit rows]: of this rank, then of all ranks
  AlignedBuffer<RankBest> rank_bests;
  AlignedBuffer<double> rank_sums;
  AlignedBuffer<kernels::RaceWinner> rank_winners;
  AlignedBuffer<kernels::PartBest> best;
  AlignedBuffer<float> scales;  // of the weights; 0: left open
  AlignedBuffer<Token> chosen;

  kernels::PartBest* Bests(int thread) noexcept { return bests.data() + thread * stride; }
  double* Sums(int thread) noexcept { return sums.data() + thread * stride; }
  kernels::RaceWinner* Winners(int thread) noexcept { return winners.data() + thread * stride; }
};

// Positions whose inputs a recurrent head prepares at once: at least the rows of a draft, and so many
// that the queries and keys that heads share are worth it.
inline constexpr int kMostPositions = 80;

// What recurrent layers with heads write. Their results are in `attention` of Scratch.
struct RecurrentScratch {
  ActivationMemory inputs;  // [rows, what is kept of a position]
  ActivationMemory gate;    // [rows, heads * head_dim]
  AlignedBuffer<float>
      work;  // [threads, work_stride]: a copy of a head's state, and inputs of positions
  std::int64_t work_stride = 0;

  float* Work(int thread) noexcept { return work.data() + thread * work_stride; }
  std::size_t size_bytes() const noexcept;
};

// What the selector of a block drafter writes.
struct SelectorScratch {
  ActivationMemory gates;               // [logit rows, rank]
  AlignedBuffer<std::int32_t> columns;  // [logit rows, candidates]
  AlignedBuffer<float> scores;          // [logit rows, candidates before, candidates]
  AlignedBuffer<float> work;            // [threads, work_stride]: numbers of tokens, or maxima
  std::int64_t work_stride = 0;

  float* Work(int thread) noexcept { return work.data() + thread * work_stride; }
  std::size_t size_bytes() const noexcept;
};

// Messages of gathers hold as many whole rows as fit this, and one more.
constexpr std::size_t kGatherBytes = std::size_t{16} << 20;

struct Scratch {
  ActivationMemory residual;   // the residual stream: [rows, dim]
  ActivationMemory normed;     // [rows, dim]
  ActivationMemory q, k, v;    // [rows, heads * head_dim] ...
  ActivationMemory attention;  // [rows, heads * head_dim]
  ActivationMemory gate;       // [rows, width]; silu(gate) * up is written here
  ActivationMemory up;         // [rows, width]
  ActivationMemory
      delta;             // [rows, dim]: what is scaled or normed, then added to the residual stream
  ActivationMemory sum;  // [rows, dim]: of several feed-forward parts
  ActivationMemory last;              // [logit rows, dim]
  ActivationMemory mixed;             // heads: [rows, features], the target's features before fc
  ActivationMemory pair;              // heads: [rows, 2 dim], embedding and feature, each normed;
                                      // assistants: [rows, 2 target_dim], neither normed
  ActivationMemory coefficients;      // [rows, those of a local convolution]
  ActivationMemory next;              // assistants: [logit rows, target_dim], their features
  ActivationMemory layer_inputs;      // [rows, layers * layer_input]
  ActivationMemory layer_embeddings;  // [rows, layers * layer_input], before they are mixed
  ActivationMemory logits;            // [logit rows, vocabulary]
  AlignedBuffer<std::uint8_t> not_finite;  // [threads, max_logit_rows]: in a thread's part of a row
  std::int64_t not_finite_stride = 0;
  AlignedBuffer<float> attention_scratch;  // [threads, attention_scratch_stride]
  std::int64_t attention_scratch_stride = 0;
  AlignedBuffer<std::int32_t> row_len;        // [max_rows]: positions that a row sees
  AlignedBuffer<float> certainties;           // block drafters: [max_logit_rows]
  AlignedBytes gathered;                      // the message of a gather, of several ranks
  AlignedBuffer<std::int32_t> gather_begins;  // [ranks + 1]: the parts of that message
  ExpertsScratch experts;
  LatentScratch latent;
  ChoiceScratch choices;
  RecurrentScratch recurrent;
  SelectorScratch selector;
  std::vector<BlockChoice> block_choices;  // [threads], where the cache keeps bounds of keys

  std::uint8_t* NotFinite(int thread) noexcept {
    return not_finite.data() + thread * not_finite_stride;
  }

  Scratch(const ModelConfig& config, int max_rows, int max_logit_rows, int n_threads,
          int n_ranks = 1);
  std::size_t size_bytes() const noexcept;
};

}  // namespace foretoken::model
