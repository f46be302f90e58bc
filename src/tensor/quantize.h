// SPDX-License-Identifier: Apache-2.0
// tensor/quantize.h: f32 rows to GGUF's number types: the way back of Dequantize.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace foretoken::tensor {

// n values to a row of `type` as files hold it, at `out`, which needs no alignment.
//
//   F32, F16, BF16     rounded to nearest even
//   Q8_0, Q4_0, Q5_0   the value of largest magnitude of a block becomes the outermost code
//   Q4_1, Q5_1         the codes run evenly from the block's least value to its greatest
//   Q4_K, Q5_K, Q6_K   scales (and minima) of runs found by a search for the least weighted squared
//                      error, in which large values weigh more: some 20 times the work
//
// REQUIRES: finite values; n a multiple of the type's block. Values too large for the type (beyond
// 65504 in F16; a block's scale is a half, too) come back from Dequantize as infinities: callers
// that cannot exclude them look for those. A block depends on its own values alone and has the same
// bits on every machine. Thread-safe.
void Quantize(DType type, const float* row, std::int64_t n, void* out);

}  // namespace foretoken::tensor
