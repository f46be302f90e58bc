// SPDX-License-Identifier: Apache-2.0
#include "sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace foretoken::sampling {

LogprobReader::LogprobReader(int vocabulary, const kernels::Kernels& kernels)
    : vocabulary_(vocabulary),
      kernels_(kernels),
      exponentials_(static_cast<std::size_t>(vocabulary)),
      maxima_(static_cast<std::size_t>(vocabulary / 64 + 1)),
      ids_(static_cast<std::size_t>(vocabulary)) {
  sorted_maxima_.reserve(maxima_.size());
}

double LogprobReader::LogSumExp(const float* logits) noexcept {
  const float max = kernels_.max(logits, vocabulary_);
  return static_cast<double>(max) +
         std::log(kernels_.exp_sum(logits, vocabulary_, max, 1.0f, exponentials_.data()));
}

float LogprobReader::Of(const float* logits, Token token) noexcept {
  return static_cast<float>(static_cast<double>(logits[token]) - LogSumExp(logits));
}

void LogprobReader::Read(const float* logits, Token token, int n_top, TokenLogprobs& out) {
  const double normaliser = LogSumExp(logits);
  const auto logprob = [&](Token id) {
    return static_cast<float>(static_cast<double>(logits[id]) - normaliser);
  };
  out.logprob = logprob(token);
  out.top.clear();
  for (const Token id : Find(logits, std::min(n_top, vocabulary_)))
    out.top.emplace_back(id, logprob(id));
}

void LogprobReader::Best(const float* logits, int n, Token* best) noexcept {
  const auto found = Find(logits, n);
  std::copy(found.begin(), found.end(), best);
}

// The ids of the n best. A view of ids_.
std::span<const std::int32_t> LogprobReader::Find(const float* logits, int n) noexcept {
  if (n == 0) return {};
  // The n-th largest of the block maxima bounds the n-th largest logit from below.
  const int n_blocks = (vocabulary_ + 63) / 64;
  kernels_.block_max(logits, vocabulary_, maxima_.data());
  float threshold = -INFINITY;
  if (n <= n_blocks) {
    sorted_maxima_.assign(maxima_.data(), maxima_.data() + n_blocks);
    std::nth_element(sorted_maxima_.begin(), sorted_maxima_.begin() + (n - 1), sorted_maxima_.end(),
                     std::greater<>());
    threshold = sorted_maxima_[static_cast<std::size_t>(n - 1)];
  }
  const int found =
      kernels_.collect_at_least(logits, vocabulary_, threshold, ids_.data(), vocabulary_);
  const auto better = [&](Token a, Token b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  const auto end = ids_.begin() + std::min(found, n);
  std::partial_sort(ids_.begin(), end, ids_.begin() + found, better);
  return std::span(ids_).first(static_cast<std::size_t>(end - ids_.begin()));
}

}  // namespace foretoken::sampling
