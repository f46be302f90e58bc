// SPDX-License-Identifier: Apache-2.0
// model/weights/weights.h: a model file's tensors, checked and repacked for the kernels.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/machine/thread_pool.h"
#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "model/config.h"
#include "model/ranks/division.h"
#include "model/weights/copy_types.h"
#include "model/weights/embedding_table.h"
#include "model/weights/linear.h"
#include "model/weights/tile_cache.h"

namespace foretoken::model {

struct AttentionWeights {
  const float *norm = nullptr, *post_norm = nullptr;  // [dim]; null if the layer has none
  Linear q, k, v, o;  // [heads * head_dim, dim] ...; o: [dim, heads * head_dim]
  Linear gate;        // [heads * head_dim, dim]; none without an output gate
  const float *q_bias = nullptr, *k_bias = nullptr, *v_bias = nullptr;
  const float* o_bias = nullptr;                     // [dim]
  const float *q_norm = nullptr, *k_norm = nullptr;  // [head_dim], or [heads * head_dim] ...
  const float* v_norm = nullptr;                     // [head_dim]: ones
  const float* sinks = nullptr;                      // [heads]
};

struct LatentAttentionWeights {
  const float* norm = nullptr;                              // [dim]
  Linear q_a;                                               // [q_rank, dim]; none without q_rank
  Linear q;                                                 // [heads * query_dim, q_rank or dim]
  Linear kv;                                                // [rank + n_rot, dim]
  const float *q_a_norm = nullptr, *latent_norm = nullptr;  // [q_rank], [rank]
  ExpertLinear k, v;                                        // [rank, head_dim], [value_dim, rank]
  Linear o;                                                 // [dim, heads * value_dim]
};

struct ShortConvWeights {
  const float* norm = nullptr;  // [dim]
  Linear b, c, u;               // [dim, dim]
  const float* taps = nullptr;  // [taps, dim], the oldest position's first
  Linear out;                   // [dim, dim]
};

struct DeltaNetWeights {
  const float* norm = nullptr;              // [dim]
  Linear c;                                 // [columns of the convolution, dim]
  Linear z, out;                            // [values, dim], [dim, values]
  Linear alpha, beta;                       // [value heads, dim]
  const float* taps = nullptr;              // [taps, columns], the oldest position's first
  const float *dt = nullptr, *a = nullptr;  // [value heads]
  const float* head_norm = nullptr;         // [head_dim]
  const float *q_scale = nullptr, *k_scale = nullptr;  // [head_dim]: constants
};

struct Mamba2Weights {
  const float* norm = nullptr;      // [dim]
  Linear z, c, dt;                  // [inner, dim], [columns of the convolution, dim] ...
  Linear out;                       // [dim, inner]
  const float* taps = nullptr;      // [taps, columns], the oldest position's first
  const float* tap_bias = nullptr;  // [columns]
  const float *dt_bias = nullptr, *a = nullptr, *d = nullptr;  // [heads]
  const float* group_norm = nullptr;                           // [inner], or null
};

struct GatedFfnWeights {
  const float *norm = nullptr, *post_norm = nullptr;  // [dim]; null if the layer has none
  Linear gate, up, down;                              // [width, dim], [width, dim], [dim, width]
};

struct ExpertsWeights {
  const float *norm = nullptr, *post_norm = nullptr;  // [dim]; null if there is none
  const float* router_norm = nullptr;                 // [dim], with 1 / sqrt(dim) in it, or null
  Linear router;                                      // [n_experts, dim]
  const float* scales = nullptr;                      // [n_experts], or null
  // [n_experts]; null if there is none. The first is added to the logits; the second counts for the
  // choice alone.
  const float *router_bias = nullptr, *selection_bias = nullptr;
  // [n_experts, width] ..., [n_experts, dim]; null if there are none
  const float *gate_bias = nullptr, *up_bias = nullptr, *down_bias = nullptr;
  ExpertLinear gate, up, down;  // [width, dim], [width, dim], [dim, width]
  Linear shared_router;         // [1, dim]: the gate of the shared part
  GatedFfnWeights shared;       // without a norm of its own
  bool paged = false;           // gate, up and down are read from their file when they are needed
};

// What a layer makes of its part of the inputs by layer (blocks/per_layer_input.h).
struct PerLayerInputWeights {
  Linear gate, projection;           // [layer_input, dim], [dim, layer_input]
  const float* post_norm = nullptr;  // [dim]
};
// What makes these inputs, for all layers at once.
struct PerLayerInputsWeights {
  Linear projection;            // [layers * layer_input, dim]
  const float* norm = nullptr;  // [layer_input]
};

// Around one part of a layer (blocks/heads/local_convolution.h).
struct LocalConvolutionWeights {
  const float* base = nullptr;  // [2, taps, dim]
  Linear coefficients;          // [2 * taps * groups, dim]
};

// Its parts are of the same kinds as those of the LayerConfig.
struct LayerWeights {
  std::variant<AttentionWeights, LatentAttentionWeights, ShortConvWeights, DeltaNetWeights,
               Mamba2Weights>
      mixer;
  std::optional<Mamba2Weights> beside;
  std::variant<GatedFfnWeights, ExpertsWeights> feed_forward;
  std::optional<GatedFfnWeights> dense_part;
  const float* sum_norm = nullptr;  // [dim], where there is a dense part
  // Where the configuration has a convolution.
  std::optional<LocalConvolutionWeights> around_mixer, around_feed_forward;
  const float* output_scale = nullptr;        // [1], or null
  std::optional<PerLayerInputWeights> input;  // where the configuration has a layer_input
};

// The weights of a head before its layer.
struct HeadWeights {
  // fc [dim, features * target_dim]; eh_proj [dim, 2 dim]; pre_projection [dim, 2 target_dim]
  Linear mix;
  Linear next;  // assistants: post_projection [target_dim, dim], whole on each rank
  const float *token_norm = nullptr,
              *feature_norm = nullptr;   // [dim] of the embedding, the feature
  const float* features_norm = nullptr;  // [features * target_dim] before fc, if there is one
  // Block drafters that have a transition: its matrix, [vocabulary, transition_rank]; what gives the
  // certainty, [dim + transition_rank] and [1], or null.
  Linear transition;
  const float *certainty = nullptr, *certainty_bias = nullptr;
  // Those that have a selector: [selector_rank, dim], whole on each rank.
  Linear selector;
};

// How far loading is, in bytes of tiles.
struct LoadStep {
  const char* name = "";  // "repacking", "reading kept weights"
  std::size_t done_bytes = 0, total_bytes = 0;
  bool makes = false;  // the tiles are made, because none are kept
};

Error LoadingStopped();  // by the program

// How weights are loaded, and whom to tell about it.
struct LoadOptions {
  const TileCache* cache = nullptr;  // null: no tiles are kept
  // The experts do not fit memory. The tiles are then pages of a kept file, from which a pass reads
  // the experts that its rows chose (base/files/read_ahead.h).
  bool paged = false;
  // Called on the calling thread, before the first tensor is made, and after each tensor or 256 MiB. False: stop.
  std::function<bool(const LoadStep&)> on_progress = {};
  // Set by any thread: stop, where a copy is made in the middle of a matrix too. Null: nobody does.
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::string)> on_notice = {};  // what failed without harm
};

class Weights {
 public:
  // Checks every tensor that the configuration asks for (presence, shape, type), then repacks on
  // all threads of the pool. The file's pages are released tensor by tensor as they are read, so
  // resident memory never exceeds the tiles and one tensor. Tiles that the cache kept are mapped
  // instead. The checkpoint must outlive the weights, because embedding rows are read from it.
  // output_tokens: the rows of the output head to keep, ascending; empty: all. Errors: kInvalidFile
  // (a missing tensor or one of a wrong shape, with its name), kUnsupported (a type that foretoken
  // does not compute with, with its name), kIo (the file was changed meanwhile), kTooLarge (the
  // experts should be paged, and no file can keep them), kStopped (by on_progress or stop).
  [[nodiscard]] static Result<Weights> Load(const formats::Checkpoint& checkpoint,
                                            const ModelConfig& config,
                                            std::span<const std::int32_t> output_tokens,
                                            const Division& division, ThreadPool& pool,
                                            const LoadOptions& options);

  // Loads a head (config.head is set). If its file has no embedding or no output head, the
  // target's is used, so the target's weights and checkpoint must outlive the head's. division: the
  // target's. reduced_tokens: the rows of its reduced output, ascending; empty: it has none.
  // REQUIRES: rows of its ReducibleOutput. Errors: also kMismatch (a head of another target:
  // width, blocks, vocabulary).
  [[nodiscard]] static Result<Weights> LoadHead(const formats::Checkpoint& checkpoint,
                                                const ModelConfig& config, const Weights& target,
                                                const ModelConfig& target_config,
                                                std::span<const std::int32_t> reduced_tokens,
                                                const Division& division, ThreadPool& pool);

  // A copy of a network with fewer bits (copy_types.h), made of the same file. The network's embedding,
  // and the tiles of the matrices that remain as they are, are used, so the network's weights and
  // checkpoint must outlive the copy's. division: the network's. reduced_tokens: as of a head; they are left
  // out where the output is the network's own. Errors: those of Load.
  [[nodiscard]] static Result<Weights> LoadCopy(const formats::Checkpoint& checkpoint,
                                                const ModelConfig& config, const Weights& network,
                                                const CopyTypes& types,
                                                std::span<const std::int32_t> reduced_tokens,
                                                const Division& division, ThreadPool& pool,
                                                const LoadOptions& options);
  [[nodiscard]] static Result<CopySize> SizeOfCopy(const formats::Checkpoint& checkpoint,
                                                   const ModelConfig& config,
                                                   const CopyTypes& types,
                                                   std::span<const std::int32_t> reduced_tokens,
                                                   const Division& division);

  // Only the checks of Load, for callers that read the tensors themselves.
  [[nodiscard]] static Status Check(const formats::Checkpoint& checkpoint,
                                    const ModelConfig& config);

  // The embedding of a token, as f32. out: [dim].
  void Embed(std::int32_t token, float* out) const noexcept { embedding_->Read(token, out); }
  std::int32_t embedding_rows() const { return embedding_->rows(); }
  // What the layers get of a token. out: [layers * layer_input]. REQUIRES: layer_inputs. In a block
  // drafter, what its transition gets: [transition_rank], or its selector, of a token that stands
  // before another one: [selector_rank].
  void EmbedBeside(std::int32_t token, float* out) const noexcept {
    second_embedding_->Read(token, out);
  }
  std::int32_t second_rows() const { return second_embedding_->rows(); }
  // What a selector gets of a token that stands behind another one. As many rows.
  void EmbedBehind(std::int32_t token, float* out) const noexcept {
    third_embedding_->Read(token, out);
  }

  // Checks that the kept tiles and the embeddings' rows that were read since the last call were
  // still what Load found. (Checkpoint::Check checks the model file itself.) Error: kIo with the
  // file's name. QuickCheckFiles checks less and may be called on any thread.
  [[nodiscard]] Status CheckFiles(ThreadPool& pool);
  [[nodiscard]] Status QuickCheckFiles() const;
  // The kept tiles and the places of the file they were made of, for a SourceCheck. Empty if the tiles were
  // not kept by an earlier start.
  const TileMemory& tiles() const { return tiles_; }
  std::span<const std::span<const std::byte>> sources() const { return sources_; }

  std::vector<LayerWeights> layers;
  const float* output_norm = nullptr;
  Linear output;  // [vocabulary, dim]; the embedding if the file ties them
  std::vector<std::int32_t> output_tokens;  // ids of its rows if they are not all, otherwise empty
  // Some rows of that matrix, and their ids. Empty, without tiles: there is no reduced output.
  Linear reduced_output;
  std::vector<std::int32_t> reduced_tokens;
  // What divides the frequencies of a rotation: n_rot / 2 numbers, or nothing.
  std::span<const float> FactorsOf(const RopeConfig& rope, int max_positions) const;
  std::optional<HeadWeights> head;
  std::optional<PerLayerInputsWeights> layer_inputs;
  std::int64_t resident_bytes() const { return static_cast<std::int64_t>(tiles_.size_bytes()); }

 private:
  friend class NetworkPlan;
  friend class HeadPlan;
  friend class WeightsLoader;
  [[nodiscard]] Status CheckEmbeddings() const;

  struct RopeFactors {
    std::string name;  // of their tensor, without ".weight"
    std::span<const float> values;
  };
  std::vector<RopeFactors> rope_factors_;
  const formats::TensorView* output_tensor_ = nullptr;  // of `output`; in a head maybe its target's
  TileMemory tiles_;                                    // all matrices, one after another
  std::vector<std::vector<float>> vectors_;
  std::vector<std::span<const std::byte>> sources_;
  std::shared_ptr<EmbeddingTable> embedding_;         // heads may share their target's
  std::shared_ptr<EmbeddingTable> second_embedding_;  // null where there is none
  std::shared_ptr<EmbeddingTable> third_embedding_;
};

// What the weights of a file will take, known before they are loaded.
struct WeightBytes {
  std::int64_t dense = 0, experts = 0;  // tiles; norms and biases count as dense
  std::int64_t embedding = 0;           // rows that stay in the model file, also those of layers

  std::int64_t tiles() const { return dense + experts; }
  // What one rank has of them. Small matrices that every rank has whole are not counted.
  WeightBytes PartOf(const Division& division) const;
};
WeightBytes WeightBytesOf(const formats::Checkpoint& checkpoint);

// The matrix of which a head (config.head is set) can have some rows as a reduced output: its own output
// head, or its target's. Null: it can have none, as its columns are mapped to tokens, transitions add
// to them, or a selector chooses among them.
const formats::TensorView* ReducibleOutput(const formats::Checkpoint& checkpoint,
                                           const ModelConfig& config,
                                           const formats::Checkpoint& target);
// What some rows of a matrix take as tiles.
std::int64_t BytesOfRows(const formats::TensorView& matrix, std::int64_t n_rows);

// The number of tokens in a file's embedding, which is needed before the weights are loaded.
// Errors: there is no such tensor.
[[nodiscard]] Result<int> VocabularyRows(const formats::Checkpoint& checkpoint);

}  // namespace foretoken::model
