// SPDX-License-Identifier: Apache-2.0
// engine/step/scheduler.h: who takes part in a pass, how many rows each sequence has, and which
// blocks of the cache they use.
//
// Rows: sequences that decode come first, each with room for a whole draft. Prompts follow, the one
// with the least left first. Where others may wait for a pass (everywhere but in GenerateBatch),
// prompts get no more rows than keep it short.
//
// Blocks: where they run out, the youngest request is preempted: it loses its blocks, waits, and
// reads its text again when there is room. The oldest request can take all blocks, and each request
// fits alone (Preparation), so there is always one that makes progress.
#pragma once

#include <span>
#include <vector>

#include "draft_length/round_costs.h"
#include "engine/requests/sequence.h"
#include "engine/step/pass_plan.h"
#include "engine/step/prompt_rows.h"
#include "engine/step/proposals.h"
#include "foretoken/drafts.h"
#include "kv/block_tables.h"
#include "loader/drafts/drafter_set.h"

namespace foretoken::engine {

struct SchedulerSettings {
  int max_rows = 0;  // of a pass
  int max_sequences = 1;
  int most_mixed_drafts = kMaxDraft;  // of a sequence, in a pass that also reads a prompt
  bool kv_cache = true;               // false: each pass reads whole texts
  bool prefix_cache = true;
};

class Scheduler {
 public:
  // All references must outlive it.
  Scheduler(const SchedulerSettings& settings, kv::BlockTables& cache,
            const loader::DrafterSet& drafters, const draft_length::RoundCosts& costs,
            const PromptRows& prompt_rows);

  // REQUIRES: a plan with the capacity of max_sequences. Allocates nothing.
  void Plan(const Sequences& sequences, PassPlan& plan) noexcept;

  // Whether the request may join those that run: it fits beside what they may still need.
  bool MayJoin(const Job& job, const Sequences& sequences) const noexcept;
  // Whether the cache has blocks for all of a pass.
  bool Fits(const PassPlan& plan, const Proposals& drafts) const noexcept;

  // Counted since the engine was opened.
  std::int64_t cached_prompt_tokens() const { return cached_prompt_tokens_; }
  std::int64_t preemptions() const { return preemptions_; }

 private:
  void Resume(const Sequences& sequences) noexcept;
  void SharePrefix(Sequence& s) noexcept;
  std::span<const Token> SharableText(const Sequence& s) const noexcept;
  int PlanDecoding(const Sequences& sequences, int rows, PassPlan& plan) noexcept;
  void OrderPrompts(const Sequences& sequences) noexcept;
  void PlanPrompts(const Sequences& sequences, int rows, PassPlan& plan) noexcept;
  struct PromptBudget {
    int rows = 0;       // that prompts may have
    int room = 0;       // that the pass has
    bool ends = false;  // a prompt ends in this pass
  };
  PlannedSequence PlanPrompt(Sequence& s, PromptBudget& budget) const noexcept;
  double PlainPassUs(const PassPlan& plan) const noexcept;
  void BoundMixedDrafts(const Sequences& sequences, PassPlan& plan) const noexcept;
  void SettleBlocks(const Sequences& sequences, PassPlan& plan) noexcept;
  void DropDrafts(const Sequences& sequences, PassPlan& plan) const noexcept;
  int BlocksOf(const PlannedSequence& planned) const noexcept;
  int SpareBlocks(const Sequences& sequences) const noexcept;
  SeqId YoungestHolder(const Sequences& sequences, SeqId seq) const noexcept;
  void Preempt(Sequence& s) noexcept;
  bool Reads(const Sequence& s) const noexcept;
  int MissingRows(const Sequence& s) const noexcept;
  int MostDecodingRows() const noexcept;
  int MostDrafts(const Sequence& s, int rows) const noexcept;

  const SchedulerSettings settings_;
  kv::BlockTables& cache_;
  const loader::DrafterSet& drafters_;
  const draft_length::RoundCosts& costs_;
  const PromptRows& prompt_rows_;
  std::vector<SeqId> order_;    // sequences that are not paused, oldest first
  std::vector<SeqId> prompts_;  // those of them that read, in the order in which they get rows
  std::int64_t cached_prompt_tokens_ = 0, preemptions_ = 0;
};

}  // namespace foretoken::engine
