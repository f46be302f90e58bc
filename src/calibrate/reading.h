// SPDX-License-Identifier: Apache-2.0
// calibrate/reading.h: repeated readings of one piece of work on a machine that does other things and
// whose speed changes.
//
// The quickest readings of two pieces of work may be of different speeds of the core, and then their
// ratio is wrong. Readings therefore stand between two passes of one row, and are told in such passes.
// A lost moment makes a ratio larger if it fell into the work, and smaller if it fell into one of the
// two passes; so does a change of the speed. Hence the median of the last readings counts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace foretoken::calibrate {

class Reading {
 public:
  static constexpr double kEqual = 1.05;  // costs that do not contradict each other

  // us: of the work; 0 or less: no reading. before_us, after_us: of a pass of one row right before and
  // right after it; 0: there was none.
  void Add(double us, double before_us = 0, double after_us = 0) {
    if (us <= 0) return;
    second_us_ = quickest_us_ == 0 || us < quickest_us_ ? quickest_us_
                 : second_us_ == 0                      ? us
                                                        : std::min(us, second_us_);
    quickest_us_ = quickest_us_ == 0 ? us : std::min(us, quickest_us_);
    if (before_us <= 0 || after_us <= 0) return;
    if (n_ratios_ < kMostRatios) ++n_ratios_;
    ratios_[next_++ % kMostRatios] = 2 * us / (before_us + after_us);
  }

  // The microseconds of the work where a pass of one row takes row_us; 0: there is no reading.
  double Us(double row_us) const { return n_ratios_ == 0 ? quickest_us_ : At(0.5) * row_us; }

  // Whether other readings say the same.
  bool settled() const {
    if (n_ratios_ == 0) return second_us_ > 0 && second_us_ <= kEqual * quickest_us_;
    return n_ratios_ >= kLeastRatios && At(0.75) <= kSettled * At(0.25);
  }

 private:
  static constexpr std::size_t kLeastRatios = 5, kMostRatios = 9;
  static constexpr double kSettled =
      1.1;  // of the middle half of the ratios, the most over the least

  // The ratio below which this share of them lies.
  double At(double share) const {
    auto ratios = ratios_;
    std::sort(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(n_ratios_));
    return ratios[static_cast<std::size_t>(share * static_cast<double>(n_ratios_ - 1))];
  }

  double quickest_us_ = 0, second_us_ = 0;  // 0: none
  std::size_t n_ratios_ = 0, next_ = 0;
  std::array<double, kMostRatios> ratios_{};  // to a pass of one row; the last ones
};

}  // namespace foretoken::calibrate
