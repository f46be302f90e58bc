// SPDX-License-Identifier: Apache-2.0
// foretoken/sampling_presets.h: the usual ways to draw a token, by name, as SamplingParameters.
// What a preset does not name is off, and may be set afterwards. Ranges: request.h; they are
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

// The model's law at a temperature.
inline SamplingParameters Multinomial(float temperature) {
  SamplingParameters s;
  s.temperature = temperature;
  return s;
}

// Among the k most probable tokens.
inline SamplingParameters TopK(float temperature, int k) {
  SamplingParameters s = Multinomial(temperature);
  s.top_k = k;
  return s;
}

// Among the most probable tokens that hold the mass p together.
inline SamplingParameters Nucleus(float temperature, float p) {
  SamplingParameters s = Multinomial(temperature);
  s.top_p = p;
  return s;
}

// Nucleus of the law that TopK leaves.
inline SamplingParameters TopKNucleus(float temperature, int k, float p) {
  SamplingParameters s = TopK(temperature, k);
  s.top_p = p;
  return s;
}

}  // namespace foretoken
