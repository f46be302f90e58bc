// SPDX-License-Identifier: Apache-2.0
// sampling/filters.h: temperature, then top-k, top-p, typical-p, min-p and eta, in this order. Each
// works on the normalised result of the one before.
//
// Kernels make the passes over the vocabulary. They leave a small unordered set of tokens with
// weights (probabilities up to a common factor). The filters work on that set by selection,
// O(size), without a full sort. "Better" always means more weight, then the lower id. So the
// distribution is a pure function of the logits, the same on every instruction set.
#pragma once

#include <memory>

#include "foretoken/request.h"
#include "kernels/kernels.h"

namespace foretoken::sampling {

class Filters {
 public:
  // Reserves the scratch that Apply needs. REQUIRES: parameters validated.
  Filters(const SamplingParameters& parameters, int vocabulary, const kernels::Kernels& kernels);
  Filters(Filters&&) noexcept;
  Filters& operator=(Filters&&) noexcept;
  ~Filters();

  // Turns logits x [vocabulary] into the distribution p [vocabulary], which may be x. NaN counts as
  // -inf. REQUIRES: the largest logit is finite; the temperature is not greedy.
  void Apply(const float* x, float* p) noexcept;

  // Whether some filter is on. If none is, only the temperature changes the distribution.
  bool any() const noexcept;
  float inverse_temperature() const noexcept;

 private:
  class Chain;
  std::unique_ptr<Chain> chain_;
};

}  // namespace foretoken::sampling
