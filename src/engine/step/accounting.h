// SPDX-License-Identifier: Apache-2.0
// engine/step/accounting.h: what a pass teaches: the statistics of its requests, the counts of the
// engine, the costs of passes, and what the draft-length controller learns.
#pragma once

#include <vector>

#include "engine/requests/sequence.h"
#include "engine/step/estimates.h"
#include "engine/step/pass_record.h"
#include "foretoken/stats.h"
#include "kv/block_tables.h"
#include "loader/drafts/drafter_set.h"

namespace foretoken::engine {

class Accounting {
 public:
  // The references must outlive it. max_logit_rows: of a pass; prefix_cache: texts share blocks.
  Accounting(Estimates& estimates, const kv::BlockTables& cache, const loader::DrafterSet& drafters,
             int max_logit_rows, bool prefix_cache)
      : estimates_(estimates),
        cache_(cache),
        drafters_(drafters),
        max_logit_rows_(max_logit_rows),
        prefix_cache_(prefix_cache),
        first_drafts_(static_cast<std::size_t>(drafters.size())) {}

  // REQUIRES: a pass that was committed, whose ended sequences are still there.
  void Observe(const PassRecord& record, const PassTimes& times) noexcept;

  EngineCounts& counts() { return counts_; }
  const EngineCounts& counts() const { return counts_; }
  // Rounds of requests of temperature 0 in which this drafter drafted, and those whose first draft was accepted.
  struct FirstDrafts {
    int rounds = 0, accepted = 0;
  };
  const FirstDrafts& first_drafts(int drafter) const {
    return first_drafts_[static_cast<std::size_t>(drafter)];
  }
  std::vector<RowCost> PassCosts() const;
  double PlainStepUs(int requests) const noexcept;

 private:
  // What a pass verifies and reads.
  struct PassShape {
    int rows = 0, prompt_rows = 0;
    int sequences = 0, context = 0;  // that decode; positions before a round's row, in the mean

    draft_length::ContextPass decoding() const {
      return {std::max(1, rows), std::max(1, sequences), context};
    }
  };
  PassShape ShapeOf(const PassRecord& record) const noexcept;
  void ObserveOne(const PassRecord& record, std::size_t i, const PassTimes& times) noexcept;
  void CountTokens(const PassRecord& record, std::size_t i) noexcept;
  void CountRound(const DraftedSequence& drafted, double us) noexcept;
  void CountPass(const PassShape& shape, const PassTimes& times,
                 const model::PassResult& result) noexcept;
  void CountPrediction(const PassRecord& record, const PassShape& shape, const PassTimes& times,
                       double rest_us) noexcept;
  void CountFirstDraft(const PassRecord& record, std::size_t i) noexcept;
  void TellController(const PassRecord& record, std::size_t i, double us) noexcept;
  void LearnCosts(const PassRecord& record, const PassShape& shape,
                  const PassTimes& times) noexcept;

  Estimates& estimates_;
  const kv::BlockTables& cache_;
  const loader::DrafterSet& drafters_;
  const int max_logit_rows_;
  const bool prefix_cache_;
  std::vector<FirstDrafts> first_drafts_;  // [drafters]
  EngineCounts counts_;
  int last_context_ = 0;  // of the last pass that decoded
};

}  // namespace foretoken::engine
