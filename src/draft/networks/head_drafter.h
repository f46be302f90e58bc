// SPDX-License-Identifier: Apache-2.0
// draft/networks/head_drafter.h: drafters of one or a few blocks that read the target's hidden states: EAGLE-3 and MTP
// heads.
//
// A row of the head combines a token with the feature of the position before it:
//
//   position     0      1          2          ...  C-1
//   token        x_0    x_1        x_2        ...  x_C-1          (committed)
//   feature      f_0    f_1        f_2        ...                 up to f_C-2: the target has
//                                                                 processed all but the newest
//   row                 (x_1,f_0)  (x_2,f_1)  ...  (x_C-1,f_C-2)  -> the distribution of x_C
//
// An MTP head has a row (x_0, 0) before these, so its row i holds x_i; row i of an EAGLE-3 head
// holds x_i+1. Features arrive through Observe and wait there. The next proposal reads all of them
// in one pass, whose last row gives the first draft. Each further row combines the draft with the
// head's own feature. Where a text's beginning came from a cache, without features, the text begins
// behind it for the head. Rows of drafts are approximate: they leave the cache with the proposal, and
// accepted positions are read again with the target's features.
#pragma once

#include <memory>
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

class HeadDrafter final : public ReducibleDrafter {
 public:
  // runner: runs the head that `config` describes; its max_rows is at least the target's, its
  // max_logit_rows at least the number of sequences in `tables`, which have as many blocks as the
  // runner. shared: tokens that may be drafted. window: of its passes (model/pass.h).
  HeadDrafter(std::unique_ptr<model::Runner> runner, const model::HeadConfig& config,
              const kv::TablesShape& tables, const SharedTokens& shared, int max_draft,
              const kernels::Kernels& kernels, int window = 0);

  bool ReportsLogits() const override { return true; }
  model::FeatureRequest Needs() const override;
  bool StartsAnywhere() const override { return true; }
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
    AlignedBuffer<float> own;  // [dim]: the head's feature of its newest row
    Pos base = 0;              // of the text's position that row 0 is for
    bool full = false;         // the text is longer than the head's context: no more drafts
  };

  void StartReading(SeqId seq, Pos base) noexcept;
  void StartPass() noexcept;
  void AddWaiting(SeqId seq, int most) noexcept;
  void ReadWaiting(SeqId seq) noexcept;
  void CatchUp() noexcept;
  bool DraftFirst() noexcept;
  bool DraftNext() noexcept;
  const model::PassResult& Run(bool own_features) noexcept;
  void DrawAll(const model::PassResult& result) noexcept;

  std::unique_ptr<model::Runner> runner_;
  kv::BlockTables cache_;
  const model::HeadConfig config_;
  const int width_;  // of a target's feature row
  const int window_;
  std::vector<Sequence> sequences_;
  // The pass that is being built; the constructor reserves the memory.
  AlignedBuffer<float> features_;  // [max_rows, width] or [sequences, dim]
  std::vector<Token> tokens_;
  std::vector<kv::Segment> segments_;
  std::vector<int> logit_rows_, kept_, committed_;
  std::vector<SeqId> logit_seqs_;
  Work work_;
};

}  // namespace foretoken::draft
