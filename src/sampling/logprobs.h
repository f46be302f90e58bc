// SPDX-License-Identifier: Apache-2.0
// sampling/logprobs.h: log-probabilities in the target's raw distribution (temperature 1, no
// filters).
#pragma once

#include <span>
#include "base/aligned_buffer.h"
#include "base/ids.h"
#include "foretoken/request.h"
#include "kernels/kernels.h"

namespace foretoken::sampling {

inline constexpr int kMaxTopLogprobs = 64;

class LogprobReader {
 public:
  LogprobReader(int vocabulary, const kernels::Kernels& kernels);

  // Natural logarithm of the probability of `token` under softmax(logits).
  float Of(const float* logits, Token token) noexcept;
  // Reads that number and the n best tokens (best first, ties by id).
  void Read(const float* logits, Token token, int n_top, TokenLogprobs& out);
  // The n best tokens, best first, ties by id; n <= kMaxTopLogprobs and the vocabulary.
  void Best(const float* logits, int n, Token* best) noexcept;

 private:
  std::span<const std::int32_t> Find(const float* logits, int n) noexcept;
  double LogSumExp(const float* logits) noexcept;

  int vocabulary_;
  const kernels::Kernels& kernels_;
  AlignedBuffer<float> exponentials_, maxima_;
  std::vector<float> sorted_maxima_;
  std::vector<std::int32_t> ids_;
};

}  // namespace foretoken::sampling
