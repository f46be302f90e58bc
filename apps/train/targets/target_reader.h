// SPDX-License-Identifier: Apache-2.0
// train/targets/target_reader.h: a frozen target, as heads and drafts learn from it.
//
// The engine's own network computes the hidden states. So a target may have any architecture and
// number type that foretoken runs, and a head learns from exactly the numbers that it will read.
// Matrices that a head shares with the target, or begins with, are expanded from the file, those
// that are asked for and no others.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/machine/thread_pool.h"
#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "kv/block_tables.h"
#include "model/local_runner.h"
#include "text/tokenizer/tokenizer.h"
#include "train/networks/network.h"
#include "train/run/trainer.h"

namespace foretoken::train {

class TargetReader {
 public:
  // Loads the target for windows of training.window tokens, on training.threads threads. Errors:
  // those of the engine for models that it does not run; kInvalidArgument (no path, a window that
  // is longer than the target's context); kTooLarge, kIo (not enough room).
  [[nodiscard]] static Result<std::unique_ptr<TargetReader>> Open(const std::string& path,
                                                                  const TrainingOptions& training);

  const std::string& path() const { return file_->path(); }
  const formats::Checkpoint& file() const { return *file_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  // The number of rows of the embedding is its `vocabulary`.
  const model::ModelConfig& config() const { return runner_->config(); }
  LogitShape logit_shape() const { return {config().logit_scale, config().logit_soft_cap}; }
  std::uint64_t hash() const { return hash_; }  // changes with any weight of the file

  // From now on Read gives the residual stream that enters these layers; n_layers: that leaves the
  // last one.
  void Keep(const std::vector<int>& layers);
  struct States {
    torch::Tensor features;  // [batch, length, layers * dim]; of width 0 without Keep
    torch::Tensor normed;    // [batch, length, dim], which the output head multiplies
  };
  // F32, on the best device. tokens: int64 [batch, length]; each row is a text of its own.
  // REQUIRES: length <= the window.
  States Read(const torch::Tensor& tokens);

  // Rows of the embedding, unscaled: F32 [..., dim], on the best device.
  torch::Tensor Embedded(const torch::Tensor& tokens) const;
  // Rows of the output head: those of `ids`, or all where it is empty. [n, dim], on the best device.
  torch::Tensor OutputRows(const std::vector<std::int64_t>& ids, torch::Dtype type) const;
  // A tensor of the file, its rows last; nothing where there is none.
  std::optional<torch::Tensor> Values(const std::string& name) const;

 private:
  TargetReader(std::unique_ptr<formats::Checkpoint> file,
               std::unique_ptr<text::Tokenizer> tokenizer, int threads)
      : file_(std::move(file)), tokenizer_(std::move(tokenizer)), pool_(threads) {}
  Status Load(const TrainingOptions& training);
  void ReadWindow(const std::int64_t* tokens, int length, float* states);

  std::unique_ptr<formats::Checkpoint> file_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  ThreadPool pool_;
  std::unique_ptr<model::LocalRunner> runner_;
  std::optional<kv::BlockTables> tables_;
  std::vector<Token> window_;  // its tokens
  std::uint64_t hash_ = 0;
};

}  // namespace foretoken::train
