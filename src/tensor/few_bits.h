// SPDX-License-Identifier: Apache-2.0
// tensor/few_bits.h: blocks of the number types with a table, and of two and three bits, filled with
// the values of a row. For Quantize, which describes how.
#pragma once

#include "tensor/block_layout.h"
#include "tensor/quantize.h"

namespace foretoken::tensor {

void Fill(const float* x, BlockMXFP4& b);
void Fill(const float* x, BlockIQ4_NL& b);
void Fill(const float* x, BlockIQ4_XS& b);
void Fill(const float* x, Scales how, BlockQ3_K& b);
void Fill(const float* x, BlockQ2_K& b);

}  // namespace foretoken::tensor
