// SPDX-License-Identifier: Apache-2.0
// draft_length/expert_costs.h: what a pass of a mixture of experts costs by the experts that its
// rows use.
//
// Rows that choose their experts independently use n (1 - (1 - used / n)^rows) of n experts in a
// layer. Rows of one text agree more often than that, and how often depends on the text. So
// readings of passes are stored as if their rows had chosen independently, and estimates are
// corrected by how far recent passes stayed below that; at first, by how far random tokens did.
// Where some experts are popular, three rows agree more than two. So how much rows agree is known by
// their number. What a pass tells is mostly true of passes of other numbers as well.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "foretoken/tools/measure.h"

namespace foretoken::draft_length {

struct ExpertShape {
  int layers = 0;       // with experts; 0: there are none
  int n = 0, used = 0;  // experts of a layer, and experts of a row
};

class ExpertCosts {
 public:
  ExpertCosts() = default;
  // us_per_expert: what reading one more expert costs.
  ExpertCosts(const ExpertShape& shape, double us_per_expert);

  // The experts of all layers that this many independent rows use.
  double Independent(int rows) const noexcept;
  // How much longer a pass takes which reads so many distinct experts (added over the layers) than
  // one of independent rows: a negative time for rows that agree. 0 if `distinct` is 0: not known.
  double BeyondUs(int rows, std::int64_t distinct) const noexcept;
  // What BeyondUs is expected to be of a pass to come.
  double ExpectedBeyondUs(int rows) const noexcept;
  // These passes were measured at the start. Tokens of a text agree more than their random ones.
  void Expect(std::span<const PassCost> passes) noexcept;
  // A pass of so many rows read so many experts.
  void Record(int rows, std::int64_t distinct) noexcept;

 private:
  static constexpr int kMostRows = 32;  // more rows agree as these do
  // Empty: a pass of so many rows does not tell.
  std::optional<double> Agreement(int rows, std::int64_t distinct) const noexcept;

  ExpertShape shape_;
  double us_per_expert_ = 0;
  // By rows, of recent passes: 0: as independent rows; 1: all rows use the same experts.
  std::array<double, kMostRows + 1> agreement_{};
};

}  // namespace foretoken::draft_length
