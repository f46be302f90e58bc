// SPDX-License-Identifier: Apache-2.0
// tests/oracle/arithmetic.h: the canonical arithmetic on numbers and rows, as kernels/kernels.h states
// it in words.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace foretoken::oracle {

float Exp(float x);
float Log(float x);
float Sigmoid(float x);
float Softplus(float x);
float Capped(float x, float cap);
// gelu(g) = g / (1 + Exp(-t)): this is t.
float GeluArgument(float g);
void Softmax(std::vector<float>& x);

// Folds 16 lanes 16 -> 8 -> 4 -> 2 -> 1.
template <typename T>
T Fold(std::array<T, 16> lanes) {
  for (std::size_t width = 8; width >= 1; width /= 2)
    for (std::size_t j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  return lanes[0];
}

inline void Add(std::vector<float>& a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < b.size(); ++i) a[i] += b[i];
}

// Values [begin, begin + n).
inline std::vector<float> Part(const std::vector<float>& x, int begin, int n) {
  return {x.begin() + begin, x.begin() + begin + n};
}

}  // namespace foretoken::oracle
