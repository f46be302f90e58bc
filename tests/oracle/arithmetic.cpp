// SPDX-License-Identifier: Apache-2.0
#include "oracle/arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace foretoken::oracle {

float Exp(float x) {
  if (x < -87.33654f) return 0;
  if (x > 88.37626f) x = 88.37626f;
  const float n = std::fma(x, 1.44269504f, 12582912.0f) - 12582912.0f;
  float r = std::fma(n, -0.693359375f, x);
  r = std::fma(n, 2.12194440e-4f, r);
  float y = 1.9875691500e-4f;
  for (const float c :
       {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
    y = std::fma(y, r, c);
  y = std::fma(y, r * r, r) + 1.0f;
  return y * std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
}

float Capped(float x, float cap) {
  const float f = 2.0f / cap;
  return cap * (1.0f - 2.0f / (Exp(x * f) + 1.0f));
}

float Sigmoid(float x) {
  return 1.0f / (1.0f + Exp(-x));
}

float Log(float x) {
  const std::int32_t bits = std::bit_cast<std::int32_t>(x);
  const std::int32_t exponent = (bits - 0x3f3504f3) >> 23;
  const float n = static_cast<float>(exponent),
              f = std::bit_cast<float>(bits - exponent * (1 << 23)) - 1.0f;
  float y = 7.0376836292e-2f;
  for (const float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                        -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f})
    y = std::fma(y, f, c);
  const float z = f * f;
  y = (y * f) * z;
  y = std::fma(n, -2.12194440e-4f, y);
  y = std::fma(-0.5f, z, y);
  return std::fma(n, 0.693359375f, f + y);
}

float Softplus(float x) {
  const float e = Exp(-std::fabs(x)), u = 1.0f + e;
  return std::max(x, 0.0f) + (u == 1.0f ? e : Log(u) * (e / (u - 1.0f)));
}

float GeluArgument(float g) {
  return (g * 1.5957691216f) * std::fma(g * g, 0.044715f, 1.0f);
}

void Softmax(std::vector<float>& x) {
  const float most = *std::max_element(x.begin(), x.end());
  std::array<double, 16> lanes{};
  for (std::size_t i = 0; i < x.size(); ++i) lanes[i % 16] += x[i] = Exp((x[i] - most) * 1.0f);
  const auto sum = static_cast<float>(Fold(lanes));
  for (float& v : x) v /= sum;
}

}  // namespace foretoken::oracle
