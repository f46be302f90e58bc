// SPDX-License-Identifier: Apache-2.0
// sampling/filters.h: temperature, then top-k, top-p, typical-p, min-p and eta, in this order. Each
// works on the normalised result of the one before.
//
// Kernels make the passes over the vocabulary. They leave a small unordered set of tokens with
// weights (probabilities up to a common factor). The filters work on that set by selection,
// O(size), without a full sort. "Better" always means more weight, then the lower id. So the
// distribution is a pure function of the logits, the same on every instruction set.
#pragma once

#include <cstdint>
#include <memory>

#include "base/ids.h"
#include "foretoken/request.h"
#include "kernels/kernels.h"

namespace foretoken::sampling {

class Filters {
 public:
  // Reserves the scratch that Apply needs. REQUIRES: parameters validated.
  Filters(const SamplingParameters& parameters, int vocabulary, const kernels::Kernels& kernels);

  // Turns logits x [vocabulary] into the distribution p [vocabulary], which may be x. NaN counts as
  // -inf. REQUIRES: the largest logit is finite; the temperature is not greedy.
  void Apply(const float* x, float* p) noexcept;

  // Whether some filter is on. If none is, only the temperature changes the distribution.
  bool any() const noexcept { return keys_ != nullptr; }
  float inverse_temperature() const noexcept { return inv_temperature_; }

 private:
  // A token and its weight as one number; in descending order the best comes first.
  using Key = std::uint64_t;

  void TakeTopK(const float* x) noexcept;
  float TopKThreshold(const float* x) noexcept;
  void TakeHead(const float* p, double sum) noexcept;
  int Collect(const float* x, float threshold) noexcept;
  void CutTopP() noexcept;
  void CutTypical() noexcept;
  void CutMinP() noexcept;
  void CutEta() noexcept;
  void TakeEta(const float* p, double sum) noexcept;
  double EtaThreshold(double entropy) const noexcept;

  const kernels::Kernels* kernels_;
  int vocabulary_, top_k_;
  float inv_temperature_, top_p_, min_p_, typical_p_, eta_;
  bool only_eta_ = false;

  // The set: keys_[0, n_), with total weight mass_. Buffers hold [vocabulary], or nothing if no
  // filter is on. They start unwritten, so they only take the memory that is used.
  std::unique_ptr<Key[]> keys_;
  int n_ = 0;
  double mass_ = 0;
  std::unique_ptr<std::int32_t[]> ids_;  // the result of collect_at_least
  std::unique_ptr<float[]> values_;      // maxima of blocks; logits and weights of the k best
  std::unique_ptr<Key[]> distances_;     // typical-p only
};

}  // namespace foretoken::sampling
