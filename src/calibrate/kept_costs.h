// SPDX-License-Identifier: Apache-2.0
// calibrate/kept_costs.h: what engines learned of their costs and of how often their drafts are accepted, kept
// in a file between two starts. A disturbed start then knows which of its readings cannot be true, and the first
// text need not find out whether drafts pay.
//
// costs.json is a kept list (loader/kept_list.h), the engine that ended last first: an engine is
//   {"key": 16 hexadecimal digits, "agreed": engines, "passes": [[rows, us], ...],
//    "position": {"bytes_us": us, "arithmetic_us": us}, "drafts": [[one_us, all_us, row_us, first], ...],
//    "verdicts": [[drafter, evidence, position, verified, accepted], ...]}
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "draft_length/controller.h"
#include "draft_length/round_costs.h"
#include "foretoken/tools/measure.h"

namespace foretoken::calibrate {

struct KeptFigures {
  draft_length::LearnedCosts costs;
  std::vector<draft_length::LearnedVerdicts> verdicts;
  int agreed = 0;  // engines in a row that have learned the costs that the one before them had
};

class CostFile {
 public:
  static constexpr std::size_t kMostEngines = 64;  // in a file; those that ended first go

  CostFile() = default;  // keeps nothing
  // The file in this folder, which is made when it is needed. key: of the models, the processor, and
  // whatever else decides about costs.
  CostFile(std::string folder, std::uint64_t key) : folder_(std::move(folder)), key_(key) {}

  bool keeps() const { return !folder_.empty(); }
  // Nothing where no engine of this key has ended, and where others than this user can write the file.
  std::optional<KeptFigures> Read() const;
  // Counts itself whether they agree with what was kept. Writes nothing where these figures say the same as those in
  // the file, whatever the machine's speed, and an engine before has agreed, so that most engines end without a
  // write. A file that cannot be written stays as it is.
  void Write(const KeptFigures& figures) const;

 private:
  std::string folder_;
  std::uint64_t key_ = 0;
};

// Whether they are the costs of one machine and one engine, at any two speeds: no pass of rows that both have, and no
// draft, differs by more than a fifth.
bool Agree(const draft_length::LearnedCosts& kept, const draft_length::LearnedCosts& costs);

// How many times as long passes take now as they took when the costs were kept: the median over the
// rows of both, or that of one row if it is more. Passes of one row were read by far most often, so
// kept costs of other rows that were read in bad moments must not make one row look cheap. 0 where
// fewer than two row counts are in both.
double SlowerThan(const draft_length::LearnedCosts& kept, const std::vector<PassCost>& measured);
// The time that is believed, where the same work has a measured and a kept one; 0: not known. Work may
// take longer than it must, but never less, so the kept time bounds the measured one.
double Believed(double measured_us, double kept_us, double slower);

}  // namespace foretoken::calibrate
