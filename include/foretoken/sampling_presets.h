// SPDX-License-Identifier: Apache-2.0
// foretoken/sampling_presets.h: the usual ways to draw a token, by name, as SamplingParameters.
// What a preset does not set is off, and may be set afterwards. request.h has the ranges, which are
// checked where the parameters are used.
#pragma once

#include "foretoken/request.h"

namespace foretoken {

// Always the most probable token.
inline SamplingParameters Greedy() {
  SamplingParameters s;
  s.temperature = 0;
  return s;
}

// Draws from the model's distribution at a temperature.
inline SamplingParameters Multinomial(float temperature) {
  SamplingParameters s;
  s.temperature = temperature;
  return s;
}

// Draws from the k most probable tokens.
inline SamplingParameters TopK(float temperature, int k) {
  SamplingParameters s = Multinomial(temperature);
  s.top_k = k;
  return s;
}

// Draws from the most probable tokens that together hold the mass p.
inline SamplingParameters Nucleus(float temperature, float p) {
  SamplingParameters s = Multinomial(temperature);
  s.top_p = p;
  return s;
}

// Applies the nucleus to the distribution that TopK leaves.
inline SamplingParameters TopKNucleus(float temperature, int k, float p) {
  SamplingParameters s = TopK(temperature, k);
  s.top_p = p;
  return s;
}

}  // namespace foretoken
