// SPDX-License-Identifier: Apache-2.0
// model/weights.h: a model file's tensors, checked and repacked for the kernels.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/machine/thread_pool.h"
#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "model/config.h"
#include "model/embedding_table.h"
#include "model/tile_cache.h"
#include "tensor/dtype.h"

namespace foretoken::model {

// A matrix [n_out, k] in tiles; null where the architecture has none.
struct Linear {
  tensor::TileType type = tensor::TileType::kF32;
  int n_out = 0, k = 0, n_tiles = 0;
  const std::byte* tiles = nullptr;

  bool quantised() const { return tensor::IsQuantised(type); }
};

struct AttentionWeights {
  const float* norm = nullptr;  // [dim]; null where the layer has none
  Linear q, k, v, o;            // [heads * head_dim, dim] ...; o: [dim, heads * head_dim]
  const float *q_bias = nullptr, *k_bias = nullptr, *v_bias = nullptr;
  const float *q_norm = nullptr, *k_norm = nullptr;  // [head_dim]
};

struct GatedFfnWeights {
  const float* norm = nullptr;  // [dim]
  Linear gate, up, down;        // [width, dim], [width, dim], [dim, width]
};

// Its parts are of the same kinds as those of the LayerConfig.
struct LayerWeights {
  std::variant<AttentionWeights> mixer;
  std::variant<GatedFfnWeights> feed_forward;
};

// What a head has before its layer.
struct HeadWeights {
  Linear mix;  // fc [dim, features * target_dim]; eh_proj [dim, 2 dim]
  const float *token_norm = nullptr,
              *feature_norm = nullptr;   // [dim] of the embedding, the feature
  const float* features_norm = nullptr;  // [features * target_dim] before fc, where there is one
};

// How weights are loaded, and what there is to say about it.
struct LoadOptions {
  const TileCache* cache = nullptr;                 // null: nothing is kept
  std::function<void(double)> on_progress = {};     // fraction; on the calling thread
  std::function<void(std::string)> on_notice = {};  // what went wrong and did no harm
};

class Weights {
 public:
  // Checks every tensor the configuration asks for (presence, shape, type), then repacks on all
  // threads of the pool. The file's pages are released as they are read, so resident memory stays
  // near the file's size. Tiles that the cache kept are mapped instead. The checkpoint must outlive
  // the weights: embedding rows are read from it. Errors: kInvalidFile (a missing or misshapen
  // tensor, named), kUnsupported (a type without kernels, named), kIo (the file was changed
  // meanwhile).
  // output_tokens: rows of the output head to keep, ascending; empty: all.
  [[nodiscard]] static Result<Weights> Load(const formats::Checkpoint& checkpoint,
                                            const ModelConfig& config,
                                            std::span<const std::int32_t> output_tokens,
                                            ThreadPool& pool, const LoadOptions& options);

  // The same for a head (config.head is set). What its file leaves out, embedding and output head,
  // is the target's, whose weights and checkpoint must outlive it. Errors: also kMismatch (a head
  // of another target: width, blocks, vocabulary).
  [[nodiscard]] static Result<Weights> LoadHead(const formats::Checkpoint& checkpoint,
                                                const ModelConfig& config, const Weights& target,
                                                const ModelConfig& target_config, ThreadPool& pool);

  // Only the checks of Load, for readers of their own.
  [[nodiscard]] static Status Check(const formats::Checkpoint& checkpoint,
                                    const ModelConfig& config);

  // The embedding of a token, as f32. out: [dim].
  void Embed(std::int32_t token, float* out) const noexcept { embedding_->Read(token, out); }
  std::int32_t embedding_rows() const { return embedding_->rows(); }

  // Whether what was read from files since the last call was still what Load found there: the kept
  // tiles and the embedding's rows. (Checkpoint::Check asks for the model file itself.) Error: kIo,
  // with the file's name. The quick one asks for less and may be called on any thread.
  [[nodiscard]] Status CheckFiles(ThreadPool& pool);
  [[nodiscard]] Status QuickCheckFiles() const;
  // The kept tiles and the tensors they were made of, for a SourceCheck; empty where tiles were not
  // kept by an earlier start.
  const TileMemory& tiles() const { return tiles_; }
  std::span<const formats::TensorView* const> sources() const { return sources_; }

  std::vector<LayerWeights> layers;
  const float* output_norm = nullptr;
  Linear output;  // [vocabulary, dim]; the embedding where the file ties them
  std::vector<std::int32_t> output_tokens;  // of its rows, where they are not all; else empty
  std::vector<float> rope_factors;          // [n_rot / 2] or empty
  std::optional<HeadWeights> head;
  std::int64_t resident_bytes() const { return static_cast<std::int64_t>(tiles_.size_bytes()); }

 private:
  friend class WeightsLoader;
  TileMemory tiles_;  // all matrices, one after another
  std::vector<std::vector<float>> vectors_;
  std::vector<const formats::TensorView*> sources_;
  std::shared_ptr<EmbeddingTable> embedding_;  // heads may share their target's
};

// Bytes that the repacked matrices of a file will take.
std::int64_t ResidentBytes(const formats::Checkpoint& checkpoint);

// The vocabulary size a file's embedding has; needed before the weights are loaded. Errors: no such
// tensor.
[[nodiscard]] Result<int> VocabularyRows(const formats::Checkpoint& checkpoint);

}  // namespace foretoken::model
