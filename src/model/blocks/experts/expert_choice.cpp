// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/experts/expert_choice.h"

#include <algorithm>
#include <limits>

namespace foretoken::model {
namespace {

constexpr float kLeast = -std::numeric_limits<float>::infinity();
// A sum of weights is never taken as less than this, the least normal half. Sigmoids of very
// negative logits would be divided by zero otherwise.
constexpr float kLeastSum = 0x1p-14f;

void Softmax(const kernels::Kernels& kernels, float* x, int n) noexcept {
  const auto sum = static_cast<float>(kernels.exp_sum(x, n, kernels.max(x, n), 1, x));
  for (int i = 0; i < n; ++i) x[i] /= sum;
}

void Sigmoids(const kernels::Kernels& kernels, float* x, int n) noexcept {
  kernels.exp_sum(x, n, 0, -1, x);
  for (int i = 0; i < n; ++i) x[i] = 1 / (1 + x[i]);
}

// The index of the largest score, which is then taken away. Where no score is left that is larger
// than -infinity, the lowest of [0, n) that is not in taken[0, n_taken).
std::int32_t TakeLargest(const kernels::Kernels& kernels, float* scores, int n,
                         const std::int32_t* taken, int n_taken) noexcept {
  std::int32_t best = kernels.argmax(scores, n);
  if (!(scores[best] > kLeast)) {
    best = 0;
    while (std::find(taken, taken + n_taken, best) != taken + n_taken) ++best;
  }
  scores[best] = kLeast;
  return best;
}

// Sets the scores of all experts to -infinity but for those of the best groups.
void KeepBestGroups(const ExpertsConfig& config, float* scores) noexcept {
  const int n = config.n_experts / config.n_groups;
  const auto value_of = [&](int group) {
    float best = kLeast, second = kLeast;
    for (int i = group * n; i < (group + 1) * n; ++i) {
      if (scores[i] > best)
        second = best, best = scores[i];
      else if (scores[i] > second)
        second = scores[i];
    }
    return n == 1 ? best : best + second;
  };
  // A group stays if fewer than n_used_groups others are better. Of equal ones the lowest is better.
  const auto better_than = [&](int group) {
    const float value = value_of(group);
    int better = 0;
    for (int other = 0; other < config.n_groups; ++other) {
      const float v = value_of(other);
      better += v > value || (v == value && other < group);
    }
    return better;
  };
  std::uint64_t kept[(kMostExpertGroups + 63) / 64] = {};
  for (int group = 0; group < config.n_groups; ++group)
    if (better_than(group) < config.n_used_groups) kept[group / 64] |= 1ull << group % 64;
  for (int group = 0; group < config.n_groups; ++group)
    if ((kept[group / 64] >> group % 64 & 1) == 0) std::fill_n(scores + group * n, n, kLeast);
}

}  // namespace

void ChooseExperts(const kernels::Kernels& kernels, const ExpertsConfig& config, float* logits,
                   const float* bias, float* scores, std::int32_t* chosen,
                   float* weights) noexcept {
  const int n = config.n_experts, used = config.n_used;
  const bool broken = kernels.finiteness(logits, n) != kernels::Finiteness::kFinite;
  if (config.gating == ExpertGating::kSoftmax) Softmax(kernels, logits, n);
  if (config.gating == ExpertGating::kSigmoid) Sigmoids(kernels, logits, n);
  for (int i = 0; i < n; ++i) scores[i] = bias == nullptr ? logits[i] : logits[i] + bias[i];
  if (config.n_groups > 1) KeepBestGroups(config, scores);
  for (int i = 0; i < used; ++i) {
    chosen[i] = TakeLargest(kernels, scores, n, chosen, i);
    weights[i] = logits[chosen[i]];
  }
  if (config.gating == ExpertGating::kChosenSoftmax) Softmax(kernels, weights, used);
  if (config.normalised) {
    float sum = 0;
    for (int i = 0; i < used; ++i) sum += weights[i];
    sum = std::max(sum, kLeastSum);
    for (int i = 0; i < used; ++i) weights[i] /= sum;
  }
  for (int i = 0; i < used && config.weights_scale != 1; ++i) weights[i] *= config.weights_scale;
  if (broken) std::fill_n(weights, used, std::numeric_limits<float>::quiet_NaN());
}

float Sigmoid(const kernels::Kernels& kernels, float x) noexcept {
  Sigmoids(kernels, &x, 1);
  return x;
}

}  // namespace foretoken::model
