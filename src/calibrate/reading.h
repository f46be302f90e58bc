// SPDX-License-Identifier: Apache-2.0
// calibrate/reading.h: repeated readings of one piece of work on a machine that does other things and
// whose speed changes.
//
// Work may take longer than it must, but never less. So the quickest reading counts, unless the core
// itself was faster then: where the quickest readings of two pieces of work were taken at different
// speeds, their ratio is wrong. Readings therefore stand between two passes of one row, and are told
// in such passes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace foretoken::calibrate {

class Reading {
 public:
  static constexpr double kEqual = 1.05;  // readings that say the same

  // us: of the work; 0 or less: no reading. before_us, after_us: of a pass of one row right before and
  // right after it; 0: there was none. Where the two differ, the speed changed meanwhile, and the
  // ratio is not used.
  void Add(double us, double before_us = 0, double after_us = 0) {
    if (us <= 0) return;
    second_us_ = quickest_us_ == 0 || us < quickest_us_ ? quickest_us_
                 : second_us_ == 0                      ? us
                                                        : std::min(us, second_us_);
    quickest_us_ = quickest_us_ == 0 ? us : std::min(us, quickest_us_);
    if (before_us <= 0 || after_us <= 0) return;
    between_rows_ = true;
    if (!Equal(before_us, after_us)) return;
    const double ratio = 2 * us / (before_us + after_us);
    ratios_.insert(std::upper_bound(ratios_.begin(), ratios_.end(), ratio), ratio);
  }

  // The microseconds of the work where a pass of one row takes row_us; 0: there is no reading.
  double Us(double row_us) const { return ratios_.empty() ? quickest_us_ : Ratio() * row_us; }

  // Whether other readings say the same.
  bool settled() const {
    if (!between_rows_) return second_us_ > 0 && second_us_ <= kEqual * quickest_us_;
    return ratios_.size() >= kLeastRatios &&
           1 < std::count_if(ratios_.begin(), ratios_.end(),
                             [known = Ratio()](double ratio) { return Equal(ratio, known); });
  }

 private:
  static constexpr std::size_t kLeastRatios = 3;

  static bool Equal(double a, double b) { return std::max(a, b) <= kEqual * std::min(a, b); }
  // The lower quartile: lost moments make ratios larger, and only a change of the speed that both
  // passes of one row missed makes one smaller.
  double Ratio() const { return ratios_[(ratios_.size() - 1) / 4]; }

  double quickest_us_ = 0, second_us_ = 0;  // 0: none
  bool between_rows_ = false;               // passes of one row were timed
  std::vector<double> ratios_;              // to a pass of one row, ascending
};

}  // namespace foretoken::calibrate
