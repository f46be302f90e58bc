// SPDX-License-Identifier: Apache-2.0
// draft/networks/assistant_drafter.h: drafters whose layers read the target's cache, as Gemma 4's
// assistants do.
//
// With C committed tokens the target's cache holds C - 1 positions, and the newest feature is that of
// position C - 2. A row of the assistant combines a token with a feature, and sees all positions of
// the cache:
//
//   row          token     feature
//   first        x_C-1     f_C-2, the target's               -> the distribution of x_C
//   each next    a draft   the assistant's own of the row before
//
// All rows of a proposal stand at position C - 1, because nothing is added to the cache. So there is
// no prompt to read, and nothing to take back.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "draft/networks/chain.h"
#include "draft/networks/reducible_drafter.h"
#include "draft/registry.h"
#include "kernels/kernels.h"
#include "kv/block_tables.h"
#include "model/config.h"
#include "model/runner.h"

namespace foretoken::draft {

// An assistant for the settings' head. Errors: kInvalidArgument (the target keeps no cache).
[[nodiscard]] Result<std::unique_ptr<Drafter>> MakeAssistant(DrafterSettings settings);

class AssistantDrafter final : public ReducibleDrafter {
 public:
  // settings.runner: runs the assistant that settings.head describes, with room for a row of each
  // sequence. settings.target_cache must outlive the drafter.
  explicit AssistantDrafter(DrafterSettings settings);

  bool ReportsLogits() const override { return true; }
  bool ReadsTargetCache() const override { return true; }
  model::FeatureRequest Needs() const override { return {.normed = true}; }
  void Begin(const SequenceStart& start) override;
  void Propose(std::span<const Ask> asks, std::span<round::Proposal> proposals) noexcept override;
  void Observe(std::span<const Observation> observations) noexcept override;
  void End(SeqId seq) noexcept override;
  Work TakeWork() noexcept override { return std::exchange(work_, {}); }

 private:
  struct Sequence {
    Chain chain;
    AlignedBuffer<float> feature, own;  // [width]: the target's newest, that of the newest row
    Pos position = -1;                  // of the target's feature; -1: there is none
  };

  bool Ready(SeqId seq) const noexcept;
  bool DraftNext() noexcept;
  void DrawAll(const model::PassResult& result) noexcept;

  std::unique_ptr<model::Runner> runner_;
  const kv::BlockTables& target_;
  const int width_, max_positions_;
  const int window_;  // of its passes (model/pass.h)
  std::vector<Sequence> sequences_;
  // The pass that is being built; the constructor reserves the memory.
  AlignedBuffer<float> features_;  // [sequences, width]
  std::vector<Token> tokens_;
  std::vector<kv::Segment> segments_;
  std::vector<int> logit_rows_;
  Work work_;
};

}  // namespace foretoken::draft
