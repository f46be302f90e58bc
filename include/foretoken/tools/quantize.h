// SPDX-License-Identifier: Apache-2.0
// foretoken/tools/quantize.h: a model file in another number type.
//
//   auto report = foretoken::QuantizeFile({.input = "model-F16.gguf",
//                                          .output = "model-Q4_K_M.gguf",
//                                          .type = "Q4_K_M"});
//
// Matrices are converted, vectors (norms, biases) and other tensors are copied, metadata are kept.
// Types: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q6_K, and mixes, which give some tensors more
// bits: Q4_K_S, Q4_K_M, Q5_K_S, Q5_K_M, Q3_K_S, Q3_K_M, Q3_K_L, Q2_K, IQ4_NL, IQ4_XS, MXFP4_MOE. Q3_K,
// Q4_K and Q5_K are other names of the _M mixes. Which
// tensor gets which type, and the blocks' numbers, follow llama.cpp's llama-quantize (without an
// importance matrix); docs/formats.md has the rules.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "foretoken/result.h"

namespace foretoken {

struct QuantizeProgress {
  std::string tensor;   // the one being converted
  double fraction = 0;  // [0, 1] of the whole file
};

struct QuantizeOptions {
  std::string input = {};   // a GGUF file; of a split model the first part
  std::string output = {};  // is replaced if it exists; one file, also for a split model
  std::string type = {};    // one of QuantizeTypes(), in capitals or not
  int threads = 0;          // 0: FORETOKEN_THREADS, else the cores
  // Quantised tensors lose more when they are quantised again, so that is an error unless this is
  // set. They may always be converted to F32, F16 and BF16.
  bool allow_requantize = false;
  bool pure = false;  // every matrix in the type itself: no mix, no larger type for the output head
  // Number types of single tensors, "" for the rule's type: the output head (the token embedding if
  // it serves as head), and the token embedding.
  std::string output_tensor_type = {};
  std::string token_embedding_type = {};
  // Called from time to time on the caller's thread; false stops, and no output is left.
  std::function<bool(const QuantizeProgress&)> on_progress = {};
};

// The tensors of one number type in the output.
struct QuantizedType {
  std::string type;
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;
  std::int64_t converted = 0;  // values that had another type before
  double rmse = 0;             // root of the mean squared error of those
};

struct QuantizeReport {
  std::string type;  // "Q4_K_M"
  std::int64_t input_bytes = 0, output_bytes = 0;
  std::int64_t parameters = 0;
  double bits_per_weight = 0;  // of the output, vectors included
  double rmse = 0;             // over all converted values
  std::int64_t fallbacks = 0;  // tensors whose rows do not fit the blocks of their type
  double seconds = 0;
  int threads = 0;
  std::vector<QuantizedType> types;  // the one with the most bytes first
};

// Names that QuantizeOptions::type may have.
std::vector<std::string> QuantizeTypes();

// Reads and writes in pieces: memory stays at some tens of megabytes for files of any size. The
// result is the same for any number of threads. The output appears when it is complete; after an
// error, a stop or a kill there is none, or the old one.
//
// Errors: those of the input file; kInvalidArgument (an unknown type, the input as output, a
// quantised tensor without allow_requantize); kUnsupported (a matrix of a type that foretoken does
// not read); kInvalidFile (NaN, infinities, values too large for the new type); kIo (no space, a
// stop by on_progress).
[[nodiscard]] Result<QuantizeReport> QuantizeFile(const QuantizeOptions& options);

}  // namespace foretoken
