// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/heads/head_entry.h"

#include <algorithm>

#include "model/blocks/product.h"

namespace foretoken::model {
namespace {

bool ReadsOwnFeatures(const Pass& pass) {
  return pass.own_features;
}
bool ReadsTargetFeatures(const Pass& pass) {
  return !pass.own_features;
}

bool AttentionQuantises(const LayerWeights& layer) {
  const auto& attention = std::get<AttentionWeights>(layer.mixer);
  return attention.q.quantised() || attention.k.quantised() || attention.v.quantised();
}

}  // namespace

HeadEntry::HeadEntry(const Workspace& space, const ModelConfig& config, const Weights& weights,
                     bool (*mixes)(const Pass& pass))
    : space_(space),
      config_(config),
      weights_(weights),
      head_(*weights.head),
      residual_(space.scratch.residual.View(config.dim)),
      pair_(space.scratch.pair.View(2 * config.dim)),
      gather_mixed_(space, residual_, GatheredForm::kFloat,
                    ColumnsByRank(space.division, config.dim), {.wanted = mixes}),
      normed_(space.scratch.normed.View(config.dim)) {}

void HeadEntry::WritePair(Token token, const float* feature, int row) const noexcept {
  // The embedding passes through `normed`, which the layer writes later.
  float *const embedding = normed_.Row(row), *const pair = pair_.Row(row);
  weights_.Embed(token, embedding);
  space_.kernels.rms_norm(embedding, head_.token_norm, config_.dim, config_.norm_eps, pair);
  space_.kernels.rms_norm(feature, head_.feature_norm, config_.dim, config_.norm_eps,
                          pair + config_.dim);
}

EagleEntry::EagleEntry(const Workspace& space, const ModelConfig& config, const Weights& weights)
    : HeadEntry(space, config, weights, ReadsTargetFeatures),
      quantise_pair_(AttentionQuantises(weights.layers[0])),
      mixed_(space.scratch.mixed.View(config.head->features_width())) {}

void EagleEntry::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&EagleEntry::TakeOwn>(*this, Split::kRows, ReadsOwnFeatures));
  phases.push_back(PhaseOf<&EagleEntry::TakeTarget>(*this, Split::kRows, ReadsTargetFeatures));
  phases.push_back(PhaseOf<&EagleEntry::Mix>(*this, Split::kOther, ReadsTargetFeatures));
  gather_mixed_.AddPhases(phases);
  phases.push_back(PhaseOf<&EagleEntry::Pair>(*this, Split::kRows));
}

void EagleEntry::TakeOwn(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row)
    std::copy_n(pass.features + std::int64_t{row} * config_.dim, config_.dim, residual_.Row(row));
}

void EagleEntry::TakeTarget(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row) {
    const float* const features = pass.features + std::int64_t{row} * mixed_.width;
    if (head_.features_norm != nullptr)
      space_.kernels.rms_norm(features, head_.features_norm, mixed_.width, config_.norm_eps,
                              mixed_.Row(row));
    else
      std::copy_n(features, mixed_.width, mixed_.Row(row));
  }
  if (head_.mix.quantised()) Quantise(space_.kernels, mixed_, rows);
}

void EagleEntry::Mix(const Pass& pass, int thread) const noexcept {
  MultiplyShare(space_, head_.mix, mixed_, pass.n_rows(), residual_, thread);
}

void EagleEntry::Pair(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row) {
    WritePair(pass.tokens[static_cast<std::size_t>(row)], residual_.Row(row), row);
    if (config_.head->norm_before_residual)
      std::copy_n(pair_.Row(row) + config_.dim, config_.dim, residual_.Row(row));
  }
  if (quantise_pair_) Quantise(space_.kernels, pair_, rows);
}

void MtpEntry::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&MtpEntry::Pair>(*this, Split::kRows));
  phases.push_back(PhaseOf<&MtpEntry::Mix>(*this, Split::kOther));
  gather_mixed_.AddPhases(phases);
}

void MtpEntry::Pair(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row)
    WritePair(pass.tokens[static_cast<std::size_t>(row)],
              pass.features + std::int64_t{row} * config_.dim, row);
  if (head_.mix.quantised()) Quantise(space_.kernels, pair_, rows);
}

void MtpEntry::Mix(const Pass& pass, int thread) const noexcept {
  MultiplyShare(space_, head_.mix, pair_, pass.n_rows(), residual_, thread);
}

AssistantEntry::AssistantEntry(const Workspace& space, const ModelConfig& config,
                               const Weights& weights)
    : space_(space),
      weights_(weights),
      width_(config.head->target_dim),
      scale_(config.embedding_scale),
      residual_(space.scratch.residual.View(config.dim)),
      pair_(space.scratch.pair.View(2 * width_)),
      gather_mixed_(space, residual_, GatheredForm::kFloat,
                    ColumnsByRank(space.division, config.dim)) {}

void AssistantEntry::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&AssistantEntry::Pair>(*this, Split::kRows));
  phases.push_back(PhaseOf<&AssistantEntry::Mix>(*this, Split::kOther));
  gather_mixed_.AddPhases(phases);
}

void AssistantEntry::Pair(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row) {
    float* const pair = pair_.Row(row);
    weights_.Embed(pass.tokens[static_cast<std::size_t>(row)], pair);
    space_.kernels.scale(pair, width_, scale_);
    std::copy_n(pass.features + std::int64_t{row} * width_, width_, pair + width_);
  }
  if (weights_.head->mix.quantised()) Quantise(space_.kernels, pair_, rows);
}

void AssistantEntry::Mix(const Pass& pass, int thread) const noexcept {
  MultiplyShare(space_, weights_.head->mix, pair_, pass.n_rows(), residual_, thread);
}

}  // namespace foretoken::model
