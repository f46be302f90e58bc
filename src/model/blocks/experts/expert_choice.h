// SPDX-License-Identifier: Apache-2.0
// model/blocks/experts/expert_choice.h: which experts of a mixture a row uses, and with what weights.
//
//   p = softmax or sigmoid of the logits, or the logits themselves (kChosenSoftmax)
//   scores = p, plus the selection bias where there is one; -infinity for experts of groups that are
//   not among the best ones
//   chosen = the n_used largest scores, the largest first; of equal scores the lowest expert
//   weights = p of the chosen ones, for kChosenSoftmax the softmax over them; divided by their sum
//   where asked, times weights_scale
//
// Every operation is rounded to f32, and sums are in the order of the choice, so the result is the
// same for every instruction set. The experts of a row are always distinct. Where a logit is not
// finite all weights are NaN, so that the row shows that it is broken.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"
#include "model/config.h"

namespace foretoken::model {

// logits: [n_experts], overwritten. bias: [n_experts] or null. scores: [n_experts], memory to work
// in. Writes chosen and weights, [n_used].
void ChooseExperts(const kernels::Kernels& kernels, const ExpertsConfig& config, float* logits,
                   const float* bias, float* scores, std::int32_t* chosen, float* weights) noexcept;

// 1 / (1 + Exp(-x)).
float Sigmoid(const kernels::Kernels& kernels, float x) noexcept;

}  // namespace foretoken::model
