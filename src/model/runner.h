// SPDX-License-Identifier: Apache-2.0
// model/runner.h: the only door to a network.
//
// A runner owns the weights of one network and the memory of its cache, and executes passes. It
// knows nothing of requests, sampling or speculation. Nobody else knows where the network runs: in
// this process (LocalRunner), elsewhere, or nowhere at all (FakeRunner, for tests).
//
// The caller decides which blocks of the cache's memory a sequence has (kv/block_tables.h) and
// names them in the pass. The logits of a row depend only on the tokens of its sequence up to that
// row, and on the windows of the passes that read them, never on the other rows, on how a text is
// divided into passes, or on the number of threads.
//
// One thread uses a runner at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "model/pass.h"

namespace foretoken::model {

// The mixtures of experts of a network; all 0 where it has none.
struct ExpertsInfo {
  int n_layers = 0;               // with a mixture
  int n_experts = 0, n_used = 0;  // of each of them
  std::int64_t expert_bytes = 0;  // weights of one expert
};

// What callers may ask of a runner. Fixed when it is made, but for features_width.
struct RunnerInfo {
  int max_rows = 0;        // of one pass
  int max_logit_rows = 0;  // rows with logits in one pass
  int n_blocks = 0;        // of the cache's memory
  int n_layers = 0;
  int dim = 0;                      // width of a hidden state
  int vocabulary = 0;               // columns of the logits
  int readable = 0;                 // the network has an embedding for the tokens [0, readable)
  std::int64_t features_width = 0;  // of the features that passes keep; 0: none
  std::int64_t weight_bytes = 0;
  ExpertsInfo experts;
  // The token of each column of the logits, where the output head covers a part of the vocabulary.
  // Empty: column i is token i.
  std::span<const Token> output_tokens = {};
  // The tokens of its reduced output, which passes may ask for in place of the whole one. Empty: it has
  // none.
  std::span<const Token> reduced_tokens = {};
  bool chooses = false;  // a row whose token alone is wanted costs less than a whole one

  // The weights that a pass reads which uses so many distinct experts, added over its layers.
  std::int64_t ReadBytes(std::int64_t distinct_experts) const noexcept {
    const std::int64_t all = std::int64_t{experts.n_layers} * experts.n_experts;
    return weight_bytes - (all - distinct_experts) * experts.expert_bytes;
  }
  // The token itself where the network has an embedding for it. Otherwise a token that stands in
  // for it: the first, which is the unknown token of SentencePiece vocabularies. Drafters need
  // this, because their target may have more tokens.
  Token Readable(Token token) const noexcept { return token < readable ? token : 0; }
};

class Runner {
 public:
  virtual ~Runner() = default;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  const RunnerInfo& info() const noexcept { return info_; }

  // False as long as the network's weights are still being made (late_runner.h): then there are no passes.
  // For the thread of the passes.
  virtual bool Ready() noexcept { return true; }

  // Runs the pass. The result is valid until the next call of Run or KeepFeatures. REQUIRES: the
  // pass keeps within the limits of info(), its segments name their blocks, and where a network is
  // a head, but no block drafter, the pass has features. Allocates nothing.
  virtual const PassResult& Run(const Pass& pass) noexcept = 0;

  // From now on each pass keeps these hidden states of all its rows.
  virtual void KeepFeatures(const FeatureRequest& request) = 0;

  // Writes zeros to blocks of the cache's memory, for those who measure: memory that nobody has
  // written is faster to read than other memory.
  virtual void ClearBlocks(std::span<const std::int32_t> blocks) noexcept = 0;

  // The memory of a block, or of a copy of a recurrent state, in parts that have the same sizes for all
  // blocks or copies. None where it is not in this process alone.
  using Parts = std::vector<std::span<std::byte>>;
  virtual void BlockParts(std::int32_t, Parts& parts) noexcept { parts.clear(); }
  virtual void StateParts(std::int32_t, Parts& parts) noexcept { parts.clear(); }

 protected:
  Runner() = default;
  RunnerInfo info_;
};

}  // namespace foretoken::model
