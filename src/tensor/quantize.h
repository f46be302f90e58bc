// SPDX-License-Identifier: Apache-2.0
// tensor/quantize.h: converts rows of f32 to the number types of GGUF, as Dequantize converts them
// back.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace foretoken::tensor {

// How scales are chosen.
enum class Scales {
  kAsFiles,  // as below, which is how llama.cpp fills the blocks of files
  kClosest,  // Q4_0, Q5_0 and Q3_K: searched for the least squared error, weighted by root mean square + |x|
};

// Converts n values to a row of `type` as files hold it, at `out`, which needs no alignment.
//
//   F32, F16, BF16     rounded to nearest even
//   Q8_0, Q4_0, Q5_0   the value of largest magnitude of a block becomes the outermost code
//   MXFP4              the scale is the power of two with which the value of largest magnitude lies
//                      in [8, 16) of the table (8 and 12 are its last numbers)
//   Q4_1, Q5_1         the codes run evenly from the block's least value to its greatest
//   K-quants, IQ4      the scales and minima of runs are searched for the least weighted squared
//                      error, in which large values weigh more: some 20 times the work, as kClosest for Q4_0
//
// REQUIRES: a type that is not widened (dtype.h); finite values; n a multiple of the type's block.
// Values that are too large for the type come back from Dequantize as infinities: beyond 65504 in
// F16, and where the scale of a block, which is a half except in MXFP4, would be beyond it. Callers
// that cannot rule them out must look for infinities.
// A block depends only on its own values and has the same bits on every machine. Thread-safe.
void Quantize(DType type, const float* row, std::int64_t n, void* out,
              Scales how = Scales::kAsFiles);

}  // namespace foretoken::tensor
