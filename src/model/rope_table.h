// SPDX-License-Identifier: Apache-2.0
// model/rope_table.h: cosines and sines of the rotary position embedding (Su et al. 2021), by
// position.
//
//   angle(pos, i) = pos * base^(-2i / n_rot) / factor_i, then scaled:
//   linear:  angle * freq_scale
//   yarn:    fast dimensions keep their angle, slow ones are interpolated, with a ramp between
//            (Peng et al. 2023); both cos and sin are multiplied by
//            (1 + 0.1 ln(1 / freq_scale)) / (1 + 0.1 yarn_log_multiplier ln(1 / freq_scale))
// In any case cos and sin are multiplied by attention_factor.
//
// factor_i comes from a tensor of the file (rope_freqs of Llama 3.1 and later; the long or the short
// factors of Phi 3) and is 1 without one.
#pragma once

#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "model/config.h"

namespace foretoken::model {

class RopeTable {
 public:
  RopeTable() = default;
  // freq_factors: empty, or n_rot / 2 positive numbers. A row is computed when Extend first reaches
  // it.
  RopeTable(const RopeConfig& config, int max_positions, std::span<const float> freq_factors);

  // Makes rows [0, n_positions) available. No thread may read the table meanwhile. Each new row
  // takes a few microseconds.
  void Extend(int n_positions) noexcept;
  const float* Cos(int position) const noexcept {
    return cos_.data() + Row(position);
  }  // [n_rot / 2]
  const float* Sin(int position) const noexcept { return sin_.data() + Row(position); }

  // What the rows are made of: the angle of pair i at a position is position * frequencies()[i], and
  // cosines and sines are multiplied by the magnitude.
  const std::vector<double>& frequencies() const noexcept { return frequency_; }
  double magnitude() const noexcept { return magnitude_; }

 private:
  std::size_t Row(int position) const { return static_cast<std::size_t>(position) * half_; }

  std::size_t half_ = 0;
  int max_positions_ = 0, filled_ = 0;
  std::vector<double>
      frequency_;  // [n_rot / 2], all scalings applied: the angle is linear in the position
  double magnitude_ = 1;
  AlignedBuffer<float> cos_, sin_;  // [max_positions, n_rot / 2]
};

}  // namespace foretoken::model
