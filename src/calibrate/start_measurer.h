// SPDX-License-Identifier: Apache-2.0
// calibrate/start_measurer.h: measures passes and drafts quickly, while an engine is opened. Each is
// read again until other readings say the same, and where its neighbours contradict it.
#pragma once

#include <vector>

#include "calibrate/draft_meter.h"
#include "calibrate/pass_meter.h"
#include "calibrate/reading.h"
#include "calibrate/subject.h"
#include "draft/drafter.h"
#include "foretoken/tools/measure.h"

namespace foretoken::calibrate {

struct PassReading {
  PassCost cost;  // us.median: what the readings say; 0: there is none
  Reading reading = {};
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
  double RowUs(PassMeter& passes);
  void TakeAgain(PassMeter& passes, std::vector<PassReading>& readings);
  void MeasureExperts(PassMeter& passes, std::vector<PassCost>& costs);
  double RoundUs(DraftMeter& meter, PassMeter* pass, int sequences, int drafts, int most_repeats);
  // Since the caches were filled.
  double SpentUs() const;
  bool Affordable(double us) const;

  const Subject& subject_;
  double expert_us_ = 0, begin_us_ = 0;
  double row_us_ = 0, last_row_us_ = 0;  // of a pass of one row: the quickest, and the last one
};

}  // namespace foretoken::calibrate
