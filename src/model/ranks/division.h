// SPDX-License-Identifier: Apache-2.0
// model/ranks/division.h: which outputs of a product each rank computes.
//
// A rank computes whole outputs, so no sum is divided. Faster ranks get more of them. All ranks
// know the whole division.
#pragma once

#include <cstdint>
#include <vector>

namespace foretoken::model {

struct OutputRange {
  int begin = 0, end = 0;

  int n() const { return end - begin; }
  friend bool operator==(const OutputRange&, const OutputRange&) = default;
};

class Division {
 public:
  // One rank, which computes everything.
  Division() : Division(0, {1}) {}
  // speeds: of each rank, relative to each other; positive. rank: this one.
  Division(int rank, const std::vector<int>& speeds);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(sums_.size()) - 1; }
  // The outputs of a rank among n: whole units, but for the last rank where n is no multiple. Ranks
  // follow each other; a rank may have none.
  OutputRange Of(int rank, int n, int unit) const noexcept;
  OutputRange Own(int n, int unit) const noexcept { return Of(rank_, n, unit); }
  // This rank's part of so many bytes.
  std::int64_t PartOf(std::int64_t bytes) const noexcept;

 private:
  int rank_;
  std::vector<std::int64_t> sums_;  // [size + 1]: of the speeds of the ranks before
};

}  // namespace foretoken::model
