// SPDX-License-Identifier: Apache-2.0
// draft/networks/block_drafter.h: drafts a whole block in one pass of a network that reads the target's
// hidden states: DFlash (Chen et al. 2026).
//
//   position     0    1    ...  C-2    |  C-1     C      C+1    ...
//   cache        of features f_0 ... f_C-2 (committed)
//   pass                               |  x_C-1   mask   mask   ...     (the block)
//   drafts                             |          d_1    d_2    ...
//
// Features arrive through Observe and wait. A proposal first injects those that wait: their pass
// writes the keys and values of their positions, and nothing else. Then one pass reads the newest
// token and masks; its rows see everything that was injected and each other, and row i gives the
// distribution of draft i. Positions are drawn independently, so each has exactly the distribution
// that it was drawn from. The rows of a block leave the cache with the pass.
//
// A DSpark drafter also has a transition: the token before a draft adds to the logits that the draft is
// drawn from, so drafts are drawn one after another, each after a small pass without layers. Its newest
// token's row may give the first draft: then row i gives draft i + 1.
//
// A DFlash 2 drafter has a selector: of each row the pass gives a few candidates, and their logits behind
// each candidate of the row before. So drafts are drawn one after another there too, each from the
// candidates of its row alone, and without a further pass.
//
// The rows of a block do not depend on how many tokens are asked for. So a short proposal is the
// beginning of a long one, and costs nearly as much.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "draft/networks/chain.h"
#include "draft/networks/feature_queue.h"
#include "draft/networks/reducible_drafter.h"
#include "draft/registry.h"
#include "kernels/kernels.h"
#include "kv/block_tables.h"
#include "model/config.h"
#include "model/runner.h"

namespace foretoken::draft {

extern const DrafterSpec kDflashSpec;

class BlockDrafter final : public ReducibleDrafter {
 public:
  // runner: runs the drafter that `config` describes; its max_rows is at least the target's, and so
  // many whole blocks fit a pass, with logits of all their rows, as there are sequences in `tables`,
  // which have as many blocks of the cache as the runner. shared: tokens that may be drafted. most:
  // drafts of a block, if the configuration allows as many. window: of the blocks' passes
  // (model/pass.h).
  BlockDrafter(std::unique_ptr<model::Runner> runner, const model::HeadConfig& config,
               const kv::TablesShape& tables, const SharedTokens& shared, int most,
               const kernels::Kernels& kernels, int window = 0);

  bool ReportsLogits() const override { return true; }
  model::FeatureRequest Needs() const override { return {.layers = config_.feature_layers}; }
  void Begin(const SequenceStart& start) override;
  void Propose(std::span<const Ask> asks, std::span<round::Proposal> proposals) noexcept override;
  void Observe(std::span<const Observation> observations) noexcept override;
  void End(SeqId seq) noexcept override;
  int Missing(SeqId seq) const noexcept override {
    return sequences_[static_cast<std::size_t>(seq)].waiting.behind();
  }
  Work TakeWork() noexcept override { return std::exchange(work_, {}); }

  int cached(SeqId seq) const { return cache_.length(seq); }

 private:
  struct Sequence {
    Chain chain;
    FeatureQueue waiting;
    int asked = 0;      // drafts of this proposal
    int logit_row = 0;  // its first row of logits
    bool full = false;  // the text is longer than the drafter's context: no more drafts
  };
  Sequence& At(SeqId seq) { return sequences_[static_cast<std::size_t>(seq)]; }

  int MostDrafts(const Ask& ask) noexcept;
  void StartReading(SeqId seq) noexcept;
  void StartPass() noexcept;
  bool AddWaiting(SeqId seq) noexcept;
  void InjectAll() noexcept;
  void Inject() noexcept;
  void AddBlock(SeqId seq) noexcept;
  void DraftBlocks() noexcept;
  void DrawAll(const model::PassResult& result) noexcept;
  void DrawAfterTransitions(const model::PassResult& result) noexcept;
  void DrawCandidates(const model::PassResult& result) noexcept;
  int DrawCandidate(Chain& chain, std::span<const std::int32_t> columns,
                    const float* scores) noexcept;
  void KeepRows(const model::PassResult& result) noexcept;
  const model::PassResult& RunTransitions(int step) noexcept;
  bool Transits() const { return config_.transition_rank != 0; }
  bool Selects() const { return config_.n_candidates != 0; }
  int MostRows() const { return rows_ - first_row_; }
  // Parts of what KeepRows has kept for row i of the logits.
  float* LogitsOf(int i) { return kept_logits_.data() + i * columns_; }
  float* StateOf(int i) { return kept_states_.data() + i * std::int64_t{runner_->info().dim}; }

  std::unique_ptr<model::Runner> runner_;
  kv::BlockTables cache_;
  const model::HeadConfig config_;
  const int first_row_;  // of a block that gives a draft
  const int rows_;       // of a block
  const int window_;
  std::vector<Sequence> sequences_;
  // The pass that is being built; the constructor reserves the memory.
  AlignedBuffer<float> features_;  // [max_rows, features_width]
  std::vector<Token> tokens_;
  std::vector<kv::Segment> segments_;
  std::vector<int> logit_rows_, kept_;
  // With a transition: rows of the block's pass, and the pass that follows for a draft of each sequence.
  const std::int64_t columns_;                      // of the logits
  AlignedBuffer<float> kept_logits_, kept_states_;  // [sequences * MostRows(), columns or dim]
  std::vector<Token> step_tokens_;
  std::vector<kv::Segment> steps_;
  std::vector<int> step_rows_;
  // With a selector: a row of logits in which only candidates have one.
  AlignedBuffer<float> candidate_logits_;
  Work work_;
};

}  // namespace foretoken::draft
