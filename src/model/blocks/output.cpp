// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/output.h"

#include <algorithm>

#include "model/blocks/product.h"

namespace foretoken::model {
namespace {

bool WantsLogits(const Pass& pass) {
  return !pass.logit_rows.empty();
}

}  // namespace

Output::Output(const Workspace& space, const ModelConfig& config, const Weights& weights)
    : space_(space),
      weights_(weights),
      norm_eps_(config.norm_eps),
      scale_(config.logit_scale),
      soft_cap_(config.logit_soft_cap),
      residual_(space.scratch.residual.View(config.dim)),
      last_(space.scratch.last.View(config.dim)),
      logits_(space.scratch.logits.View(config.vocabulary)),
      gather_logits_(space, logits_, GatheredForm::kFloat,
                     ColumnsByRank(space.division, config.vocabulary), {.with_logits = true}) {}

void Output::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&Output::Norm>(*this, Split::kRows, WantsLogits));
  phases.push_back(PhaseOf<&Output::Multiply>(*this, Split::kOther, WantsLogits));
  if (space_.ranks.alone()) return;
  gather_logits_.AddPhases(phases);
  phases.push_back(PhaseOf<&Output::CheckOthers>(*this, Split::kOther, WantsLogits));
}

// The rows with logits among the thread's rows.
void Output::Norm(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  const auto all = pass.logit_rows;
  const auto first = std::lower_bound(all.begin(), all.end(), rows.begin),
             last = std::lower_bound(first, all.end(), rows.end);
  const int begin = static_cast<int>(first - all.begin()), n = static_cast<int>(last - first);
  for (int i = begin; i < begin + n; ++i)
    space_.kernels.rms_norm(residual_.Row(all[static_cast<std::size_t>(i)]), weights_.output_norm,
                            residual_.width, norm_eps_, last_.Row(i));
  if (weights_.output.quantised()) Quantise(space_.kernels, last_, begin, n, 0, last_.width);
}

// Also looks for what is not finite, while the thread's logits are in its cache.
void Output::Multiply(const Pass& pass, int thread) const noexcept {
  const int n = static_cast<int>(pass.logit_rows.size());
  const auto tiles = space_.TilesOf(weights_.output, thread);
  model::Multiply(space_.kernels, weights_.output, last_, n, logits_, false, tiles.begin,
                  tiles.end);
  const int begin = tiles.begin * tensor::kTileOutputs,
            end = std::min(tiles.end * tensor::kTileOutputs, logits_.width);
  Scratch& scratch = space_.scratch;
  std::uint8_t* const not_finite = scratch.not_finite.data() + thread * scratch.not_finite_stride;
  for (int i = 0; i < n; ++i) {
    not_finite[i] = 0;
    if (begin >= end) continue;
    float* const own = logits_.Row(i) + begin;
    if (scale_ != 1) space_.kernels.scale(own, end - begin, scale_);
    if (soft_cap_ != 0) space_.kernels.soft_cap(own, end - begin, soft_cap_);
    not_finite[i] = space_.kernels.finiteness(own, end - begin) != kernels::Finiteness::kFinite;
  }
}

// All of them: this is cheap beside the gather.
void Output::CheckOthers(const Pass& pass, int thread) const noexcept {
  Scratch& scratch = space_.scratch;
  std::uint8_t* const not_finite = scratch.not_finite.data() + thread * scratch.not_finite_stride;
  const auto columns = space_.pool.ShareOf(logits_.width, thread, tensor::kTileOutputs);
  for (std::size_t i = 0; i < pass.logit_rows.size(); ++i)
    not_finite[i] =
        columns.begin < columns.end &&
        space_.kernels.finiteness(logits_.Row(static_cast<int>(i)) + columns.begin,
                                  columns.end - columns.begin) != kernels::Finiteness::kFinite;
}

bool Output::Finite(int i, int team) const noexcept {
  const Scratch& scratch = space_.scratch;
  for (int thread = 0; thread < team; ++thread)
    if (scratch.not_finite.data()[thread * scratch.not_finite_stride + i] != 0) return false;
  return true;
}

}  // namespace foretoken::model
