// SPDX-License-Identifier: Apache-2.0
// tests/oracle/quantised_dot.h: the product of a quantised row of a file and a row of activations.
#pragma once

#include <cstddef>
#include <vector>

#include "tensor/dtype.h"

namespace foretoken::oracle {

// One row of activations in int8 by blocks of 32.
struct Quantised {
  std::vector<int> q;
  std::vector<float> d;

  explicit Quantised(const std::vector<float>& x);
};

float QuantisedDot(tensor::DType type, const std::byte* row, const Quantised& x);

}  // namespace foretoken::oracle
