// SPDX-License-Identifier: Apache-2.0
// model/network.h: the blocks of a network in order, and the walk over their phases.
//
//   entry | layer 0: mixer, feed-forward part, what else it has | layer 1: ... | output
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/machine/thread_pool.h"
#include "model/blocks/output.h"
#include "model/blocks/phase.h"
#include "model/config.h"
#include "model/pass_work.h"
#include "model/rope_table.h"
#include "model/weights/weights.h"

namespace foretoken::model {

struct LayerPlace;  // blocks/attention.h
class NextFeature;  // blocks/heads/next_feature.h
class Selector;     // blocks/heads/selector.h
class Transition;   // blocks/heads/transition.h

// Calls the phases that the pass wants, and `barrier` between two of them unless both are divided
// by rows. Every thread of a team walks the same way.
template <typename Barrier>
void Walk(std::span<const Phase> phases, const Pass& pass, int thread, Barrier&& barrier) noexcept {
  bool first = true;
  Split before = Split::kRows;
  for (const Phase& phase : phases) {
    if (phase.wanted != nullptr && !phase.wanted(pass)) continue;
    if (!first && (before != Split::kRows || phase.split != Split::kRows)) barrier();
    phase.run(phase.block, pass, thread);
    before = phase.split;
    first = false;
  }
}

class Network {
 public:
  // All references must outlive the network.
  Network(const ModelConfig& config, const Weights& weights, const Workspace& space,
          int max_positions);
  ~Network();

  // From now on every pass writes these hidden states of its rows to features, [max_rows, parts *
  // dim].
  void Keep(const FeatureRequest& request, float* features);

  // Runs the pass on the team, or on the calling thread alone.
  void Run(const Pass& pass, ThreadPool& pool, bool alone) noexcept;

  // The output that computes the logits of the pass.
  const Output& OutputOf(const Pass& pass) const noexcept {
    return pass.reduced ? *reduced_output_ : output_;
  }
  // The states of the last pass's rows, if it wanted them.
  Activation states() const noexcept { return space_.scratch.normed.View(config_.dim); }
  // A head's own feature of the i-th row of logits in the last pass.
  const float* OwnFeature(const Pass& pass, int i) const noexcept;
  // None where the network has no selector, or the pass read no tokens.
  Candidates CandidatesOf(const Pass& pass) const noexcept;
  const PassWork& work() const noexcept { return work_; }

 private:
  const RopeTable* RopeOf(const RopeConfig* config);
  std::unique_ptr<Block> MakeMixer(const LayerConfig& config, const LayerWeights& weights,
                                   const LayerPlace& place);
  void AddLayer(int layer);
  void AddConvolvedLayer(const LayerConfig& config, const LayerWeights& weights,
                         const LayerPlace& place, std::vector<std::unique_ptr<Block>>& blocks);
  void AddPhases();
  bool DraftsBlocks() const noexcept { return config_.head && config_.head->drafts_blocks(); }
  const std::vector<Phase>& PhasesOf(const Pass& pass) const noexcept;
  void ExtendRopes(const Pass& pass) noexcept;
  void NoteRowLengths(const Pass& pass) noexcept;

  struct Rope {
    RopeConfig config;
    RopeTable table;
  };
  struct Kept {
    int layer;  // stands before this layer; the number of layers: behind the last
    std::unique_ptr<Block> block;
  };

  const ModelConfig& config_;
  const Weights& weights_;
  const Workspace space_;
  const int max_positions_;
  const PassWork work_;
  std::deque<Rope> ropes_;  // different ones; blocks point to the tables
  std::vector<std::unique_ptr<Block>> entry_;
  std::vector<std::vector<std::unique_ptr<Block>>> layers_;  // the blocks of each, in order
  Output output_;
  std::optional<Output> reduced_output_;    // of heads
  std::unique_ptr<NextFeature> next_;       // of assistants
  std::unique_ptr<Transition> transition_;  // null where there is none
  std::unique_ptr<Selector> selector_;      // null where there is none
  std::vector<Kept> kept_;
  std::unique_ptr<Block> states_;  // null: a head's
  std::vector<Phase> phases_;
  // Block drafters have these in passes with the target's features, and with their own.
  std::vector<Phase> injection_phases_, transition_phases_;
};

}  // namespace foretoken::model
