// SPDX-License-Identifier: Apache-2.0
// model/model.h: a loaded network and its forward pass.
//
// A Model knows nothing of requests, sampling or speculation: it turns a Batch and a cache into
// logits. A row's logits depend only on the rows its sequence holds at earlier positions, never on
// the batch, its chunks or the number of threads (see kernels.h).
//
// The model is immutable after Load but for the rope table and the scratch that a pass uses: one
// Forward at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "kernels/kernels.h"
#include "kv/cache.h"
#include "model/batch.h"
#include "model/config.h"
#include "model/rope_table.h"
#include "model/scratch.h"
#include "model/team_choice.h"
#include "model/weights.h"

namespace foretoken::model {

struct ModelOptions {
  int max_rows = 256;       // of one pass
  int max_logit_rows = 16;  // rows with logits in one pass
  int max_positions = 0;    // of a sequence
  // Rows of the output head to keep, ascending; empty: all. Not for heads.
  std::vector<std::int32_t> output_tokens = {};
};

class Model {
 public:
  // `checkpoint`, `kernels` and `pool` must outlive the model.
  [[nodiscard]] static Result<std::unique_ptr<Model>> Load(
      const formats::Checkpoint& checkpoint, const ModelConfig& config, const ModelOptions& options,
      const kernels::Kernels& kernels, ThreadPool& pool, const LoadOptions& load);

  // A head that is fed by `target`'s features. Embedding and output head that its file leaves out
  // are the target's: target and its checkpoint must outlive it. Errors: also kMismatch (a head of
  // another target).
  [[nodiscard]] static Result<std::unique_ptr<Model>> LoadHead(
      const formats::Checkpoint& checkpoint, const ModelConfig& config, const ModelOptions& options,
      const kernels::Kernels& kernels, ThreadPool& pool, const Model& target);

  // From now on each pass keeps these hidden states of all its rows.
  void KeepFeatures(const FeatureRequest& request);
  // Of the last pass's rows: [n_rows, features_width]. Null where none are kept.
  const float* features(int row) const {
    return feature_request_.parts() == 0 ? nullptr : features_.data() + row * features_width();
  }
  std::int64_t features_width() const {
    return std::int64_t{feature_request_.parts()} * config_.dim;
  }

  const ModelConfig& config() const { return config_; }
  const ModelOptions& options() const { return options_; }
  std::int64_t weight_bytes() const { return weights_.resident_bytes(); }

  // As of Weights. CheckFiles is for the thread of Forward, after the pass.
  [[nodiscard]] Status CheckFiles() { return weights_.CheckFiles(pool_); }
  [[nodiscard]] Status QuickCheckFiles() const { return weights_.QuickCheckFiles(); }
  const Weights& weights() const { return weights_; }

  // Runs the batch; its rows must be reserved in the cache (a Transaction is open). Logits of
  // batch.logit_rows[i] are row i of logits().
  void Forward(const Batch& batch, kv::Cache& cache) noexcept;

  // Whether all of row i are numbers, and finite.
  bool finite(int i) const noexcept;
  const float* logits() const { return scratch_.logits.data(); }  // [max_logit_rows, logits_stride]
  std::int64_t logits_stride() const { return scratch_.logits_stride; }
  // Heads: the own feature of the i-th row with logits, input of a next row. [dim]
  const float* own_feature(int i) const;
  // The token of each column of the logits, where the output head has only some of the vocabulary;
  // else empty: column i is token i.
  std::span<const std::int32_t> output_tokens() const { return weights_.output_tokens; }
  // The token itself where the embedding has a row for it, else one that stands in for it: the
  // first, which is the unknown token of SentencePiece vocabularies. For drafters, whose target may
  // have more tokens.
  Token Readable(Token token) const noexcept {
    return token < weights_.embedding_rows() ? token : 0;
  }

 private:
  Model(const ModelConfig& config, const ModelOptions& options, const kernels::Kernels& kernels,
        ThreadPool& pool, Weights weights);

  ModelConfig config_;
  ModelOptions options_;
  const kernels::Kernels& kernels_;
  ThreadPool& pool_;
  Weights weights_;
  RopeTable rope_;
  Scratch scratch_;
  int team_ = 1;  // threads of the last pass
  TeamChoice team_choice_;
  FeatureRequest feature_request_;
  AlignedBuffer<float> features_;  // [max_rows, features_width]
  std::vector<int> logit_rows_;    // heads: of the last pass
  std::uint64_t layer_work_;       // multiplications of one row in one layer
};

}  // namespace foretoken::model
