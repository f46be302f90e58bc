// SPDX-License-Identifier: Apache-2.0
// calibrate/start_measurer.h: measures passes and drafts quickly, while an engine is opened. The
// quickest reading of each counts. It is taken again until another reading says the same, and where
// its neighbours contradict it.
#pragma once

#include <algorithm>
#include <vector>

#include "calibrate/pass_meter.h"
#include "calibrate/subject.h"
#include "draft/drafter.h"
#include "foretoken/tools/measure.h"

namespace foretoken::calibrate {

// Readings of the same work, which may take longer than it must, but never less.
class Quickest {
 public:
  static constexpr double kEqual = 1.05;  // two readings that say the same

  void Add(double us) {
    if (us <= 0) return;  // no reading
    second_us_ = us_ == 0 || us < us_ ? us_ : second_us_ == 0 ? us : std::min(us, second_us_);
    us_ = us_ == 0 ? us : std::min(us, us_);
  }
  double us() const { return us_; }  // 0: there is none
  bool settled() const { return second_us_ > 0 && second_us_ <= kEqual * us_; }

 private:
  double us_ = 0, second_us_ = 0;
};

struct PassReading {
  PassCost cost;  // us.median: the quickest so far; 0: none
  Quickest quickest = {};
};

class StartMeasurer {
 public:
  explicit StartMeasurer(const Subject& subject) : subject_(subject) {}

  // One row and a round of `drafts` come first, in case there is no time for more. If several
  // requests may run, wider passes are measured too. At least one row is measured. A first pass, which
  // may wait for the disk, is not timed, and the time limit begins after it.
  std::vector<PassCost> Passes(int drafts);
  // What one more distinct expert costs, which Passes has measured; 0: not known. The costs that
  // Passes gave are those of rows that choose their experts independently.
  double expert_us() const { return expert_us_; }

  // The costs of one more draft, for one sequence and for all together, and of a row that the
  // drafter's model reads; 0: not known. first: how many further drafts the first one costs.
  struct DraftCosts {
    double one_us = 0, all_us = 0, row_us = 0;
    double first = 1;
    bool measured = false;  // the context has room for it
  };
  DraftCosts Drafts(draft::Drafter& drafter);

 private:
  void Read(PassMeter& passes, PassReading& reading);
  void TakeAgain(PassMeter& passes, std::vector<PassReading>& readings);
  void MeasureExperts(PassMeter& passes, std::vector<PassCost>& costs);
  // Since the caches were filled.
  double SpentUs() const;
  bool Affordable(double us) const;

  const Subject& subject_;
  double expert_us_ = 0, row_us_ = 0;  // row_us_: of a pass of one row
  double begin_us_ = 0;
};

}  // namespace foretoken::calibrate
