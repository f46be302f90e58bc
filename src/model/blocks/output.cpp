// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/output.h"

#include <algorithm>

#include "model/blocks/product.h"

namespace foretoken::model {
namespace {

template <bool reduced>
bool WantsLogits(const Pass& pass) {
  return !pass.logit_rows.empty() && pass.reduced == reduced;
}

bool IsWhole(const Pass& pass, std::size_t logit_row) {
  return pass.RuleOf(logit_row) == kernels::ChoiceRule::kNone;
}
template <bool reduced>
bool WantsWhole(const Pass& pass) {
  if (pass.reduced != reduced) return false;
  for (std::size_t i = 0; i < pass.logit_rows.size(); ++i)
    if (IsWhole(pass, i)) return true;
  return false;
}

// Columns of the logits that are computed.
int OutputsOf(const ModelConfig& config, const Weights& weights, Output::Kind kind) {
  const auto& tokens =
      kind == Output::Kind::kReduced ? weights.reduced_tokens : weights.output_tokens;
  return tokens.empty() ? config.vocabulary : static_cast<int>(tokens.size());
}

}  // namespace

Output::Output(const Workspace& space, const ModelConfig& config, const Weights& weights, Kind kind)
    : Output(space, config, weights,
             {.w = kind == Kind::kReduced ? weights.reduced_output : weights.output,
              .norm = weights.output_norm,
              .input = space.scratch.residual.View(config.dim),
              .scale = config.logit_scale,
              .soft_cap = config.logit_soft_cap,
              .kind = kind}) {}

Output::Output(const Workspace& space, const ModelConfig& config, const Weights& weights,
               const Head& head)
    : space_(space),
      head_(head),
      norm_eps_(config.norm_eps),
      quantise_(head.w.quantised() || (weights.head && (weights.head->next.quantised() ||
                                                        weights.head->selector.quantised()))),
      last_(space.scratch.last.View(head.input.width)),
      logits_(space.scratch.logits.View(config.vocabulary)),
      columns_(ColumnsByRank(space.division, OutputsOf(config, weights, head.kind))),
      gather_logits_(space, logits_, GatheredForm::kFloat, columns_),
      choices_(space, logits_, gather_logits_, columns_) {}

void Output::AddPhases(std::vector<Phase>& phases) const {
  const bool reduced = head_.kind == Kind::kReduced;
  const auto wants_logits = reduced ? WantsLogits<true> : WantsLogits<false>;
  const auto wants_whole = reduced ? WantsWhole<true> : WantsWhole<false>;
  phases.push_back(PhaseOf<&Output::Norm>(*this, Split::kRows, wants_logits));
  phases.push_back(PhaseOf<&Output::Multiply>(*this, Split::kOther, wants_logits));
  if (space_.ranks.alone()) return;
  // Rows with a choice are those of a target, which has no reduced output.
  if (!reduced) choices_.AddPhases(phases);
  phases.push_back(PhaseOf<&Output::GatherWhole>(*this, Split::kOther, wants_whole));
  phases.push_back(PhaseOf<&Output::CheckOthers>(*this, Split::kOther, wants_whole));
}

// The rows with logits among the thread's rows.
void Output::Norm(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  const auto all = pass.logit_rows;
  const auto first = std::lower_bound(all.begin(), all.end(), rows.begin),
             last = std::lower_bound(first, all.end(), rows.end);
  const int begin = static_cast<int>(first - all.begin()), n = static_cast<int>(last - first);
  for (int i = begin; i < begin + n; ++i)
    NormOrCopy(space_, head_.input.Row(all[static_cast<std::size_t>(i)]), head_.norm,
               head_.input.width, norm_eps_, last_.Row(i));
  if (quantise_) Quantise(space_.kernels, last_, begin, n, 0, last_.width);
}

// Also looks for what is not finite, while the thread's logits are in its cache.
void Output::Multiply(const Pass& pass, int thread) const noexcept {
  const int n = static_cast<int>(pass.logit_rows.size());
  const auto tiles = space_.TilesOf(head_.w, thread);
  model::Multiply(space_.kernels, head_.w, last_, n, logits_, false, tiles.begin, tiles.end);
  const int begin = tiles.begin * tensor::kTileOutputs,
            end = std::min(tiles.end * tensor::kTileOutputs, logits_.width);
  std::uint8_t* const not_finite = space_.scratch.NotFinite(thread);
  for (int i = 0; i < n; ++i) {
    not_finite[i] = 0;
    if (begin >= end) continue;
    float* const own = logits_.Row(i) + begin;
    if (head_.scale != 1) space_.kernels.scale(own, end - begin, head_.scale);
    if (head_.soft_cap != 0) space_.kernels.soft_cap(own, end - begin, head_.soft_cap);
    not_finite[i] = space_.kernels.finiteness(own, end - begin) != kernels::Finiteness::kFinite;
  }
}

void Output::GatherWhole(const Pass& pass, int thread) const noexcept {
  if (thread != 0) return;
  const std::size_t n = pass.logit_rows.size();
  for (std::size_t i = 0, end = 0; i < n; i = end) {
    end = i + 1;
    if (!IsWhole(pass, i)) continue;
    while (end < n && IsWhole(pass, end)) ++end;
    if (!gather_logits_.ToLead(static_cast<int>(i), static_cast<int>(end - i))) return;
  }
}

// All columns: this is cheap beside the gather.
void Output::CheckOthers(const Pass& pass, int thread) const noexcept {
  if (!space_.ranks.leads()) return;
  std::uint8_t* const not_finite = space_.scratch.NotFinite(thread);
  const auto columns = space_.pool.ShareOf(columns_.back(), thread, tensor::kTileOutputs);
  for (std::size_t i = 0; i < pass.logit_rows.size(); ++i)
    if (IsWhole(pass, i))
      not_finite[i] =
          columns.begin < columns.end &&
          space_.kernels.finiteness(logits_.Row(static_cast<int>(i)) + columns.begin,
                                    columns.end - columns.begin) != kernels::Finiteness::kFinite;
}

bool Output::Finite(int i, int team) const noexcept {
  for (int thread = 0; thread < team; ++thread)
    if (space_.scratch.NotFinite(thread)[i] != 0) return false;
  return true;
}

}  // namespace foretoken::model
