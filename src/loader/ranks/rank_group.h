// SPDX-License-Identifier: Apache-2.0
// loader/ranks/rank_group.h: what rank 0's engines and the other ranks know of each other.
#pragma once

#include <memory>
#include <vector>

#include "base/machine/thread_pool.h"
#include "comm/ranks.h"
#include "foretoken/options.h"
#include "foretoken/ranks.h"
#include "kernels/kernels.h"
#include "loader/drafts/draft_files.h"
#include "loader/ranks/open_order.h"
#include "model/local_runner.h"
#include "model/ranks/division.h"
#include "model/ranks/message.h"
#include "model/ranks/speeds.h"

namespace foretoken {

class RankGroup::Impl {
 public:
  // n_sharing: ranks that may use the same processors as this one, with it.
  Impl(std::unique_ptr<comm::Ranks> ranks, int n_sharing)
      : ranks_(std::move(ranks)), n_sharing_(n_sharing) {}

  comm::Ranks& ranks() { return *ranks_; }

  // The threads of this rank, where options ask for so many (0: what the processors allow).
  [[nodiscard]] Result<int> ThreadsFor(int asked) const;

  // Rank 0: lets the others make their teams of threads, and measures with them how fast each rank is.
  // Errors: those of a rank that can make none, kRankLost.
  [[nodiscard]] Status Prepare(const loader::TeamOrder& team, const kernels::Kernels& kernels,
                               ThreadPool& pool);
  // The other ranks' part of it.
  [[nodiscard]] Status MeasureSpeeds(const kernels::Kernels& kernels, ThreadPool& pool);

  // Divides a network among the ranks, by their speeds. REQUIRES: Prepare.
  void Divide(model::RunnerOptions& options) {
    options.ranks = ranks_.get();
    options.division = division();
  }
  // Divides a draft model that the ranks compute sooner together than rank 0 alone, and heads, which
  // share matrices with the target.
  void DivideDraft(loader::DraftPart& draft);
  model::Division division() const { return {ranks_->rank(), shares_}; }
  const std::vector<int>& shares() const { return shares_; }
  const model::RankSpeeds& speeds() const { return speeds_; }

  // A number for a network, never the same twice.
  int NextNumber() { return next_number_++; }

  // Rank 0: lets the others leave.
  void Leave();

 private:
  const std::unique_ptr<comm::Ranks> ranks_;
  const int n_sharing_;
  model::RankSpeeds speeds_;  // measured once
  std::vector<int> shares_;
  int next_number_ = 0;
};

namespace loader {

// The threads of an engine; where ranks share its work, the others make theirs too. Sets
// options.threads. Errors: a number out of range, and those of Prepare.
[[nodiscard]] Result<std::unique_ptr<ThreadPool>> MakeTeam(EngineOptions& options,
                                                           const kernels::Kernels& kernels);

}  // namespace loader
}  // namespace foretoken
