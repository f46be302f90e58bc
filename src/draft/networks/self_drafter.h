// SPDX-License-Identifier: Apache-2.0
// draft/networks/self_drafter.h: the target drafts for itself, with a copy of its own weights in fewer
// bits (Tiwari et al. 2025, "QuantSpec").
//
// The copy reads the target's cache and states, so there is no prompt to read. With C committed tokens
// the cache holds C - 1 positions, and the rows of a proposal stand behind them:
//
//   position    0 ... C-2   |  C-1     C     C+1   ...
//   token                   |  x_C-1   d_1   d_2   ...     (one pass for each)
//   gives                   |  d_1     d_2   d_3   ...
//
// The copy computes the keys and values of these rows, and the inputs of recurrent layers. The rows are
// pending while it drafts and are rolled back before Propose returns. The verifying pass covers the same
// positions and writes its own. A recurrent state takes in only positions that the target has computed.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "draft/networks/chain.h"
#include "draft/networks/reducible_drafter.h"
#include "draft/registry.h"
#include "kv/block_tables.h"
#include "model/runner.h"

namespace foretoken::draft {

extern const DrafterSpec kSelfSpec;

class SelfDrafter final : public ReducibleDrafter {
 public:
  // settings.runner: runs the copy, with room for a row of each sequence of settings.target_cache, which
  // must outlive the drafter.
  explicit SelfDrafter(DrafterSettings settings);

  bool ReportsLogits() const override { return true; }
  bool ReadsTargetCache() const override { return true; }
  int NarrowWindow() const override { return narrow_window_; }
  void UseNarrowWindow(bool narrow) noexcept override { narrow_ = narrow; }
  void Begin(const SequenceStart& start) override;
  void Propose(std::span<const Ask> asks, std::span<round::Proposal> proposals) noexcept override;
  void Observe(std::span<const Observation> observations) noexcept override;
  void End(SeqId seq) noexcept override;
  Work TakeWork() noexcept override { return std::exchange(work_, {}); }

 private:
  Chain& At(SeqId seq) { return chains_[static_cast<std::size_t>(seq)]; }
  bool Ready(SeqId seq) const noexcept;
  int Room(SeqId seq, int n_rows, int n_taken) const noexcept;
  bool DraftNext(int step) noexcept;

  std::unique_ptr<model::Runner> runner_;
  kv::BlockTables& target_;
  const int window_, narrow_window_, best_blocks_;  // of its passes (model/pass.h)
  bool narrow_ = false;
  std::vector<Chain> chains_;  // [sequences]
  // The constructor reserves the memory: all rows of a proposal, and the pass that is being built.
  std::vector<kv::Segment> pending_, segments_;
  std::vector<Token> tokens_;
  std::vector<int> logit_rows_;
  Work work_;
};

}  // namespace foretoken::draft
