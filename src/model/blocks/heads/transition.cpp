// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/heads/transition.h"

#include <cmath>

namespace foretoken::model {

Transition::Transition(const Workspace& space, const ModelConfig& config, const Weights& weights)
    : space_(space),
      weights_(weights),
      head_(*weights.head),
      dim_(config.dim),
      of_token_(space.scratch.residual.View(config.head->transition_rank)),
      output_(space, config, weights,
              {.w = head_.transition, .norm = nullptr, .input = of_token_}) {}

void Transition::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&Transition::Embed>(*this, Split::kRows));
  output_.AddPhases(phases);
}

// REQUIRES: all rows have logits.
void Transition::Embed(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row) {
    const Token token = pass.tokens[static_cast<std::size_t>(row)];
    weights_.EmbedBeside(token < weights_.second_rows() ? token : 0, of_token_.Row(row));
    if (head_.certainty != nullptr)
      space_.scratch.certainties.data()[row] =
          Certainty(pass.features + std::int64_t{row} * dim_, of_token_.Row(row));
  }
}

float Transition::Certainty(const float* feature, const float* of_token) const noexcept {
  double sum = head_.certainty_bias == nullptr ? 0.0 : static_cast<double>(*head_.certainty_bias);
  const auto add = [&sum](const float* w, const float* x, int n) {
    for (int i = 0; i < n; ++i) sum += static_cast<double>(w[i]) * static_cast<double>(x[i]);
  };
  add(head_.certainty, feature, dim_);
  add(head_.certainty + dim_, of_token, of_token_.width);
  return static_cast<float>(1 / (1 + std::exp(-sum)));
}

}  // namespace foretoken::model
